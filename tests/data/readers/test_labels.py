"""Labels of tables: every form of them, what names stand for, and what is refused with which words."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode import Dataset, Hierarchy
from rarenode.diagnosis.data_checks import examine
from rarenode.errors import DataError, FileFormatError, MissingFileError, RarenodeError
from rarenode.hierarchy import read_hierarchy
from tests import oracles
from tests.data.readers.test_tables import write

TREE = Hierarchy.from_paths(["Biota > Corals > Black", "Biota > Corals > Soft", "Biota > Sponges", "Rock"])
OBO = """format-version: 1.2
[Term]
id: T:1
name: life
namespace: living

[Term]
id: T:2
name: coral
namespace: living
alt_id: T:20
is_a: T:1

[Term]
id: T:3
name: old coral
is_obsolete: true
replaced_by: T:2

[Term]
id: T:4
name: forgotten
is_obsolete: true

[Term]
id: T:5
name: rock
namespace: dead
alt_id: T:50

[Term]
id: T:6
name: old rock
namespace: dead
is_obsolete: true
replaced_by: T:5
"""


def labels_of(data: Dataset) -> list[set[str]]:
    return [set(each) for each in data.hierarchy.decode(data.Y)]


def sets(folder: Path, *cells: str, hierarchy: Any = TREE, **options: Any) -> Dataset:
    rows = "".join(f'{row},"{cell}"\n' for row, cell in enumerate(cells))
    return Dataset.read(write(folder, f"x,y\n{rows}"), labels="y", hierarchy=hierarchy, **options)


# --- the same labels in every form -----------------------------------------------------------------------------------


def as_cell(labels: set[str]) -> str:
    return "; ".join(sorted(labels))


@given(st.data())
def test_all_forms_are_the_same(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Sets, paths, levels, indicators and a long file of the same labels, against plain loops."""
    folder = tmp_path_factory.getbasetemp()
    one = st.sampled_from(TREE.nodes)
    chosen: list[str] = data.draw(st.lists(one, min_size=1, max_size=6))
    chosen += [leaf for leaf in TREE.leaves if leaf not in chosen]  # so that every form has the whole hierarchy
    encoded = TREE.encode([[label] for label in chosen])
    expected = oracles.close(encoded, TREE)

    frame = pl.DataFrame({"id": [f"r{row}" for row in range(len(chosen))], "x": 1.0})
    paths = frame.with_columns(y=pl.Series(chosen))
    levels = frame.with_columns(
        pl.Series(f"level_{depth}", [dict(enumerate(label.split(" > "))).get(depth, "") for label in chosen])
        for depth in range(3)
    )
    indicators = frame.with_columns(
        pl.Series(node, encoded[:, place].astype(int)) for place, node in enumerate(TREE.nodes)
    )
    closed = frame.with_columns(pl.Series(node, expected[:, place]) for place, node in enumerate(TREE.nodes))
    long = folder / "long.csv"
    pl.DataFrame({"id": frame["id"], "label": chosen}).write_csv(long)
    read = {
        "paths": Dataset.read(paths, id="id", labels="y"),
        "slashes": Dataset.read(paths.with_columns(pl.col("y").str.replace_all(" > ", "/")), id="id", labels="y"),
        "sets": Dataset.read(paths, id="id", labels="y", hierarchy=TREE),
        "levels": Dataset.read(levels, id="id", labels="level_*"),
        "levels, known": Dataset.read(levels, id="id", labels="level_*", hierarchy=TREE),
        "closed indicators": Dataset.read(closed, id="id", labels=list(TREE.nodes), hierarchy=TREE),
        "long": Dataset.read(frame, id="id", labels=str(long)),
        "long, known": Dataset.read(frame, id="id", labels=str(long), hierarchy=TREE),
    }
    for form, found in read.items():
        assert found.hierarchy == TREE, form
        np.testing.assert_array_equal(found.Y, expected, form)
        assert found.known is None, form
        assert found.feature_names == ("x",), form
    contradicting = (expected & ~encoded).any()
    if contradicting:  # an ancestor that is 0
        with pytest.raises(DataError, match=r"is said to be absent, but .* which is below it, present"):
            Dataset.read(indicators, id="id", labels=list(TREE.nodes), hierarchy=TREE)


