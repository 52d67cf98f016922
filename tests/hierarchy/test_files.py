"""Hierarchies in files: every format of the same one, what is refused and in which line, and what is written."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rarenode import Hierarchy
from rarenode.errors import ArgumentError, FileFormatError, HierarchyError, MissingFileError, RarenodeError
from rarenode.hierarchy import Terms, as_hierarchy, from_nested, from_networkx, read_hierarchy, write_hierarchy
from rarenode.hierarchy.draft import check
from rarenode.hierarchy.drawing import draw_tree
from rarenode.hierarchy.files import read_draft
from tests.strategies import Graph, graphs, oddly_named_graphs, trees

TREE = Hierarchy.from_paths(["Biota > Corals > Black", "Biota > Corals > Soft", "Biota > Sponges", "Rock"])


def write(folder: Path, content: str | bytes, name: str = "h.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# --- the same hierarchy in every format ------------------------------------------------------------------------------

PATHS = {
    "paths": ("h.csv", "taxon\nBiota > Corals > Black\nBiota > Corals > Soft\nBiota > Sponges\nRock\n"),
    "paths with slashes": ("h.txt", "taxon\nBiota/Corals/Black\nBiota/Corals/Soft\nBiota/Sponges\nRock\n"),
    "paths without a header": ("h.txt", "Biota > Corals > Black\nBiota > Corals > Soft\nBiota > Sponges\nRock\n"),
    "paths among other columns": (
        "h.csv", "code,taxon\n1,Biota > Corals > Black\n2,Biota>Corals>Soft\n3,Biota > Sponges\n4,Rock\n"
    ),
    "levels": ("h.csv", "a,b,c\nBiota,Corals,Black\nBiota,Corals,Soft\nBiota,Sponges,\nRock,,\n"),
    "levels with semicolons": ("h.csv", "\ufeffa;b;c\r\nBiota;Corals;Black\r\n;;\r\nBiota;Corals;Soft\r\nBiota;Sponges\
;\r\nRock;;\r\n"),
    "nested": ("h.json", '{"Biota": {"Corals": ["Black", "Soft"], "Sponges": {}}, "Rock": null}'),
    "a list": ("h.json", '["Biota > Corals > Black", "Biota > Corals > Soft", "Biota > Sponges", "Rock"]'),
    "a list with bars": ("h.json", '["Biota|Corals|Black", "Biota|Corals|Soft", "Biota|Sponges", "Rock"]'),
}  # fmt: skip


@pytest.mark.parametrize(("name", "content"), PATHS.values(), ids=PATHS)
def test_paths_and_levels(tmp_path: Path, name: str, content: str) -> None:
    for path in (write(tmp_path, content, name), write(tmp_path, gzip.compress(content.encode()), f"{name}.gz")):
        found = read_hierarchy(path)
        assert found == TREE
        assert found.titles == TREE.titles


def test_a_separator_that_cannot_be_guessed(tmp_path: Path) -> None:
    path = write(tmp_path, "taxon,n\n1.2.3,5\n1.4,6\n")
    assert read_hierarchy(path, separator=".").nodes == ("1", "1 > 2", "1 > 4", "1 > 2 > 3")


@given(st.one_of(trees(), graphs()))
def test_edges_parents_json_and_networkx(tmp_path_factory: pytest.TempPathFactory, graph: Graph) -> None:
    folder, expected = tmp_path_factory.getbasetemp(), graph.build()
    above: dict[str, list[str]] = {node: [] for node in graph.nodes}
    for parent, child in graph.edges:
        above[child].append(parent)
    edges = [f"{parent};{child}" for parent, child in graph.edges] + [
        f";{node}" for node in graph.nodes if not above[node]
    ]
    several = [f"{node},{' ; '.join(parents)},title of {node}" for node, parents in above.items()]
    single = [f"{node},{parent}" for node, parents in above.items() for parent in parents or [""]]
    drawn = networkx.DiGraph(graph.edges)
    drawn.add_nodes_from(graph.nodes, title="same")
    found = {
        "edges": read_hierarchy(write(folder, "\n".join(["Parent;Child", *edges]))),
        "parents": read_hierarchy(write(folder, "\n".join(["id,parent,title", *several]))),
        "a line for each parent": read_hierarchy(write(folder, "\n".join(["node,parent", *single]))),
        "json": read_hierarchy(write(folder, json.dumps({"edges": graph.edges, "nodes": graph.nodes}), "h.json")),
        "networkx": from_networkx(drawn),
    }
    for name, each in found.items():
        assert each == expected, name
    assert found["parents"].titles == tuple(f"title of {node}" for node in expected.nodes)
    assert set(found["networkx"].titles) == {"same"}
    if all(len(parents) <= 1 for parents in above.values()):
        paths = {node: node if not above[node] else "" for node in graph.nodes}
        while not all(paths.values()):
            paths |= {n: f"{paths[above[n][0]]} > {n}" for n in graph.nodes if not paths[n] and paths[above[n][0]]}
        nested: dict[str, Any] = {}
        for path in paths.values():
            place = nested
            for step in path.split(" > "):
                place = place.setdefault(step, {})
        assert from_nested(nested) == Hierarchy.from_paths(paths.values(), " > ")


@given(st.one_of(graphs(), oddly_named_graphs()), st.sampled_from([".csv", ".tsv", ".json", ".obo"]))
@example(Graph(("0", "0\x85", "\x0b1"), ()), ".obo")  # white space of Unicode
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, graph: Graph, suffix: str) -> None:
    hierarchy, path = graph.build(), tmp_path_factory.getbasetemp() / f"written{suffix}"
    hierarchy = hierarchy.with_terms(Terms(tuple(f"about {node.strip() or 'it'} !" for node in hierarchy.nodes)))
    try:
        write_hierarchy(hierarchy, path)
    except ArgumentError as error:
        assert "write .json instead" in str(error) or "half a character" in str(error)
        assert suffix != ".json" or "half" in str(error)
        return
    found = read_hierarchy(path)
    assert found == hierarchy
    if suffix == ".json":
        assert found.titles == hierarchy.titles


def test_titles_and_namespaces_are_written(tmp_path: Path) -> None:
    hierarchy = Hierarchy.from_edges([("A b", "C:1")]).with_terms(Terms(("x {y} ! z", "a, b"), ("one", "two")))
    write_hierarchy(hierarchy, tmp_path / "h.obo")
    found = read_hierarchy(tmp_path / "h.obo")
    assert (found, found.titles) == (hierarchy, hierarchy.titles)
    assert found.terms is not None
    assert found.terms.namespaces == ("one", "two")
    for suffix in (".csv", ".tsv", ".json"):
        write_hierarchy(hierarchy, tmp_path / f"h{suffix}")
        assert read_hierarchy(tmp_path / f"h{suffix}").titles == hierarchy.titles


def test_names_with_line_breaks(tmp_path: Path) -> None:
    hierarchy = Hierarchy.from_edges([("a\rb", "c\nd"), ("a\rb", "e\r\nf")])
    for suffix in (".csv", ".tsv", ".json"):
        write_hierarchy(hierarchy, tmp_path / f"h{suffix}")
        assert read_hierarchy(tmp_path / f"h{suffix}") == hierarchy


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    for name, told in (("h.txt", r"must end in \.csv, \.tsv, \.json, \.obo"), ("no/h.csv", "cannot be written")):
        with pytest.raises(ArgumentError, match=told):
            write_hierarchy(TREE, tmp_path / name)
    with pytest.raises(ArgumentError, match="the node 'a;b' contains ';'"):
        write_hierarchy(Hierarchy.from_edges([("a;b", "c")]), tmp_path / "h.csv")


@pytest.mark.parametrize("header", ["parent,child", "source,target", "From,To", "broader,narrower"])
def test_names_of_the_columns_of_an_edge_list(tmp_path: Path, header: str) -> None:
    assert read_hierarchy(write(tmp_path, f"{header}\nA,B\nB,C\n", "h.csv")).edges == (("A", "B"), ("B", "C"))


# --- what is refused -------------------------------------------------------------------------------------------------

MALFORMED = [
    ("h.csv", "", None, "the file is empty"),
    ("h.csv", "taxon\n", None, "there is nothing below the header"),
    ("h.csv", "id,parent\n", None, "it has no nodes"),
    ("h.csv", "id,parent\na,\nb\n", 3, "expected 2 fields as in the header, got 1"),
    ("h.csv", "id,parent,id\na,,b\n", 1, "columns 1 and 3 have the same name 'id'"),
    ("h.csv", "parent,child\na,b\nb,\n", 3, "the child is blank"),
    ("h.csv", "id,parent\na,\n,a\n", 3, "the column 'id' is blank"),
    ("h.csv", "parent,child\na,b\nb,b\n", 3, "'b' is its own parent"),
    ("h.csv", "id,parent\na,\nb,b\n", 3, "'b' is its own parent"),
    ("h.csv", "parent,child\nr,a\na,b\nb,c\nc,a\n", 3, "a cycle: b -> c -> a -> b; lines 3, 4, 5"),
    ("h.csv", "id,parent\na,c\nb,a\nc,b\n", 2, "a cycle: "),
    ("h.csv", "id,parent\na,\nb,root\n", 3, "the parent 'root' of 'b' has no line of its own; add one, or correct"),
    ("h.csv", "taxon\nA > B\nA > > C\n", 3, "the path 'A > > C' has an empty step"),
    ("h.csv", "a,b,c\nA,B,\nA,,C\n", 3, "'c' is 'C', but the level above it, 'b', is blank"),
    ("h.csv", "a,b\nA,\n,B\n", 3, "'b' is 'B', but the level above it, 'a', is blank"),
    ("h.csv", "A,B\nB,C\nA,D\n", 1, "'A' names a column and a node; if there is no header, add one"),
    ("h.csv", "taxon\n" + " > ".join("x" * 1001) + "\n", 2, "a path has 1,001 levels; at most 1,000 are read"),
    ("h.json", "{", 1, "it is not valid JSON: .*column 2"),
    ("h.json", '{"a": {}\n"b": {}}', 2, "it is not valid JSON"),
    ("h.json", '{"a": {"b": 3}}', None, "below 'a > b': expected names, got 3"),
    ("h.json", '{"a": {"": {}}}', None, "a name below 'a' is empty"),
    ("h.json", '{"a": {"b": {}, "b": {"c": {}}}}', None, "the name 'b' appears twice below the same parent"),
    ("h.json", '{"a": {"b > c": {}}}', None, "the name 'b > c' contains ' > ', which separates steps"),
    ("h.json", "3", None, "expected nested names, a list of paths, or an object with 'edges'"),
    ("h.json", "[1, 2]", None, "expected nested names"),
    ("h.json", '{"edges": [["a"]]}', None, r"edge 0: expected \[parent, child\], got \['a'\]"),
    ("h.json", '{"edges": [["a", "b"]], "nodes": [3]}', None, "node 0: expected a name, got 3"),
    ("h.json", '{"edges": [], "nodes": "a"}', None, "'nodes' must be a list of names"),
    ("h.json", '{"edges": [["a", "b"], ["b", "a"]]}', None, "a cycle: "),
    ("h.json", '{"a":' * 100_000, None, "nested too deeply"),
    ("h.json", "{}", None, "it has no nodes"),
    ("h.xlsx", "PK", None, "cannot tell the format of a hierarchy from the suffix '.xlsx'; known are .obo,"),
    ("h", "a", None, "from no suffix"),
    ("h.csv", "taxon\ncaf\xe9\n".encode("latin-1"), 2, "expected UTF-8 text"),
    ("h.csv.gz", "taxon\na\n", None, "ends in .gz, but the file is not gzipped"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "line", "told"), MALFORMED)
def test_malformed_files(tmp_path: Path, name: str, content: str | bytes, line: int | None, told: str) -> None:
    path = write(tmp_path, content, name)
    with pytest.raises(FileFormatError, match=told) as caught:
        read_hierarchy(path)
    assert (caught.value.path, caught.value.line) == (path, line)


def test_files_that_are_none(tmp_path: Path) -> None:
    for suffix in (".csv", ".json", ".obo"):
        with pytest.raises(MissingFileError, match="no such file"):
            read_hierarchy(tmp_path / f"nowhere{suffix}")
        (tmp_path / f"folder{suffix}").mkdir()
        with pytest.raises(FileFormatError, match="it is a folder"):
            read_hierarchy(tmp_path / f"folder{suffix}")


@pytest.mark.parametrize(
    "given",
    [
        Hierarchy.from_edges([("a", "b"), ("b", "c")]),
        [("a", "b"), ("b", "c")],
        (["a", "b"], ["b", "c"]),
        {("a", "b"), ("b", "c")},
        networkx.DiGraph([("a", "b"), ("b", "c")]),
    ],
    ids=["hierarchy", "list", "tuple", "set", "graph"],
)
def test_what_people_have(given: Any) -> None:
    assert as_hierarchy(given).edges == (("a", "b"), ("b", "c"))


def test_nested_names_and_files_that_people_have(tmp_path: Path) -> None:
    nodes = ("a", "a > b", "a > c")
    assert as_hierarchy({"a": {"b": {}, "c": {}}}).nodes == nodes
    path = write(tmp_path, "path\na.b\na.c\n")
    assert as_hierarchy(path, separator=".").nodes == as_hierarchy(str(path), separator=".").nodes == nodes


@pytest.mark.parametrize("given", [5, np.zeros((2, 2)), iter([("a", "b")])])
def test_what_is_no_hierarchy(given: Any) -> None:
    with pytest.raises(ArgumentError, match="hierarchy must be a Hierarchy, a file, nested names in a dict, a list of"):
        as_hierarchy(given)


def test_graphs_that_are_no_hierarchies() -> None:
    for graph, told in (
        (networkx.Graph([("a", "b")]), "must be directed"),
        (networkx.DiGraph([("a", "b"), ("b", "a")]), "cycle"),
        (networkx.DiGraph([(1, 2)]), "must be text"),
    ):
        with pytest.raises(HierarchyError, match=told):
            from_networkx(graph)
    assert from_networkx(networkx.MultiDiGraph([("a", "b"), ("a", "b")])).edges == (("a", "b"),)
    with pytest.raises(RarenodeError, match="expected names, got 3"):
        from_nested({"a": 3})


# --- check -----------------------------------------------------------------------------------------------------------


def problems(folder: Path, content: str, name: str = "h.csv") -> list[str]:
    return [str(problem) for problem in check(read_draft(write(folder, content, name)))]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("parent,child\na,b\na,c\n", []),
        ("parent,child\na,b\nx,y\n", ["note: it has 2 roots: 'a', 'x'"]),
        ("parent,child\na,b\na,c\na,b\n", ["warning: line 4: 'b' below 'a' is repeated, as in line 2"]),
        ("id,parent\na,\nb,a\nb,a\n", [
            "warning: line 4: 'b' below 'a' is repeated, as in line 3",
            "warning: line 4: 'b' is defined again; the first is in line 3",
        ]),
        ("id,parent\nTop,\nBlack_coral,Top\nblack  Coral,Top\n", [
            "warning: line 4: 'black  Coral' and 'Black_coral' differ only in spelling; are they one node?"
        ]),
        ("parent,child\na,b\nb,a\nb,c\nr,s\n", [
            "error: line 2: a cycle: b -> a -> b; lines 2, 3",
            "warning: line 4: 1 more node without a path from a root: 'c'",
        ]),
        ("parent,child\na,b\nb,a\nx,y\ny,x\nz,z\n", [
            "error: line 2: a cycle: b -> a -> b; lines 2, 3", "error: line 4: a cycle: y -> x -> y; lines 4, 5",
            "error: line 6: 'z' is its own parent",
        ]),
        ("id,parent\na,q\nb,\n", [
            "error: line 2: the parent 'q' of 'a' has no line of its own; add one, or correct the name",
        ]),
        ("taxon\nOnly\n", ["note: it has a single node"]),
    ],
)  # fmt: skip
def test_check(tmp_path: Path, content: str, expected: list[str]) -> None:
    assert problems(tmp_path, content) == expected


def test_a_long_cycle_is_shown_in_part(tmp_path: Path) -> None:
    edges = "".join(f"n{number},n{(number + 1) % 30}\n" for number in range(30))
    (found,) = problems(tmp_path, f"parent,child\n{edges}")
    assert "(30 nodes in all)" in found
    assert found.count("->") <= 13


# --- drawing ---------------------------------------------------------------------------------------------------------


def test_a_drawing() -> None:
    assert list(draw_tree(TREE, [9, 1, 5, 3, 2, 2])) == [
        "Biota  9", "├── Corals  5", "│   ├── Black  2", "│   └── Soft  2", "└── Sponges  3", "Rock  1",
    ]  # fmt: skip
    assert list(draw_tree(TREE, depth=1)) == ["Biota", "├── Corals  ... 2 below", "└── Sponges", "Rock"]
    for root in ("Biota > Corals", "Corals"):
        assert list(draw_tree(TREE, root=root)) == ["Corals", "├── Black", "└── Soft"]
    with pytest.raises(HierarchyError, match="'Fish' is not one of the hierarchy's 6 nodes"):
        list(draw_tree(TREE, root="Fish"))


def test_a_node_with_several_parents_is_drawn_below_each() -> None:
    dag = Hierarchy.from_edges([("a", "c"), ("b", "c"), ("c", "d")])
    assert list(draw_tree(dag)) == ["a", "└── c", "    └── d", "b", "└── c  (see above)"]


def test_ids_are_drawn_with_their_names() -> None:
    named = Hierarchy.from_edges([("T:1", "T:2")]).with_terms(Terms(("life", "coral")))
    assert list(draw_tree(named)) == ["T:1 life", "└── T:2 coral"]


@given(graphs())
def test_every_node_is_drawn(graph: Graph) -> None:
    lines = list(draw_tree(graph.build()))
    assert {line.split("── ")[-1].removesuffix("  (see above)") for line in lines} == set(graph.nodes)
    assert len(lines) <= len(graph.nodes) + len(graph.edges)


def test_a_drawing_does_not_grow_with_the_square_of_the_depth() -> None:
    chain = Hierarchy.from_edges([(f"n{level}", f"n{level + 1}") for level in range(40_000)])
    lines = list(draw_tree(chain))
    assert len(lines) == 201
    assert lines[-1].endswith("n200  ... 39,800 below")
    assert list(draw_tree(chain, root="n39999")) == ["n39999", "└── n40000"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_no_spreadsheet_sees_a_formula(tmp_path: Path, suffix: str) -> None:
    hierarchy = Hierarchy.from_edges([("=cmd|1", "-1+1"), ("=cmd|1", "'@x")])
    write_hierarchy(hierarchy, tmp_path / f"h{suffix}")
    write_hierarchy(hierarchy, tmp_path / f"raw{suffix}", raw=True)
    cells = re.split("[,\t\n]", (tmp_path / f"h{suffix}").read_text())
    assert {"'=cmd|1", "'-1+1", "''@x"} < set(cells)
    assert not [cell for cell in cells if cell.startswith(tuple("=+-@"))]
    assert "\n=cmd|1" in (tmp_path / f"raw{suffix}").read_text()
    assert read_hierarchy(tmp_path / f"h{suffix}") == hierarchy


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".obo"])
def test_a_title_that_could_not_be_read_again_is_refused(suffix: str, tmp_path: Path) -> None:
    odd = Hierarchy.from_edges([("a", "b")]).with_terms(Terms(("A", "B\0")))
    with pytest.raises(ArgumentError, match=r"the title .* contains a null character; write \.json instead"):
        write_hierarchy(odd, tmp_path / f"h{suffix}")
    write_hierarchy(odd, tmp_path / "h.json")
    assert read_hierarchy(tmp_path / "h.json").titles == odd.titles
