"""The version of this package, for those who record what made a file."""

__version__ = "0.1.0"
