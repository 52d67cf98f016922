"""Hierarchies in files: edge lists, parent tables, paths, levels, nested JSON and OBO, behind `read_hierarchy`.

The suffix of the name and, in a table, its columns tell the format:

=====================  ================================================================================================
``.obo``               an ontology; see `rarenode.hierarchy.obo`
``.json``              ``{"Biota": {"Corals": {}}}`` nested names; or ``{"edges": [["parent", "child"], ...]}``; or a
                       list of paths
columns parent, child  an edge list
columns id, parent     a parent table: one line for each node (``node``, ``name`` or ``child`` for ``id``), the parent
                       blank for a root; ``title`` has names for people
one column of paths    ``Biota > Cnidaria > Corals``, each prefix a node; other columns are ignored
all other tables       one column per level, the highest first; blank cells end a path
=====================  ================================================================================================

Every format but OBO becomes a `Draft`, in which each node and edge has its line. `check` finds what is wrong with it.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from rarenode._io.delimited import Records, read_records, read_text, suffix_of
from rarenode._io.files import replacing
from rarenode.errors import ArgumentError, FileFormatError, HierarchyError
from rarenode.hierarchy.construction import COMMON_SEPARATORS, DEFAULT_SEPARATOR
from rarenode.hierarchy.dag import Hierarchy, Terms
from rarenode.hierarchy.obo import IS_A, read_obo

PARENT = ("parent", "parent_id", "parents")
CHILD = ("child", "child_id")
NODE = ("id", "node", "node_id", "name", *CHILD)
TITLE = ("title", "label", "name")
SEVERAL = ";"
"""Separates several parents in one cell of a parent table."""
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


# --- reading ---------------------------------------------------------------------------------------------------------


def read_hierarchy(
    path: Path | str,
    *,
    separator: str | None = None,
    relations: Collection[str] = (IS_A,),
    namespaces: Collection[str] | None = None,
) -> Hierarchy:
    """Read a hierarchy from a file in any of the formats above.

    Nodes of paths and levels are named by the whole path, joined by ``" > "``, so that equal names under different
    parents stay different nodes.

    Args:
        path: the file; it may be gzipped.
        separator: what separates the steps of paths; None: the common one that they contain.
        relations: of an OBO file: which relations lead to parents.
        namespaces: of an OBO file: which terms to keep; None: all.

    Raises:
        MissingFileError: there is no such file.
        FileFormatError: it is malformed, or its edges make no hierarchy; the message names the line.
    """
    if suffix_of(path) == ".obo":
        return read_obo(path, relations=relations, namespaces=namespaces)
    return read_draft(path, separator=separator).build()


def read_draft(path: Path | str, *, separator: str | None = None) -> Draft:
    """Read nodes and edges with their lines; arguments are those of `read_hierarchy`."""
    path = Path(path)
    match suffix_of(path):
        case ".json":
            return _from_json(path, separator)
        case ".csv" | ".tsv" | ".tab" | ".txt":
            return _from_records(read_records(path), separator)
        case suffix:
            given = f"the suffix {suffix!r}" if suffix else "no suffix"
            known = ".obo, .json, .csv, .tsv and .txt, each also with .gz"
            raise FileFormatError(path, None, f"cannot tell the format of a hierarchy from {given}; known are {known}")


def _from_records(records: Records, separator: str | None) -> Draft:
    names = {name.lower(): place for place, name in reversed([*enumerate(records.header)])}
    parent = next((names[name] for name in PARENT if name in names), None)
    child = next((names[name] for name in CHILD if name in names), None)
    node = next((names[name] for name in NODE if name in names), None)
    if parent is not None and node is not None:
        if child is not None and "id" not in names:
            return _edge_list(records, parent, child)
        title = next((names[name] for name in TITLE if name in names and names[name] != node), None)
        return _parent_table(records, parent, node, title)
    if not records.rows:
        raise FileFormatError(records.path, 1, "there is nothing below the header")
    column = _path_column(records, separator)
    if column is not None or len(records.header) == 1:
        return _path_list(records, column or 0, separator)
    return _levels(records)


def _edge_list(records: Records, parent: int, child: int) -> Draft:
    draft = Draft(records.path)
    for line, fields in records.rows:
        above, below = fields[parent], fields[child]
        if not below:
            raise FileFormatError(records.path, line, "the child is blank")
        draft.add(line, below)
        if above:
            draft.add(line, above)
            draft.edges.append((line, above, below))
    return draft


def _parent_table(records: Records, parent: int, node: int, title: int | None) -> Draft:
    draft = Draft(records.path, defined=True)
    for line, fields in records.rows:
        name = fields[node]
        if not name:
            raise FileFormatError(records.path, line, f"the column {records.header[node]!r} is blank")
        if name in draft.nodes:
            draft.repeated.append((line, name))
        draft.add(line, name, None if title is None else fields[title])
        above = [each.strip() for each in fields[parent].split(SEVERAL)]
        draft.edges.extend((line, each, name) for each in above if each)
    return draft


def _path_column(records: Records, separator: str | None) -> int | None:
    """The first column in which a cell contains a separator of paths."""
    separators = (separator,) if separator is not None else (DEFAULT_SEPARATOR,)
    for column in range(len(records.header)):
        if any(each in fields[column] for _, fields in records.rows for each in separators):
            return column
    return None


def _path_list(records: Records, column: int, separator: str | None) -> Draft:
    draft = Draft(records.path)
    cells = [(line, fields[column]) for line, fields in records.rows if fields[column]]
    chosen = separator if separator is not None else guess_separator([cell for _, cell in cells])
    for line, cell in cells:
        draft.add_path(line, _steps(records.path, line, cell, chosen))
    return draft


def _levels(records: Records) -> Draft:
    draft = Draft(records.path)
    for line, fields in records.rows:
        draft.add_path(line, level_steps(records.path, line, records.header, fields))
    return draft


def level_steps(path: Path, line: int | None, header: Sequence[str], cells: Sequence[str]) -> list[str]:
    """The path that the cells of one row make, one cell for each level; blanks may only come last."""
    steps = [cell for cell in cells if cell]
    if any(not cell for cell in cells[: len(steps)]):
        gap = next(place for place, cell in enumerate(cells) if not cell)
        below = next(place for place in range(gap, len(cells)) if cells[place])
        raise FileFormatError(
            path, line, f"{header[below]!r} is {cells[below]!r}, but the level above it, {header[gap]!r}, is blank"
        )
    return steps


def guess_separator(paths: Iterable[str]) -> str:
    """The separator that paths contain: `` > `` if any has it, or else the common one that most have."""
    count: Counter[str] = Counter()
    for path in paths:
        if DEFAULT_SEPARATOR in path:
            return DEFAULT_SEPARATOR
        count.update(each for each in COMMON_SEPARATORS if each != "." and each in path.strip(each))
    return count.most_common(1)[0][0] if count else DEFAULT_SEPARATOR


def _steps(path: Path, line: int | None, cell: str, separator: str) -> list[str]:
    steps = [step.strip() for step in cell.split(separator.strip() or separator)]
    if not all(steps):
        raise FileFormatError(path, line, f"the path {cell[:80]!r} has an empty step")
    return steps


def _from_json(path: Path, separator: str | None) -> Draft:
    text = read_text(path)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(path, getattr(error, "lineno", None), f"it is not valid JSON: {error}") from None
    draft = Draft(path)
    if isinstance(content, list) and all(isinstance(each, str) for each in content):
        chosen = separator if separator is not None else guess_separator(content)
        for each in content:
            draft.add_path(None, _steps(path, None, each, chosen))
    elif isinstance(content, dict) and isinstance(content.get("edges"), list):
        _add_edges(draft, content)
    elif isinstance(content, dict):
        _add_nested(draft, content)
    else:
        raise FileFormatError(path, None, "expected nested names, a list of paths, or an object with 'edges'")
    return draft


def _add_edges(draft: Draft, content: Mapping[str, Any]) -> None:
    nodes, titles = content.get("nodes", []), content.get("titles", {})
    if not isinstance(nodes, list) or not isinstance(titles, dict):
        raise FileFormatError(draft.path, None, "'nodes' must be a list of names, and 'titles' an object")
    for place, node in enumerate(nodes):
        if not isinstance(node, str) or not node:
            raise FileFormatError(draft.path, None, f"node {place}: expected a name, got {node!r}")
        draft.add(None, node)
    for place, edge in enumerate(content["edges"]):
        if not (isinstance(edge, list) and len(edge) == 2 and all(isinstance(end, str) and end for end in edge)):
            raise FileFormatError(draft.path, None, f"edge {place}: expected [parent, child], got {str(edge)[:60]}")
        draft.add(None, edge[0])
        draft.add(None, edge[1])
        draft.edges.append((None, edge[0], edge[1]))
    draft.titles.update({str(node): str(title) for node, title in titles.items() if node in draft.nodes})


def _add_nested(draft: Draft, content: Mapping[str, Any]) -> None:
    waiting: list[tuple[tuple[str, ...], Any]] = [((), content)]
    while waiting:
        steps, below = waiting.pop()
        if steps:
            draft.add_path(None, steps)
        if isinstance(below, dict):
            waiting.extend(((*steps, name), inner) for name, inner in reversed(below.items()))
        elif isinstance(below, list) and all(isinstance(name, str) for name in below):
            waiting.extend(((*steps, name), None) for name in reversed(below))
        elif below is not None:
            place = DEFAULT_SEPARATOR.join(steps)
            raise FileFormatError(draft.path, None, f"below {place!r}: expected names, got {str(below)[:60]}")
        if steps and not steps[-1]:
            raise FileFormatError(draft.path, None, f"a name below {DEFAULT_SEPARATOR.join(steps[:-1])!r} is empty")


# --- checking --------------------------------------------------------------------------------------------------------


def check(draft: Draft) -> list[Problem]:
    """All that is wrong or odd, errors first: an error stands in the way of a hierarchy."""
    found = [*_edge_problems(draft), *_cycles(draft), *_name_problems(draft)]
    if not draft.nodes:
        found.append(Problem("error", None, "it has no nodes"))
    below = {child for _, _, child in draft.edges}
    roots = [node for node in draft.nodes if node not in below]
    if len(roots) > 1:
        found.append(Problem("note", None, f"it has {len(roots)} roots: {_some(roots)}"))
    order = {"error": 0, "warning": 1, "note": 2}
    return sorted(found, key=lambda problem: (order[problem.severity], problem.line or 0))


def _edge_problems(draft: Draft) -> list[Problem]:
    found = []
    seen: dict[tuple[str, str], int | None] = {}
    for line, parent, child in draft.edges:
        if parent == child:
            found.append(Problem("error", line, f"{child!r} is its own parent"))
        elif draft.defined and parent not in draft.nodes:
            found.append(Problem("error", line, f"the parent {parent!r} of {child!r} has no line of its own"))
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
            text = f"{len(below)} more nodes have no path from a root: {_some(below)}"
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


# --- other sources, and writing --------------------------------------------------------------------------------------


def from_nested(nested: Mapping[str, Any]) -> Hierarchy:
    """A tree from nested mappings; each node is named by the path to it.

    >>> from_nested({"Biota": {"Corals": {}, "Sponges": ["Crusts"]}}).nodes
    ('Biota', 'Biota > Corals', 'Biota > Sponges', 'Biota > Sponges > Crusts')
    """
    draft = Draft(Path("the nested names"))
    _add_nested(draft, nested)
    return draft.build()


def from_networkx(graph: Any) -> Hierarchy:
    """A hierarchy from a networkx graph whose edges lead from parents to children; ``title`` of a node is its title.

    Raises:
        HierarchyError: the graph is undirected, has cycles, or nodes that are not text.
    """
    if not graph.is_directed():
        raise HierarchyError("the graph must be directed, with edges from parents to children")
    hierarchy = Hierarchy.from_edges(dict.fromkeys((p, c) for p, c in graph.edges()), nodes=graph.nodes)
    titles = {node: str(title) for node, title in graph.nodes(data="title") if title}
    if not titles:
        return hierarchy
    return hierarchy.with_terms(Terms(tuple(titles.get(node, node) for node in hierarchy.nodes)))


def write_hierarchy(hierarchy: Hierarchy, path: Path | str) -> None:
    """Write a hierarchy, so that `read_hierarchy` returns an equal one.

    The suffix chooses the format: ``.csv`` and ``.tsv`` are parent tables with the columns id, parent and title, in
    which several parents are separated by ``;``; ``.json`` has nodes, edges and titles; ``.obo`` is an ontology.

    Raises:
        ArgumentError: the format is another one, the file cannot be written, or names cannot be written in it.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    writers = {".csv": _to_table, ".tsv": _to_table, ".json": _to_json, ".obo": _to_obo}
    if suffix not in writers:
        raise ArgumentError(f"{path}: the name must end in {', '.join(writers)}")
    text = writers[suffix](hierarchy, "\t" if suffix == ".tsv" else ",")
    try:
        with replacing(path) as (part,):
            part.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise ArgumentError(f"{path} cannot be written: {error.strerror}") from None


