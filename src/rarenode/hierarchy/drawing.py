"""A hierarchy as lines of text, as the command `tree` draws folders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rarenode.errors import UnknownLabelError
from rarenode.hierarchy.dag import Hierarchy

MOST_LEVELS = 200


def draw_tree(
    hierarchy: Hierarchy, counts: Any = None, *, root: str | None = None, depth: int | None = None
) -> Iterator[str]:
    """Lines that show a hierarchy from the top downwards, each node indented below its parent.

    A node with several parents is drawn below each of them; what is below it only the first time.

    Args:
        hierarchy: to draw.
        counts: for each node, the number of its rows, which is then shown.
        root: only this node, and what is below it.
        depth: how many levels below the top; None: 200, as each level makes every line below it longer.

    Raises:
        UnknownLabelError: there is no such node.

    >>> tree = Hierarchy.from_paths(["Biota > Corals", "Biota > Sponges > Crusts"])
    >>> print(*draw_tree(tree, [5, 3, 2, 2]), sep=chr(10))
    Biota  5
    ├── Corals  3
    └── Sponges  2
        └── Crusts  2
    """
    if root is not None and root not in hierarchy:
        found = [node for node, title in zip(hierarchy.nodes, hierarchy.titles, strict=True) if title == root]
        if len(found) != 1:
            raise UnknownLabelError(f"{root!r} is not one of the hierarchy's {len(hierarchy)} nodes")
        root = found[0]
    tops = hierarchy.roots if root is None else (root,)
    most = MOST_LEVELS if depth is None else depth
    drawn: set[str] = set()
    # (node, what is drawn before it, what is drawn before its children, levels below the top)
    waiting = [(top, "", "", 0) for top in reversed(tops)]
    while waiting:
        node, before, inside, level = waiting.pop()
        column = hierarchy.index[node]
        title = hierarchy.titles[column]
        is_id = title != node and not node.endswith(title)
        text = f"{node} {title}" if is_id else title
        count = "" if counts is None else f"  {int(counts[column]):,}"
        children = hierarchy.children(node)
        again = node in drawn and bool(children)
        hidden = level >= most and bool(children) and not again
        more = f"  ... {len(hierarchy.descendants(node)):,} below" if hidden else "  (see above)" if again else ""
        yield f"{before}{text}{count}{more}"
        drawn.add(node)
        if again or hidden:
            continue
        for place, child in enumerate(reversed(children)):
            corner, line = ("└── ", "    ") if place == 0 else ("├── ", "│   ")
            waiting.append((child, inside + corner, inside + line, level + 1))
