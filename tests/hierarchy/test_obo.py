"""OBO against a parser of a few lines, and against the public one `obonet`."""

from __future__ import annotations

import gzip
import io
import os
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode.errors import FileFormatError
from rarenode.hierarchy import Hierarchy, read_hierarchy
from rarenode.hierarchy.draft import check
from rarenode.hierarchy.files import read_draft
from tests.hierarchy.test_files import write

SMALL = r"""format-version: 1.2
default-namespace: living
! a comment
[Term]
id: T:1
name: life

[Term]
id: T:2 ! coral
name: hard\, \{stony\} coral \! yes {source="me"} ! a comment
alt_id: T:20
alt_id: T:21
is_a: T:1 {is_inferred="true"} ! life
synonym: "stone: coral" EXACT []

[Term]
id: T:3
name: polyp
relationship: part_of T:2 ! coral
relationship: regulates T:1
intersection_of: T:1

[Typedef]
id: part_of
name: part of
is_transitive: true

[Term]
id: T:4
name: gone
is_obsolete: true
replaced_by: T:5
alt_id: T:40

[Term]
id: T:5
name: gone too
is_obsolete: true
replaced_by: T:21

[Term]
id: T:6
name: forgotten
is_obsolete: true
consider: T:2

[Term]
id: T:7
name: either
is_obsolete: true
replaced_by: T:1
replaced_by: T:2

[Term]
id: T:8
name: rock
namespace: dead
relationship: part_of T:1
"""


def parse_slowly(text: str) -> dict[str, dict[str, list[str]]]:
    """Every term with the values of its tags, comments and modifiers removed."""
    terms: dict[str, dict[str, list[str]]] = {}
    for stanza in re.split(r"\n(?=\[)", text):
        if not stanza.startswith("[Term]"):
            continue
        tags: dict[str, list[str]] = defaultdict(list)
        for line in stanza.splitlines()[1:]:
            if line.strip() and not line.startswith("!"):
                tag, value = line.split(": ", 1)
                tags[tag].append(re.sub(r"( \{.*?\})?( !.*)?$", "", value))
        terms[tags["id"][0]] = tags
    return terms


def edges_slowly(terms: dict[str, dict[str, list[str]]], relations: set[str]) -> set[tuple[str, str]]:
    current = {key for key, tags in terms.items() if tags["is_obsolete"] != ["true"]}
    found = {(parent, key) for key in current for parent in terms[key]["is_a"] if "is_a" in relations}
    for key in current:
        for relation, parent in (value.split(" ") for value in terms[key]["relationship"]):
            if relation in relations:
                found.add((parent, key))
    return found


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write(tmp_path, SMALL, "t.obo")


def test_terms_and_what_is_said_of_them(small: Path) -> None:
    found = read_hierarchy(small)
    assert found == Hierarchy.from_edges([("T:1", "T:2")], nodes=["T:3", "T:8"])
    assert found.titles == ("life", "polyp", "rock", "hard, {stony} coral ! yes")
    terms = found.terms
    assert terms is not None
    assert terms.namespaces == ("living", "living", "dead", "living")
    assert terms.aliases == {"T:20": "T:2", "T:21": "T:2", "T:4": "T:2", "T:40": "T:2", "T:5": "T:2"}
    assert terms.obsolete == {"T:4", "T:5", "T:6", "T:7"}
    assert terms.excluded == frozenset()


def test_relations(small: Path) -> None:
    found = read_hierarchy(small, relations=["is_a", "part_of"])
    assert set(found.edges) == {("T:1", "T:2"), ("T:1", "T:8"), ("T:2", "T:3")}
    assert set(read_hierarchy(small, relations=["part_of"]).edges) == {("T:1", "T:8"), ("T:2", "T:3")}
    with pytest.raises(FileFormatError, match="no term has the relation 'partof'; there are is_a, part_of, regulates"):
        read_hierarchy(small, relations=["partof"])


