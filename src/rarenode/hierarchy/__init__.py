"""The hierarchy of labels: a frozen directed acyclic graph of named nodes, and readers of files that contain one."""

from rarenode.hierarchy.dag import Hierarchy, Terms
from rarenode.hierarchy.files import (
    HierarchyLike,
    as_hierarchy,
    from_nested,
    from_networkx,
    read_hierarchy,
    write_hierarchy,
)

__all__ = [
    "Hierarchy",
    "HierarchyLike",
    "Terms",
    "as_hierarchy",
    "from_nested",
    "from_networkx",
    "read_hierarchy",
    "write_hierarchy",
]