@pytest.mark.parametrize(("separator", "cell"), [(";", "Rock;Biota"), ("|", "Rock | Biota"), (", ", "Rock, Biota")])
def test_any_separator(tmp_path: Path, separator: str, cell: str) -> None:
    assert labels_of(sets(tmp_path, cell, f"{cell}{separator}", separator=separator)) == [{"Rock", "Biota"}] * 2


@pytest.mark.parametrize("separator", [" > ", "/", "|", "::", "\\", "→", None])
def test_any_separator_of_paths(tmp_path: Path, separator: str | None) -> None:
    """Guessed or given, with the hierarchy or without."""
    join = separator or ">"
    cells = [node.replace(" > ", join) for node in TREE.nodes]
    for hierarchy in (None, TREE):
        for options in ({}, {"path_separator": join}):
            found = sets(tmp_path, *cells, hierarchy=hierarchy, **options)
            assert found.hierarchy == TREE
            assert labels_of(found) == labels_of(sets(tmp_path, *TREE.nodes))


def test_equal_names_under_different_parents_stay_different(tmp_path: Path) -> None:
    path = write(tmp_path, "x,a,b\n1,Corals,Other\n2,Sponges,Other\n3,Sponges,\n")
    data = Dataset.read(path, labels=["a", "b"])
    assert data.hierarchy.nodes == ("Corals", "Sponges", "Corals > Other", "Sponges > Other")
    assert labels_of(data) == [{"Corals", "Corals > Other"}, {"Sponges", "Sponges > Other"}, {"Sponges"}]


def test_names_with_greater_signs_in_levels(tmp_path: Path) -> None:
    path = write(tmp_path, "x,a,b\n1,Size,>5 cm\n2,Size,<5 cm\n")
    assert Dataset.read(path, labels=["a", "b"]).hierarchy.nodes == ("Size", "Size > <5 cm", "Size > >5 cm")
    with pytest.raises(FileFormatError, match="line 2: column 'b': 'y > z' contains ' > ', which separates levels"):
        Dataset.read(write(tmp_path, "x,a,b\n1,Size,y > z\n"), labels=["a", "b"])


def test_a_blank_cell_is_a_row_without_labels(tmp_path: Path) -> None:
    data = sets(tmp_path, "Rock", "", " ; ")
    assert data.known is not None
    assert data.known.all(axis=1).tolist() == [True, False, False]
    levels = Dataset.read(write(tmp_path, "x,a,b\n1,Rock,\n2,,\n"), labels=["a", "b"], hierarchy=TREE)
    assert levels.known is not None
    assert levels.known.any(axis=1).tolist() == [True, False]


def test_levels_that_are_all_blank(tmp_path: Path) -> None:
    data = Dataset.read(write(tmp_path, "x,a,b\n1,,\n2,,\n"), labels=["a", "b"], hierarchy=TREE)
    assert data.known is not None
    assert not data.known.any()


@pytest.mark.parametrize(
    ("yes", "no"), [("1", "0"), ("yes", "no"), ("TRUE", "FALSE"), ("x", "-"), ("present", "absent"), ("1.0", "0.0")]
)
def test_indicators(tmp_path: Path, yes: str, no: str) -> None:
    path = write(tmp_path, f"x,Corals,Sponges,Rock\n1,{yes},{no},\n2,{no},{no},{yes}\n3,,,\n")
    data = Dataset.read(path, labels=["Corals", "Sponges", "Rock"], hierarchy=TREE)
    assert labels_of(data) == [{"Biota", "Biota > Corals"}, {"Rock"}, set()]
    known = data.known
    assert known is not None
    assert known[:, TREE.index["Rock"]].tolist() == [False, True, False]
    assert known[:, TREE.index["Biota > Corals > Black"]].tolist() == [True, True, False]