def test_namespaces(small: Path) -> None:
    found = read_hierarchy(small, namespaces=["dead"], relations=["is_a", "part_of"])
    assert (found.nodes, found.edges) == (("T:8",), ())
    assert found.terms is not None
    assert found.terms.excluded == {"T:1", "T:2", "T:3", "T:20", "T:21", "T:4", "T:40", "T:5"}
    with pytest.raises(FileFormatError, match="no term is in the namespace 'alive'; there are: dead, living"):
        read_hierarchy(small, namespaces=["alive"])


def test_gzip_line_breaks_and_a_byte_order_mark(tmp_path: Path, small: Path) -> None:
    expected = read_hierarchy(small)
    for content in (SMALL.replace("\n", "\r\n").encode(), SMALL.encode("utf-8-sig"), SMALL.encode("utf-16")):
        found = read_hierarchy(write(tmp_path, gzip.compress(content, mtime=0), "u.obo.gz"))
        assert (found, found.terms) == (expected, expected.terms)


def test_replacements_in_a_circle_are_nothing(tmp_path: Path) -> None:
    text = "[Term]\nid: a\n" + "".join(
        f"[Term]\nid: {here}\nis_obsolete: true\nreplaced_by: {there}\n" for here, there in ("xy", "yx", "zz", "wa")
    )
    terms = read_hierarchy(write(tmp_path, text, "t.obo")).terms
    assert terms is not None
    assert terms.aliases == {"w": "a"}


def test_a_parent_may_be_named_by_an_alternative_id(tmp_path: Path) -> None:
    path = write(tmp_path, "[Term]\nid: a\nalt_id: x\n\n[Term]\nid: b\nis_a: x\n", "t.obo")
    assert read_hierarchy(path).edges == (("a", "b"),)


@pytest.mark.parametrize(
    ("content", "line", "told"),
    [
        ("", None, "the file is empty"),
        ("format-version: 1.2\n", None, r"it has no \[Term\] that is not obsolete"),
        ("[Term]\nid: a\nis_obsolete: true\n", None, r"it has no \[Term\] that is not obsolete"),
        ("[Term]\nname: a\n", 1, r"this \[Term\] has no id"),
        ("[Term]\nid: a\n\n[Term]\nname: b\n\n[Term]\nid: c\n", 4, r"this \[Term\] has no id"),
        ("[Term]\nid: a\n\n[Term]\nid: a\n", 4, "the term 'a' is already defined in line 1"),
        ("[Term]\nid: a\nnonsense\n", 3, "expected 'tag: value' or a stanza such as .Term., got 'nonsense'"),
        ("id,parent\na,b\n", 1, "expected 'tag: value'"),
        ("[Term]\nid: a\nis_a: b ! bee\n", 3, "a has the parent 'b', which is no term of this file, or obsolete"),
        ("[Term]\nid: a\nis_a: b\n[Term]\nid: b\nis_obsolete: true\n", 3, "which is no term of this file, or obsolete"),
        ("[Term]\nid: a\nrelationship: part_of\n", 3, "expected 'relationship: relation id', got 'part_of'"),
        ("[Term]\nid: a\nid: b\n", 3, r"this \[Term\] already has the id 'a'"),
        ("[Term]\nid: a\nis_a:\n", 3, "expected 'is_a: id', got no id"),
        ("[Term]\nid: a\nalt_id: x\n[Term]\nid: b\nalt_id: x\n", 4, "'x' is an alternative id of 'a' and of 'b'"),
        ("[Term]\nid: a\nis_a: a\n", 3, "'a' is its own parent"),
        ("[Term]\nid: a\nis_a: b\n[Term]\nid: b\nis_a: c\n[Term]\nid: c\nis_a: a\n", 3, "a cycle: .*; lines 3, 6, 9"),
        ("[Term]\nid: caf\xe9\n".encode("latin-1"), 2, "expected UTF-8"),
        ("[Term]\nid: a\n".encode("utf-16-le"), 1, "null character"),
        (gzip.compress(SMALL.encode(), mtime=0)[:-9], None, "it cannot be unpacked"),
    ],
)
def test_malformed_files(tmp_path: Path, content: str | bytes, line: int | None, told: str) -> None:
    path = write(tmp_path, content, "t.obo")
    with pytest.raises(FileFormatError, match=told) as caught:
        read_hierarchy(path)
    assert (caught.value.path, caught.value.line) == (path, line)


