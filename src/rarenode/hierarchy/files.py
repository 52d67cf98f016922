"""Hierarchies in files: edge lists, parent tables, paths, levels, nested JSON and OBO, behind `read_hierarchy`.

The suffix of the name and, in a table, its columns tell the format:

=====================  ================================================================================================
``.obo``               an ontology; see `rarenode.hierarchy.obo`
``.json``              ``{"Biota": {"Corals": {}}}`` nested names; or ``{"edges": [["parent", "child"], ...]}``; or a
                       list of paths
columns parent, child  an edge list; also ``source`` and ``target``, ``from`` and ``to``, ``broader`` and ``narrower``
columns id, parent     a parent table: one line for each node (``node``, ``name`` or ``child`` for ``id``), the parent
                       blank for a root; ``title`` has names for people
one column of paths    ``Biota > Cnidaria > Corals``, each prefix a node; other columns are ignored
all other tables       one column per level, the highest first; blank cells end a path
=====================  ================================================================================================

Every format becomes a `Draft`, in which each node and edge has its line.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from rarenode._io.cells import guarded
from rarenode._io.delimited import Records, read_records, read_text, suffix_of
from rarenode._io.files import replacing
from rarenode.errors import ArgumentError, FileFormatError, HierarchyError
from rarenode.hierarchy.construction import COMMON_SEPARATORS, DEFAULT_SEPARATOR
from rarenode.hierarchy.dag import Hierarchy, Terms
from rarenode.hierarchy.draft import Draft
from rarenode.hierarchy.obo import IS_A, escaped, read_obo

PARENT = ("parent", "parent_id", "parents", "source", "from", "broader")
CHILD = ("child", "child_id", "target", "to", "narrower")
NODE = ("id", "node", "node_id", "name", *CHILD)
TITLE = ("title", "label", "name")
SEVERAL = ";"
"""Separates several parents in one cell of a parent table."""


class Graph(Protocol):
    """A networkx graph."""

    @property
    def edges(self) -> Any:
        """Pairs of nodes."""

    def is_directed(self) -> bool:
        """Whether edges have a direction."""


HierarchyLike = Hierarchy | Path | str | Mapping[str, Any] | Collection[tuple[str, str]] | Graph
"""What `as_hierarchy` takes."""


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
    return read_draft(path, separator=separator, relations=relations, namespaces=namespaces).build()


def read_draft(
    path: Path | str,
    *,
    separator: str | None = None,
    relations: Collection[str] = (IS_A,),
    namespaces: Collection[str] | None = None,
) -> Draft:
    """Read nodes and edges with their lines; arguments are those of `read_hierarchy`."""
    path = Path(path)
    match suffix_of(path):
        case ".obo":
            return read_obo(path, relations=relations, namespaces=namespaces)
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
        raise FileFormatError(records.path, None, "there is nothing below the header")
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
    if len(records.header) == 1 and chosen in records.header[0]:  # there is no header
        cells.insert(0, (1, records.header[0]))
    for line, cell in cells:
        draft.add_path(line, _steps(records.path, line, cell, chosen))
    return draft


def _levels(records: Records) -> Draft:
    draft = Draft(records.path)
    cells = {cell for _, fields in records.rows for cell in fields}
    odd = next((name for name in records.header if name in cells), None)
    if odd is not None:
        problem = f"{odd[:80]!r} names a column and a node; if there is no header, add one, such as parent,child"
        raise FileFormatError(records.path, 1, problem)
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
            path,
            line,
            f"{header[below]!r} is {cells[below]!r}, but the level above it, {header[gap]!r}, is blank; fill it in",
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


def split_path(path: str, separator: str) -> list[str]:
    """The steps of a path. Blanks around the separator do not matter, unless the path has both kinds.

    >>> split_path("Biota>Corals", " > "), split_path("Arrows >  A->B", " > ")
    (['Biota', 'Corals'], ['Arrows', 'A->B'])
    """
    core = separator.strip()
    if not core:
        return path.split(separator)
    sign = re.escape(core)
    with_blanks = [step.strip() for step in re.split(rf"\s+{sign}\s*|\s*{sign}\s+", path)]
    if len(with_blanks) > 1 and core != separator:
        return with_blanks
    return [step.strip() for step in path.split(core)]


def _steps(path: Path, line: int | None, cell: str, separator: str) -> list[str]:
    steps = split_path(cell, separator)
    if not all(steps):
        raise FileFormatError(path, line, f"the path {cell[:80]!r} has an empty step")
    return steps


def _from_json(path: Path, separator: str | None) -> Draft:
    text = read_text(path)
    try:
        content = json.loads(text, object_pairs_hook=_without_repeats)
    except RecursionError:
        raise FileFormatError(path, None, "its names are nested too deeply; write a table instead") from None
    except json.JSONDecodeError as error:
        raise FileFormatError(path, error.lineno, f"it is not valid JSON: {error.msg}, column {error.colno}") from None
    except ValueError as error:
        raise FileFormatError(path, None, str(error)) from None
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


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; of a name that is repeated Python would keep the last, and drop what is below the others."""
    content = dict(pairs)
    if len(content) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the name {twice!r} appears twice below the same parent; join them")
    return content


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
        if steps and not steps[-1].strip():
            raise FileFormatError(draft.path, None, f"a name below {DEFAULT_SEPARATOR.join(steps[:-1])!r} is empty")
        if steps:
            draft.add_path(None, steps)
        if isinstance(below, dict):
            waiting.extend(((*steps, name), inner) for name, inner in reversed(below.items()))
        elif isinstance(below, list) and all(isinstance(name, str) for name in below):
            waiting.extend(((*steps, name), None) for name in reversed(below))
        elif below is not None:
            place = DEFAULT_SEPARATOR.join(steps)
            raise FileFormatError(draft.path, None, f"below {place!r}: expected names, got {str(below)[:60]}")


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


