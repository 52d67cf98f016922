"""The hierarchy of labels: a frozen directed acyclic graph of named nodes."""

from rarenode.hierarchy.dag import Hierarchy

__all__ = ["Hierarchy"]
