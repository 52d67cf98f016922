"""Comparisons as text: Markdown to read, JSON to compute with."""
