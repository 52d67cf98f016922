"""`Draft`: nodes and edges as a file gives them, each with its line; `check` finds what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from rarenode._io.text import counted
from rarenode.errors import FileFormatError
from rarenode.hierarchy.construction import DEFAULT_SEPARATOR
from rarenode.hierarchy.dag import Hierarchy, Terms

MOST_LEVELS = 1000
MOST_SHOWN, MOST_NAMES = 12, 5
"""Nodes and lines of a cycle, and names in a list, that a message shows."""


@dataclass
class Draft:
    """Nodes and edges as a file gives them, each with its line, before anybody has looked whether they fit."""

    path: Path
    nodes: dict[str, int | None] = field(default_factory=dict)
    """Names, each with the line that defines it first."""
    edges: list[tuple[int | None, str, str]] = field(default_factory=list)
    """(line, parent, child)."""
    titles: dict[str, str] = field(default_factory=dict)
    defined: bool = False
    """Whether every node has a line of its own; a parent without one is then missing."""
    repeated: list[tuple[int | None, str]] = field(default_factory=list)
    """(line, name) of nodes that are defined again."""
    make_terms: Callable[[Hierarchy], Terms] | None = None
    """What a file says of nodes besides titles, if it does."""

    def add(self, line: int | None, node: str, title: str | None = None) -> None:
        """Add a node."""
        self.nodes.setdefault(node, line)
        if title:
            self.titles.setdefault(node, title)

    def add_path(self, line: int | None, steps: Sequence[str]) -> None:
        """Add a path from a root; each prefix is a node, named by the whole prefix."""
        if len(steps) > MOST_LEVELS:
            problem = f"a path has {len(steps):,} levels; at most {MOST_LEVELS:,} are read"
            raise FileFormatError(self.path, line, problem)
        odd = next((step for step in steps if DEFAULT_SEPARATOR in step), None)
        if odd is not None:
            problem = f"the name {odd[:80]!r} contains {DEFAULT_SEPARATOR!r}, which separates steps; rename it"
            raise FileFormatError(self.path, line, problem)
        prefixes: list[str] = []
        for step in steps:
            prefixes.append(f"{prefixes[-1]}{DEFAULT_SEPARATOR}{step}" if prefixes else step)
        fresh = [place for place, prefix in enumerate(prefixes) if prefix not in self.nodes]
        for place in fresh:
            self.add(line, prefixes[place], steps[place])
            if place:
                self.edges.append((line, prefixes[place - 1], prefixes[place]))

    def build(self) -> Hierarchy:
        """The hierarchy.

        Raises:
            FileFormatError: `check` finds an error.
        """
        wrong = next((problem for problem in check(self) if problem.severity == "error"), None)
        if wrong is not None:
            raise FileFormatError(self.path, wrong.line, wrong.text)
        edges = dict.fromkeys((parent, child) for _, parent, child in self.edges)
        hierarchy = Hierarchy.from_edges(edges, nodes=self.nodes)
        if self.make_terms is not None:
            return hierarchy.with_terms(self.make_terms(hierarchy))
        if not self.titles:
            return hierarchy
        return hierarchy.with_terms(Terms(tuple(self.titles.get(node, node) for node in hierarchy.nodes)))


@dataclass(frozen=True)
class Problem:
    """Something to know about a hierarchy's file."""

    severity: Literal["error", "warning", "note"]
    line: int | None
    text: str

    def __str__(self) -> str:
        place = "" if self.line is None else f"line {self.line}: "
        return f"{self.severity}: {place}{self.text}"


def check(draft: Draft) -> list[Problem]:
    """All problems, errors first; with an error, no hierarchy can be made."""
    found = [*_edge_problems(draft), *_cycles(draft), *_name_problems(draft)]
    if not draft.nodes:
        found.append(Problem("error", None, "it has no nodes"))
    below = {child for _, _, child in draft.edges}
    roots = [node for node in draft.nodes if node not in below]
    if len(roots) > 1:
        found.append(Problem("note", None, f"it has {len(roots)} roots: {_some(roots)}"))
    elif draft.nodes and not draft.edges:
        found.append(Problem("note", None, "it has a single node"))
    order = {"error": 0, "warning": 1, "note": 2}
    return sorted(found, key=lambda problem: (order[problem.severity], problem.line or 0))