def test_unknown_below(tmp_path: Path) -> None:
    data = sets(tmp_path, "Corals", "Black", unknown="below")
    assert data.known is not None
    below = [TREE.index[node] for node in ("Biota > Corals > Black", "Biota > Corals > Soft")]
    assert data.known[:, below].tolist() == [[False, False], [True, True]]
    assert data.known[:, TREE.index["Rock"]].all()


# --- which node a label stands for -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "label", ["Black", "Biota > Corals > Black", "Biota>Corals>Black", "Corals > Black", " Black ", "Corals >Black"]
)
def test_names_paths_and_parts_of_paths(tmp_path: Path, label: str) -> None:
    assert labels_of(sets(tmp_path, label)) == [{"Biota", "Biota > Corals", "Biota > Corals > Black"}]


def test_ids_aliases_and_titles_of_an_ontology(tmp_path: Path) -> None:
    ontology = read_hierarchy(write(tmp_path, OBO, "t.obo"))
    for label in ("T:2", "T:20", "T:3", "coral", "life > coral", "T:1 > T:2"):
        assert labels_of(sets(tmp_path, label, hierarchy=ontology)) == [{"T:1", "T:2"}]
    assert labels_of(sets(tmp_path, "T:6; T:50; rock", hierarchy=ontology)) == [{"T:5"}]


def test_labels_of_other_namespaces_say_nothing(tmp_path: Path) -> None:
    living = read_hierarchy(write(tmp_path, OBO, "t.obo"), namespaces=["living"])
    data = sets(tmp_path, "T:5; T:2", "T:5", "T:50", "T:6", "T:1", hierarchy=living)
    assert labels_of(data) == [{"T:1", "T:2"}, set(), set(), set(), {"T:1"}]
    assert data.known is not None
    assert data.known.all(axis=1).tolist() == [True, False, False, False, True]


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "told"),
    [
        ("Balck", "the label 'Balck' is not in the hierarchy of 6 nodes; did you mean 'Black'?"),
        ("Corals > Balck", "did you mean 'Biota > Corals > Black'?"),
        ("Sponges > Black", "the label 'Sponges > Black' is not in the hierarchy"),
        ("Granite", "the label 'Granite' is not in the hierarchy of 6 nodes$"),
        ("z" * 5000, "the label 'z{200}'\\.\\.\\. is not in the hierarchy"),
        (">", "is not in the hierarchy"),
    ],
)
def test_labels_that_are_not_there(tmp_path: Path, label: str, told: str) -> None:
    with pytest.raises(FileFormatError, match=f"t\\.csv, line 3: column 'y': .*{told}"):
        sets(tmp_path, "Rock", label)


def test_all_unknown_labels_are_listed(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="2 more labels are not in it either") as caught:
        sets(tmp_path, "Rokc; a", "b; a")
    assert [detail.partition("t.csv, ")[2][:25] for detail in caught.value.details] == [
        "line 2: column 'y': the l", "line 2: column 'y': the l", "line 3: column 'y': the l",
    ]  # fmt: skip


def test_ambiguous_and_obsolete_labels(tmp_path: Path) -> None:
    twice = Hierarchy.from_paths(["A > Other", "B > Other"])
    with pytest.raises(FileFormatError, match="'Other' is the name of several nodes; write the path to it"):
        sets(tmp_path, "Other", hierarchy=twice)
    ontology = read_hierarchy(write(tmp_path, OBO, "t.obo"))
    with pytest.raises(FileFormatError, match=r"line 2: .*'T:4' is obsolete, and nothing replaces it; remove it or"):
        sets(tmp_path, "T:4", hierarchy=ontology)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("x,a,b,c\n1,,Corals,\n", r"line 2: column 'b' is 'Corals', but the level above it, 'a', is blank"),
        (
            "x,a,b,c\n1,Rock,,\n2,Biota,,Black\n",
            r"line 3: column 'c' is 'Black', but the level above it, 'b', is blank",
        ),
        ("x,a,b,c\n1,Biota,Koralle,\n", r"line 2: columns 'a' to 'c': the label 'Biota > Koralle' is not in"),
    ],
)
def test_levels_that_are_refused(tmp_path: Path, content: str, told: str) -> None:
    with pytest.raises(FileFormatError, match=told):
        Dataset.read(write(tmp_path, content), labels=["a", "b", "c"], hierarchy=TREE)


