"""The scikit-learn face: one estimator, and how it reads labels."""

from rarenode.estimator.classifier import RareNodeClassifier

__all__ = ["RareNodeClassifier"]
