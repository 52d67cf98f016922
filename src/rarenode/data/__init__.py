"""Readers, preparation, the catalogue of known datasets, and synthetic data."""