def test_indicators_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"line 2: column 'Korals': the label 'Korals' is not in .* 'Corals'"):
        Dataset.read(write(tmp_path, "x,Rock,Korals\n1,1,0\n"), labels=["Rock", "Korals"], hierarchy=TREE)
    with pytest.raises(FileFormatError, match="line 3: column 'Corals': 'Biota > Corals' is said to be absent, but"):
        path = write(tmp_path, "x,Corals,Black\n1,1,1\n2,0,1\n")
        Dataset.read(path, labels=["Corals", "Black"], hierarchy=TREE)


def test_an_indicator_that_is_neither(tmp_path: Path) -> None:
    path = write(tmp_path, "x,Rock,Corals\n" + "1,1,0\n2,0,1\n" * 5 + "3,0,2\n")
    told = r"line 12: column 'Corals': expected 1, 0, yes, no or blank for unknown, as in most cells, got '2'"
    with pytest.raises(FileFormatError, match=told):
        Dataset.read(path, labels=["Rock", "Corals"], hierarchy=TREE)


def test_a_blank_indicator_is_unknown_though_its_parent_has_no_column() -> None:
    frame = pl.DataFrame({"x": [1, 2, 3], "Black": ["0", "1", "0"], "Soft": ["", "0", "0"]})
    data = Dataset.read(frame, labels=["Black", "Soft"], hierarchy=TREE)
    assert data.known is not None
    unknown = [{node for node, known in zip(TREE.nodes, row, strict=True) if not known} for row in data.known]
    assert unknown == [{"Biota", "Biota > Corals", "Biota > Corals > Soft"}, set(), set()]


def test_names_that_contain_the_separator(tmp_path: Path) -> None:
    data = sets(tmp_path, "Arrows > A->B", "Arrows > C", hierarchy=None)
    assert data.hierarchy.nodes == ("Arrows", "Arrows > A->B", "Arrows > C")
    assert labels_of(sets(tmp_path, "A->B", hierarchy=data.hierarchy)) == [{"Arrows", "Arrows > A->B"}]


