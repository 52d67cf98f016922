"""GAF: which annotations count, whose rows they are, and what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from rarenode import Dataset, Hierarchy
from rarenode.errors import ArgumentError, DataError, FileFormatError, RarenodeError
from tests.data.readers.test_tables import write

TERMS = Hierarchy.from_edges([("P:1", "P:2"), ("P:2", "P:3"), ("F:1", "F:2")])
TABLE = "gene,x\nG1,1\nG2,2\nG3,3\n"


def line(key: str, term: str, code: str = "IDA", qualifier: str = "involved_in", tail: int = 17) -> str:
    fields = ["DB", key, f"s{key}", qualifier, term, "REF", code, "", term[0], *[""] * 8]
    return "\t".join(fields[:tail])


LINES = [
    "!gaf-version: 2.2",
    line("G1", "P:3", "IDA"),
    line("G1", "F:2", "IEA"),
    line("G2", "P:1", "IMP", tail=15),
    line("G2", "P:2", "IDA", "NOT|involved_in"),
    line("G9", "P:2", "IDA"),
    "",
]


def annotated(folder: Path, *lines: str, table: str = TABLE, name: str = "a.gaf", **options: Any) -> Dataset:
    content = "\n".join(lines or LINES).encode()
    path = write(folder, gzip.compress(content, mtime=0) if name.endswith(".gz") else content, name)
    return Dataset.read(write(folder, table), id="gene", labels=str(path), hierarchy=TERMS, **options)


def labels_of(data: Dataset) -> list[set[str]]:
    return [set(each) for each in data.hierarchy.decode(data.Y)]


@pytest.mark.parametrize("name", ["a.gaf", "a.gaf.gz", "A.GAF"])
def test_annotations(tmp_path: Path, name: str) -> None:
    data = annotated(tmp_path, name=name)
    assert labels_of(data) == [{"P:1", "P:2", "P:3", "F:1", "F:2"}, {"P:1"}, set()]
    assert data.known is not None
    assert data.known.all(axis=1).tolist() == [True, True, False]
    assert not data.known[2].any()


def test_not_holds_for_descendants_where_the_rest_is_unknown(tmp_path: Path) -> None:
    """Below P:1 all would be unknown."""
    known = annotated(tmp_path, unknown="below").known
    without = annotated(tmp_path, *(each for each in LINES if "NOT" not in each), unknown="below").known
    assert known is not None
    assert without is not None
    below = [TERMS.index["P:2"], TERMS.index["P:3"]]
    assert known[1, below].tolist() == [True, True]
    assert without[1, below].tolist() == [False, False]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"evidence": "IDA"}, [{"P:1", "P:2", "P:3"}, set(), set()]),
        ({"evidence": ["IMP", "IEA"]}, [{"F:1", "F:2"}, {"P:1"}, set()]),
        ({"exclude_evidence": "IEA"}, [{"P:1", "P:2", "P:3"}, {"P:1"}, set()]),
        ({"evidence": ["IDA", "IEA"], "exclude_evidence": ["IDA"]}, [{"F:1", "F:2"}, set(), set()]),
        ({"aspects": "F"}, [{"F:1", "F:2"}, set(), set()]),
        ({"aspects": ["F", "P"]}, [{"P:1", "P:2", "P:3", "F:1", "F:2"}, {"P:1"}, set()]),
    ],
)
def test_filters(tmp_path: Path, options: dict[str, Any], expected: list[set[str]]) -> None:
    assert labels_of(annotated(tmp_path, **options)) == expected


def test_a_code_that_the_file_does_not_have(tmp_path: Path) -> None:
    assert labels_of(annotated(tmp_path, exclude_evidence="ND")) == labels_of(annotated(tmp_path))


@pytest.mark.parametrize("qualifier", ["NOT", "not", " NOT ", "NOT|enables", "enables| not"])
def test_spellings_of_not(tmp_path: Path, qualifier: str) -> None:
    data = annotated(tmp_path, line("G1", "P:1"), line("G1", "P:2", qualifier=qualifier))
    assert labels_of(data)[0] == {"P:1"}


def test_rows_may_be_named_by_symbols(tmp_path: Path) -> None:
    by_symbol = annotated(tmp_path, table=TABLE.replace("G", "sG"))
    assert by_symbol.ids == ("sG1", "sG2", "sG3")
    assert labels_of(by_symbol) == labels_of(annotated(tmp_path))


@pytest.mark.parametrize(
    ("lines", "options", "error", "told"),
    [
        ([""], {}, FileFormatError, r"a\.gaf: the file is empty"),
        (["!gaf-version: 2.2"], {}, FileFormatError, r"a\.gaf: it has no annotations"),
        ([*LINES[:2], "G1\tP:1"], {}, FileFormatError, "line 3: expected 15 to 17 columns separated by tabs, got 2"),
        ([line("", "P:1")], {}, FileFormatError, r"line 1: the object's id \(column 2\) or the term .* is blank"),
        ([line("G1", "P:1").replace("P:1", "")], {}, FileFormatError, r"line 1: .* is blank"),
        ([line("G1", "P:1"), line("G1", "X:1")], {}, FileFormatError, r"line 2: expected the aspect P, F or C .*'X'"),
        ([line("G1", "P:1"), line("G2", "P:9")], {}, FileFormatError, r"line 2: the label 'P:9' is not in the hier"),
        ([line("G1", "P:3"), line("G1", "P:2", qualifier="NOT")], {}, FileFormatError,
         r"a\.gaf, line 2: 'P:2' is said to be absent, but 'P:3', which is below it, present; remove one"),
        ([line("g1", "P:3")], {}, DataError, r"no id of .*a\.gaf is one of the ids of .*t\.csv: .* 'g1' and 'G1'"),
        (LINES, {"evidence": "EXP"}, ArgumentError, "no annotation is left; it has the evidence codes IDA, IEA, IMP"),
        (LINES, {"exclude_evidence": "IAE"}, ArgumentError, "no evidence code 'IAE'; .*a.gaf has IDA, IEA, IMP"),
        (LINES, {"evidence": ["IDA", "IAE"]}, ArgumentError, "there is no evidence code 'IAE'"),
        (LINES, {"aspects": "BP"}, ArgumentError, r"there is no aspect 'BP'; choose among P \(biological_process\)"),
    ],
)  # fmt: skip
def test_what_is_refused(
    tmp_path: Path, lines: list[str], options: dict[str, Any], error: type[RarenodeError], told: str
) -> None:
    with pytest.raises(error, match=told):
        annotated(tmp_path, *lines, **options)


def test_a_truncated_file(tmp_path: Path) -> None:
    path = write(tmp_path, gzip.compress("\n".join(LINES * 50).encode())[:-12], "a.gaf.gz")
    with pytest.raises(FileFormatError, match="it cannot be unpacked"):
        Dataset.read(write(tmp_path, TABLE), id="gene", labels=str(path), hierarchy=TERMS)