def _edge_problems(draft: Draft) -> list[Problem]:
    found = []
    seen: dict[tuple[str, str], int | None] = {}
    for line, parent, child in draft.edges:
        if parent == child:
            found.append(Problem("error", line, f"{child!r} is its own parent"))
        elif draft.defined and parent not in draft.nodes:
            problem = f"the parent {parent!r} of {child!r} has no line of its own; add one, or correct the name"
            found.append(Problem("error", line, problem))
        if (parent, child) in seen:
            first = f", as in line {seen[parent, child]}" if seen[parent, child] is not None else ""
            found.append(Problem("warning", line, f"{child!r} below {parent!r} is repeated{first}"))
        seen.setdefault((parent, child), line)
    return found


def _cycles(draft: Draft) -> list[Problem]:
    """A cycle for each group of nodes that are one another's ancestors; their descendants have no path from a root."""
    number = {node: place for place, node in enumerate(draft.nodes)}
    edges = [(line, number[p], number[c]) for line, p, c in draft.edges if p != c and p in number]
    ends = np.array([edge[1:] for edge in edges], dtype=np.int64).reshape(-1, 2)
    matrix = csr_array((np.ones(len(ends), dtype=np.int8), (ends[:, 0], ends[:, 1])), shape=(len(number),) * 2)
    _, group = connected_components(matrix, directed=True, connection="strong")
    above: dict[int, tuple[int | None, int]] = {}
    for line, parent, child in edges:
        if group[parent] == group[child]:
            above.setdefault(child, (line, parent))
    names, found, seen = list(draft.nodes), [], set()
    for start in above:
        if group[start] in seen:
            continue
        seen.add(group[start])
        trail: dict[int, None] = {}
        node = start
        while node not in trail:
            trail[node] = None
            node = above[node][1]
        cycle = [*trail][[*trail].index(node) :]
        lines = sorted(line for each in cycle if (line := above[each][0]) is not None)
        text = " -> ".join(names[each] for each in reversed([*cycle[:MOST_SHOWN], node]))
        size = "" if len(cycle) <= MOST_SHOWN else f" ({len(cycle)} nodes in all)"
        where = f"; lines {', '.join(map(str, lines[:MOST_SHOWN]))}" if len(lines) > 1 else ""
        found.append(Problem("error", lines[0] if lines else None, f"a cycle: {text}{size}{where}"))
    if found:
        reached = _reached_from_roots(matrix)
        lost = [node for node, there in zip(draft.nodes, reached, strict=True) if not there]
        in_cycle = {names[node] for node in above}
        below = [node for node in lost if node not in in_cycle]
        if below:
            text = f"{counted(len(below), 'more node')} without a path from a root: {_some(below)}"
            found.append(Problem("warning", draft.nodes[below[0]], text))
    return found


def _reached_from_roots(matrix: Any) -> NDArray[np.bool_]:
    """Which nodes can be reached from a node without parents."""
    reached = np.asarray(matrix.sum(axis=0) == 0).ravel()
    fresh = reached
    while fresh.any():
        found = (matrix.T @ fresh.astype(np.int32)) > 0
        fresh = found & ~reached
        reached = reached | fresh
    return reached


def _name_problems(draft: Draft) -> list[Problem]:
    found = []
    for line, node in draft.repeated:
        found.append(Problem("warning", line, f"{node!r} is defined again; the first is in line {draft.nodes[node]}"))
    spelled: dict[str, str] = {}
    for node, line in draft.nodes.items():
        key = " ".join(node.casefold().replace("_", " ").split())
        other = spelled.setdefault(key, node)
        if other != node:
            text = f"{node!r} and {other!r} differ only in spelling; are they one node?"
            found.append(Problem("warning", line, text))
    return found


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(repr(name) for name in names[:MOST_NAMES]) + more