def _parents(hierarchy: Hierarchy) -> dict[str, list[str]]:
    above: dict[str, list[str]] = {node: [] for node in hierarchy.nodes}
    for parent, child in hierarchy.edges:
        above[child].append(parent)
    return above


def _to_table(hierarchy: Hierarchy, delimiter: str) -> str:
    odd = next((node for node in hierarchy.nodes if SEVERAL in node or node != node.strip()), None)
    if odd is not None:
        raise ArgumentError(f"the node {odd!r} contains {SEVERAL!r}, or blanks at its ends; write .json instead")
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow(["id", "parent", "title"])
    for (node, above), title in zip(_parents(hierarchy).items(), hierarchy.titles, strict=True):
        writer.writerow([node, SEVERAL.join(above), title])
    return file.getvalue()


def _to_json(hierarchy: Hierarchy, _: str) -> str:
    titles = {node: title for node, title in zip(hierarchy.nodes, hierarchy.titles, strict=True) if node != title}
    content = {"nodes": hierarchy.nodes, "edges": hierarchy.edges, "titles": titles}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _to_obo(hierarchy: Hierarchy, _: str) -> str:
    odd = next((node for node in hierarchy.nodes if any(character.isspace() for character in node)), None)
    if odd is not None:
        raise ArgumentError(f"the node {odd!r} contains a blank, which no id in OBO may; write .csv or .json")
    namespaces = None if hierarchy.terms is None else hierarchy.terms.namespaces
    lines = ["format-version: 1.2"]
    for place, (node, above) in enumerate(_parents(hierarchy).items()):
        lines += ["", "[Term]", f"id: {node}", f"name: {' '.join(hierarchy.titles[place].split())}"]
        if namespaces is not None and namespaces[place]:
            lines.append(f"namespace: {namespaces[place]}")
        lines += [f"is_a: {parent}" for parent in above]
    return "\n".join(lines) + "\n"