def as_hierarchy(given: HierarchyLike, **options: Any) -> Hierarchy:
    """A hierarchy from what people have.

    Args:
        given: a hierarchy; a file; nested names, as in `from_nested`; (parent, child) pairs; or a networkx graph.
        options: of `read_hierarchy`, for a file.

    Raises:
        ArgumentError: it is something else.
        HierarchyError: it makes no hierarchy.

    >>> as_hierarchy([("animal", "cat"), ("animal", "dog")])
    <Hierarchy: tree of 3 nodes and 2 edges, depth 1>
    """
    if isinstance(given, Hierarchy):
        return given
    if isinstance(given, str | Path):
        return read_hierarchy(given, **options)
    if isinstance(given, Mapping):
        return from_nested(given)
    if isinstance(given, list | tuple | set):
        return Hierarchy.from_edges(given)
    if hasattr(given, "is_directed"):
        return from_networkx(given)
    raise ArgumentError(
        "hierarchy must be a Hierarchy, a file, nested names in a dict, a list of (parent, child) pairs or a networkx "
        f"graph; got {type(given).__name__}"
    )


def write_hierarchy(hierarchy: Hierarchy, path: Path | str, *, raw: bool = False) -> None:
    """Write a hierarchy, so that `read_hierarchy` returns an equal one.

    The suffix chooses the format: ``.csv`` and ``.tsv`` are parent tables with the columns id, parent and title, in
    which several parents are separated by ``;``. There, unless ``raw``, names that a spreadsheet would take for
    formulas begin with an apostrophe, which `read_hierarchy` removes. ``.json`` has nodes, edges and titles; ``.obo``
    is an ontology. Titles lose blanks at their ends in tables, and have single blanks for all white space in OBO.

    Raises:
        ArgumentError: the format is another one, the file cannot be written, or names cannot be written in it.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    writers: Mapping[str, Callable[[Hierarchy, str, bool], str]]
    writers = {".csv": _to_table, ".tsv": _to_table, ".json": _to_json, ".obo": _to_obo}
    if suffix not in writers:
        raise ArgumentError(f"{path}: the name must end in {', '.join(writers)}")
    null = next((title for title in hierarchy.titles if "\0" in title), None)
    if null is not None and suffix != ".json":
        raise ArgumentError(f"the title {null!r} contains a null character; write .json instead")
    text = writers[suffix](hierarchy, "\t" if suffix == ".tsv" else ",", raw)
    try:
        with replacing(path) as (part,):
            part.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise ArgumentError(f"{path} cannot be written: {error.strerror}") from None
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise ArgumentError(f"{path} cannot be written: a name contains half a character, {half!r}") from None


def _parents(hierarchy: Hierarchy) -> dict[str, list[str]]:
    above: dict[str, list[str]] = {node: [] for node in hierarchy.nodes}
    for parent, child in hierarchy.edges:
        above[child].append(parent)
    return above


def _to_table(hierarchy: Hierarchy, delimiter: str, raw: bool) -> str:
    odd = next((node for node in hierarchy.nodes if SEVERAL in node or "\0" in node or node != node.strip()), None)
    if odd is not None:
        what = f"{SEVERAL!r}, a null character, or blanks at its ends"
        raise ArgumentError(f"the node {odd!r} contains {what}; write .json instead")
    file = io.StringIO()
    broken = any("\r" in name for name in (*hierarchy.nodes, *hierarchy.titles))  # which csv does not quote by itself
    quoting: Literal[0, 1] = csv.QUOTE_ALL if broken else csv.QUOTE_MINIMAL
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n", quoting=quoting)
    writer.writerow(["id", "parent", "title"])
    for (node, above), title in zip(_parents(hierarchy).items(), hierarchy.titles, strict=True):
        cells = [node, SEVERAL.join(above), title]
        writer.writerow(cells if raw else map(guarded, cells))
    return file.getvalue()


def _to_json(hierarchy: Hierarchy, *_: object) -> str:
    titles = {node: title for node, title in zip(hierarchy.nodes, hierarchy.titles, strict=True) if node != title}
    content = {"nodes": hierarchy.nodes, "edges": hierarchy.edges, "titles": titles}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _to_obo(hierarchy: Hierarchy, *_: object) -> str:
    odd = next((node for node in hierarchy.nodes if "\0" in node or len(node.replace(" ", "_").split()) != 1), None)
    if odd is not None:
        raise ArgumentError(f"the node {odd!r} contains a character that no id in OBO may; write .json instead")
    namespaces = None if hierarchy.terms is None else hierarchy.terms.namespaces
    lines = ["format-version: 1.2"]
    for place, (node, above) in enumerate(_parents(hierarchy).items()):
        name = " ".join(hierarchy.titles[place].split())
        lines += ["", "[Term]", f"id: {escaped(node)}", f"name: {escaped(name, blanks=False)}"]
        if namespaces is not None and namespaces[place]:
            lines.append(f"namespace: {escaped(namespaces[place])}")
        lines += [f"is_a: {escaped(parent)}" for parent in above]
    return "\n".join(lines) + "\n"