def test_check_knows_lines_too(tmp_path: Path) -> None:
    path = write(tmp_path, "[Term]\nid: a\nis_a: b\n[Term]\nid: b\nis_a: a\n[Term]\nid: c\nis_a: a\n", "t.obo")
    assert [str(problem) for problem in check(read_draft(path))] == [
        "error: line 3: a cycle: a -> b -> a; lines 3, 6",
        "warning: line 7: 1 more node without a path from a root: 'c'",
    ]


# --- oracles ---------------------------------------------------------------------------------------------------------


BEHIND = ("", " ! note", ' {a="b"} ! note', ' {a="b"}')


@st.composite
def ontologies(draw: st.DrawFn) -> str:
    """Terms in any order, of which some are obsolete, with references that lead to current terms above them."""
    count = draw(st.integers(1, 8))
    obsolete = [number > 0 and draw(st.integers(0, 4)) == 0 for number in range(count)]
    stanzas = []
    for number in range(count):
        lines = [f"id: T:{number}", f"name: name {number}{draw(st.sampled_from(BEHIND))}"]
        above = [other for other in range(number) if not obsolete[other]]
        if obsolete[number]:
            lines.append("is_obsolete: true")
            lines += [f"replaced_by: T:{draw(st.integers(0, count - 1))}"] if draw(st.booleans()) else []
        elif above:
            for tag in ("is_a:", "relationship: part_of", "relationship: regulates"):
                for other in draw(st.sets(st.sampled_from(above), max_size=2)):
                    lines.append(f"{tag} T:{other}{draw(st.sampled_from(BEHIND))}")
        lines += [f"alt_id: A:{number}"] if draw(st.booleans()) else []
        stanzas.append("\n".join(["[Term]", *lines]))
    return "format-version: 1.2\n\n" + "\n\n".join(draw(st.permutations(stanzas))) + "\n"


@given(ontologies(), st.sets(st.sampled_from(["is_a", "part_of"]), min_size=1))
def test_any_ontology(tmp_path_factory: pytest.TempPathFactory, text: str, relations: set[str]) -> None:
    path = write(tmp_path_factory.getbasetemp(), text, "any.obo")
    terms = parse_slowly(text)
    current = [key for key, tags in terms.items() if tags["is_obsolete"] != ["true"]]
    if "part_of" in relations and not any("part_of" in line for key in current for line in terms[key]["relationship"]):
        return
    found = read_hierarchy(path, relations=relations)
    assert set(found.nodes) == set(current)
    assert set(found.edges) == edges_slowly(terms, relations)
    assert [terms[node]["name"][0] for node in found.nodes] == list(found.titles)


def compare_with_obonet(text: str, path: Path, relations: set[str]) -> None:
    obonet = pytest.importorskip("obonet", reason="obonet is in the extra dev")
    graph: Any = obonet.read_obo(io.StringIO(text))
    edges = {(parent, child) for child, parent, relation in graph.edges(keys=True) if relation in relations}
    found = read_hierarchy(path, relations=relations)
    assert set(found.nodes) == set(graph.nodes)
    assert set(found.edges) == edges
    assert dict(zip(found.nodes, found.titles, strict=True)) == dict(graph.nodes(data="name"))
    assert found.terms is not None
    alternatives = {other: node for node, others in graph.nodes(data="alt_id") for other in others or ()}
    assert alternatives.items() <= found.terms.aliases.items()


@given(ontologies())
def test_obonet_reads_the_same(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    compare_with_obonet(text, write(tmp_path_factory.getbasetemp(), text, "net.obo"), {"is_a"})


@pytest.mark.real_data
@pytest.mark.slow
def test_obonet_reads_the_same_gene_ontology() -> None:
    path = Path(os.environ["RARENODE_DATA"]) / "go_human" / "go-basic.obo.gz"
    if not path.is_file():
        pytest.skip("the Gene Ontology is not there")
    text = gzip.decompress(path.read_bytes()).decode()
    for relations in ({"is_a"}, {"is_a", "part_of", "regulates"}):
        compare_with_obonet(text, path, relations)
        assert set(read_hierarchy(path, relations=relations).edges) == edges_slowly(parse_slowly(text), relations)
