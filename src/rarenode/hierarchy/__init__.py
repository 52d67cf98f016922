"""The hierarchy of labels: a frozen directed acyclic graph of named nodes, and readers of files that contain one."""

from rarenode.hierarchy.dag import Hierarchy, Terms
from rarenode.hierarchy.files import from_nested, from_networkx, read_hierarchy, write_hierarchy

__all__ = ["Hierarchy", "Terms", "from_nested", "from_networkx", "read_hierarchy", "write_hierarchy"]
