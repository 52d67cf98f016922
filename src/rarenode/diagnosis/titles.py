"""Short names of nodes for people to read, no two of which are the same."""

from __future__ import annotations

from collections import Counter

from rarenode.hierarchy import Hierarchy

LONGEST = 60
"""Characters of a name that is shortened."""


def distinct_titles(hierarchy: Hierarchy) -> tuple[str, ...]:
    """The title of each node; where several have it, also what tells them apart: the end of a path, or a node's id.

    >>> distinct_titles(Hierarchy.from_paths(["Algae > Brown", "Sponges > Brown", "Sponges > Red"]))
    ('Algae', 'Sponges', 'Algae > Brown', 'Sponges > Brown', 'Red')
    """
    times = Counter(hierarchy.titles)
    pairs = zip(hierarchy.nodes, hierarchy.titles, strict=True)
    names = [title if times[title] == 1 else _full_name(node, title) for node, title in pairs]
    cut = [name if len(name) <= LONGEST else f"...{name[3 - LONGEST :]}" for name in names]
    again = Counter(cut)
    return tuple(
        short if times[title] == 1 or again[short] == 1 else name
        for short, name, title in zip(cut, names, hierarchy.titles, strict=True)
    )


def _full_name(node: str, title: str) -> str:
    return node if node.endswith(title) else f"{title} ({node})"