def test_a_name_with_a_slash_is_no_path(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'and/or', are single names and say nothing of a hierarchy"):
        sets(tmp_path, "and/or", "Biota", "Rock", hierarchy=None)
    assert "and > or" in sets(tmp_path, "and/or", "Biota", hierarchy=None, path_separator="/").hierarchy


# --- a file of labels ------------------------------------------------------------------------------------------------

TABLE = "id,x\na,1\nb,2\nc,3\n"


def long(folder: Path, content: str | bytes, name: str = "labels.csv", **options: Any) -> Dataset:
    labels = write(folder, content, name)
    table = write(folder, TABLE)
    return Dataset.read(table, **{"id": "id", "labels": str(labels), "hierarchy": TREE, **options})


@pytest.mark.parametrize(
    "content",
    [
        "id,label\na,Black\nb,Rock\na,Rock\nz,Sponges\n",
        "a,Black\nb,Rock\na,Rock\n",
        "id\tlabel\na\tBlack\na\tRock\nb\tRock\n",
        "id;label;value\na;Black;1\na;Rock;yes\nb;Rock;TRUE\n",
        gzip.compress(b"id,label\na,Black\nb,Rock\na,Rock\n", mtime=0),
    ],
)
def test_a_long_file(tmp_path: Path, content: str | bytes) -> None:
    data = long(tmp_path, content)
    assert labels_of(data)[0] == {"Rock", "Biota", "Biota > Corals", "Biota > Corals > Black"}
    assert labels_of(data)[1] == {"Rock"}
    assert data.known is not None
    assert data.known.any(axis=1).tolist() == [True, True, False]
    assert data.reading is not None
    assert data.reading.labels == ()


def test_three_values_in_a_long_file(tmp_path: Path) -> None:
    data = long(tmp_path, "id,label,value\na,Corals,1\na,Soft,unknown\na,Black,no\nb,Corals,0\nb,Rock,1\nc,Biota,1\n")
    assert labels_of(data) == [{"Biota", "Biota > Corals"}, {"Rock"}, {"Biota"}]
    assert data.known is not None
    assert [TREE.nodes[column] for column in np.flatnonzero(~data.known[0])] == ["Biota > Corals > Soft"]
    assert data.known[1:].all()


@pytest.mark.parametrize(
    ("content", "error", "told"),
    [
        ("id,label\nx,Rock\n", DataError, r"no id of .*labels\.csv is one of the ids of .*t\.csv: .* 'x' and 'a'"),
        ("id,label\na,Rock\na,\n", FileFormatError, r"labels\.csv, line 3: the id or the label is blank"),
        ("id,label\na,Rock\n,Rock\n", FileFormatError, r"line 3: the id or the label is blank"),
        ("id\na\n", FileFormatError, r"line 1: expected the columns id, label and perhaps value, got 1 column"),
        ("id,label,value,by\na,Rock,1,me\n", FileFormatError, r"line 1: expected the columns .*, got 4 columns"),
        ("id,label,value\na,Rock,maybe\n", FileFormatError, r"line 2: expected 1, 0, yes, no or unknown .*'maybe'"),
        ("id,label\na,Rock\nb,Rokc\n", FileFormatError, r"labels\.csv, line 3: the label 'Rokc' .* mean 'Rock'"),
        ("id,label\n", FileFormatError, r"labels\.csv: it has no labels"),
        ("", FileFormatError, r"labels\.csv: the file is empty"),
        ("id,label\na\n", FileFormatError, "line 2: expected 2 fields"),
        ("id,label,value\na,Rock,1\na,Rock,0\n", FileFormatError, "line 3: 'Rock' is said to be absent, but present"),
        ("id,label,value\na,Biota,0\nb,Rock,1\na,Black,1\n", FileFormatError,
         "line 2: 'Biota' is said to be absent, but 'Biota > Corals > Black', which is below it, present; remove one"),
    ],
)  # fmt: skip
def test_long_files_that_are_refused(tmp_path: Path, content: str, error: type[RarenodeError], told: str) -> None:
    with pytest.raises(error, match=told):
        long(tmp_path, content)


def test_a_file_of_labels_and_ids(tmp_path: Path) -> None:
    with pytest.raises(RarenodeError, match=r"name the column of ids in .*t\.csv \(--id\)"):
        long(tmp_path, "id,label\na,Rock\n", id=None)
    with pytest.raises(MissingFileError, match=r"nowhere\.csv: no such file, and no column of"):
        Dataset.read(write(tmp_path, TABLE), id="id", labels=str(tmp_path / "nowhere.csv"))
    with pytest.raises(FileFormatError, match="the id 'a' in column 'id' appears twice"):
        Dataset.read(write(tmp_path, "id,x\na,1\na,2\n"), id="id", labels=str(write(tmp_path, "a,Rock\n", "l.csv")))
    pl.DataFrame({"id": ["a"], "label": ["Rock"]}).write_parquet(tmp_path / "l.parquet")
    with pytest.raises(FileFormatError, match="a file of labels must be text"):
        Dataset.read(write(tmp_path, TABLE), id="id", labels=str(tmp_path / "l.parquet"))


def test_ids_that_the_table_does_not_have_are_noted(tmp_path: Path) -> None:
    (note,) = long(tmp_path, "id,label\na,Black\nz,Rock\ny,Rock\nz,Biota\n").notes
    assert re.fullmatch(r"2 of 3 ids of .*labels\.csv are not in .*t\.csv, such as 'z'", note)
    assert [each.text for each in examine(long(tmp_path, "id,label\na,Black\nz,Rock\n")).findings if "'z'" in each.text]
    assert long(tmp_path, "id,label\na,Black\n").notes == ()


# --- words that may be missing ---------------------------------------------------------------------------------------

WORDS = ("NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "?")


def rows_with(hierarchy: Hierarchy, data: Dataset) -> list[list[str]]:
    return [[node for node, has in zip(hierarchy.nodes, row, strict=True) if has] for row in data.Y]


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_a_node_called_na_is_no_missing_label(tmp_path: Path, word: str, suffix: str) -> None:
    tree = Hierarchy.from_edges([("Africa", word), ("Africa", "ZA")])
    other = next(each for each in WORDS if each != word)
    frame = pl.DataFrame({"x": [1, 2, 3, 4, 5], "y": [word, f"ZA;{word}", "ZA", None, other]})
    path = tmp_path / f"t{suffix}"
    if suffix == ".parquet":
        frame.write_parquet(path)
    else:
        frame.write_csv(path, separator="," if suffix == ".csv" else "\t")
    for source in (path, frame):
        data = Dataset.read(source, labels="y", hierarchy=tree)
        expected = [{"Africa", word}, {"Africa", "ZA", word}, {"Africa", "ZA"}, set(), set()]
        assert [set(each) for each in rows_with(tree, data)] == expected
        assert data.known is not None
        assert data.known.all(axis=1).tolist() == [True, True, True, False, False]


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("by_path", [False, True])
def test_a_level_called_na(tmp_path: Path, word: str, by_path: bool) -> None:
    paths = [f"Africa > {word}", "Africa > ZA > Cape", "Asia > IN"]
    edges = [("Africa", word), ("Africa", "ZA"), ("ZA", "Cape"), ("Asia", "IN")]
    tree = Hierarchy.from_paths(paths) if by_path else Hierarchy.from_edges(edges)
    path = write(
        tmp_path,
        f"x,a,b,c\n1,Africa,{word},\n2,Africa,{word},{word}\n3,Africa,ZA,{word}\n4,Asia,{word},\n5,{word},,\n",
    )
    data = Dataset.read(path, labels=["a", "b", "c"], hierarchy=tree)
    last = [[node.split(" > ")[-1] for node in row] for row in rows_with(tree, data)]
    assert [set(row) - {"Root"} for row in last][:4] == [
        {"Africa", word},
        {"Africa", word},
        {"Africa", "ZA"},
        {"Asia"},
    ]


def test_words_for_missing_without_a_hierarchy(tmp_path: Path) -> None:
    rows = "\n".join(f"{number},{word}" for number, word in enumerate(WORDS))
    data = Dataset.read(write(tmp_path, f"x,y\n8,Biota > Corals\n9,\n{rows}\n"), labels="y")
    assert data.hierarchy.nodes == ("Biota", "Biota > Corals")
    assert data.known is not None
    assert data.known.all(axis=1).tolist() == [True] + [False] * 9


def test_words_for_missing_beside_lists_and_indicators(tmp_path: Path) -> None:
    tree = Hierarchy.from_edges([("0", "1"), ("0", "NA")])
    lists = Dataset.read(write(tmp_path, "x,y\n1,[1]\n2,NA\n"), labels="y", hierarchy=tree)
    assert rows_with(tree, lists) == [["0", "1"], []]
    yes = Dataset.read(write(tmp_path, "x,1,NA\n1,1,null\n2,N/A,1\n"), labels=["1", "NA"], hierarchy=tree)
    assert yes.Y.astype(int).tolist() == [[1, 1, 0], [1, 0, 1]]
    assert yes.known is not None
    assert yes.known.astype(int).tolist() == [[1, 1, 0], [1, 0, 1]]
