"""Tables: which columns are what, what each kind of cell becomes, and what is refused with which words."""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode import Dataset, Hierarchy
from rarenode.data.readers import frames, read
from rarenode.data.readers.frames import scan_table
from rarenode.data.table_options import Expected, TableOptions
from rarenode.errors import ArgumentError, DataError, FileFormatError, MissingFileError, RarenodeError

TREE = Hierarchy.from_paths(["Biota > Corals", "Biota > Sponges"])
HEADER = "image,depth,ground,taxa"
ROWS = ["a,1.5,sand,Biota > Corals", "b,2,mud,Biota > Sponges", "c,,sand,Biota"]


def write(folder: Path, content: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def table(folder: Path, *rows: str, header: str = HEADER, name: str = "t.csv") -> Path:
    return write(folder, "\n".join([header, *(rows or ROWS)]) + "\n", name)


def survey(*sources: Any, **options: Any) -> Dataset:
    return Dataset.read(*sources, **{"labels": "taxa", "id": "image", **options})


# --- what is read ----------------------------------------------------------------------------------------------------


def test_a_survey(tmp_path: Path) -> None:
    data = survey(table(tmp_path))
    assert data.ids == ("a", "b", "c")
    assert data.feature_names == ("depth", "ground")
    assert data.X["depth"].to_list()[:2] == [1.5, 2.0]
    assert math.isnan(data.X["depth"][2])
    assert data.X["ground"].to_list() == ["sand", "mud", "sand"]
    assert data.hierarchy == TREE
    assert data.Y.astype(int).tolist() == [[1, 1, 0], [1, 0, 1], [1, 0, 0]]
    assert data.known is None


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".tab", ".txt", ".csv.gz", ".parquet", ".pq", ".arrow", ".ipc"])
def test_every_format_gives_the_same_rows(tmp_path: Path, suffix: str) -> None:
    expected = survey(table(tmp_path))
    frame = pl.read_csv(tmp_path / "t.csv")
    path = tmp_path / f"other{suffix}"
    match suffix:
        case ".parquet" | ".pq":
            frame.write_parquet(path)
        case ".arrow" | ".ipc":
            frame.write_ipc(path)
        case ".csv.gz":
            path.write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
        case _:
            frame.write_csv(path, separator="," if suffix == ".csv" else "\t")
    found = survey(path)
    assert (found.fingerprint, found.hierarchy, found.ids) == (expected.fingerprint, TREE, expected.ids)


@pytest.mark.parametrize("kind", ["polars", "pandas", "pandas with an index"])
def test_data_frames(tmp_path: Path, kind: str) -> None:
    path = table(tmp_path)
    expected = survey(path)
    if kind == "polars":
        found = survey(pl.read_csv(path))
    elif kind == "pandas":
        found = survey(pd.read_csv(path))
    else:
        found = Dataset.read(pd.read_csv(path, index_col="image"), labels="taxa")
    assert (found.fingerprint, found.ids, found.name) == (expected.fingerprint, expected.ids, "the data frame")


def test_several_files_are_one_table(tmp_path: Path) -> None:
    parts = [table(tmp_path, row, name=f"part-{place}.csv") for place, row in enumerate(ROWS)]
    nothing = write(tmp_path, HEADER + "\n", "part-9.csv")
    expected = survey(table(tmp_path))
    for sources in ([*parts, nothing], [nothing, *parts]):
        found = survey(*sources)
        assert (found.fingerprint, found.ids) == (expected.fingerprint, expected.ids)
    pl.read_csv(parts[1]).write_parquet(tmp_path / "b.parquet")
    assert survey(parts[0], tmp_path / "b.parquet", parts[2]).fingerprint == expected.fingerprint


def test_excel_s_csv(tmp_path: Path) -> None:
    text = "image;depth;ground;taxa;;\r\n" + "".join(f"{row.replace(',', ';').replace('.', ',')};;\r\n" for row in ROWS)
    found = survey(write(tmp_path, text.encode("utf-8-sig")))
    assert found.fingerprint == survey(table(tmp_path)).fingerprint


def test_patterns_and_purposes(tmp_path: Path) -> None:
    path = write(tmp_path, "key,f_1,f_2,g,w,note,taxa\na,1,2,3,0.5,x,Biota > Corals\nb,4,5,6,2,y,Biota > Sponges\n")
    purposes: dict[str, Any] = {"labels": "taxa", "id": "key", "weight": "w"}
    assert Dataset.read(path, **purposes, features="f_*").feature_names == ("f_1", "f_2")
    assert Dataset.read(path, **purposes, features=["g", "f_1"]).feature_names == ("g", "f_1")
    assert Dataset.read(path, **purposes, ignore=["note", "f_?"]).feature_names == ("g",)
    assert Dataset.read(path, **purposes, features="*", ignore="note").feature_names == ("f_1", "f_2", "g")
    weights = Dataset.read(path, **purposes).sample_weight
    assert weights is not None
    assert weights.tolist() == [0.5, 2.0]


@pytest.mark.parametrize("missing", ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "?"])
def test_missing_values(tmp_path: Path, missing: str) -> None:
    data = survey(table(tmp_path, f"a,{missing},{missing},Biota > Corals", "b,2,mud,Biota > Sponges"))
    assert np.isnan(data.X["depth"].to_numpy()).tolist() == [True, False]
    assert data.X["ground"].to_list() == [None, "mud"]


WORDS = ("NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "?")


@pytest.mark.parametrize(
    ("suffix", "stream"), [(".csv", False), (".tsv", False), (".parquet", False), (".parquet", True), ("frame", False)]
)
def test_rows_may_be_called_na(tmp_path: Path, suffix: str, stream: bool) -> None:
    frame = pl.DataFrame({"image": WORDS, "depth": [*"1234567", "NA"], "taxa": ["Biota > Corals"] * 8})
    source: Any = frame
    if suffix == ".parquet":
        source = tmp_path / "t.parquet"
        frame.write_parquet(source)
    elif suffix != "frame":
        source = tmp_path / f"t{suffix}"
        frame.write_csv(source, separator="," if suffix == ".csv" else "\t")
    data = survey(source, stream=stream)
    assert data.ids == WORDS
    np.testing.assert_array_equal(np.isnan(np.asarray(data.X[np.arange(8)])).ravel(), [False] * 7 + [True])


def test_words_that_are_missing_elsewhere_and_ids_of_labels(tmp_path: Path) -> None:
    labels = write(tmp_path, "id,label\nNA,Biota > Corals\n?,Biota > Sponges\n", "labels.csv")
    data = survey(write(tmp_path, "image,x,y\nNA,1,b\n?,NA,?\n"), labels=labels)
    assert data.ids == ("NA", "?")
    assert data.Y.astype(int).tolist() == [[1, 1, 0], [1, 0, 1]]
    with pytest.raises(FileFormatError, match="the id in column 'image' is missing"):
        survey(write(tmp_path, "image,x,y\nNA,1,b\n ,NA,?\n"), labels=labels)


@pytest.mark.parametrize(("yes", "no"), [("true", "false"), ("True", "False"), ("TRUE", "FALSE")])
def test_booleans_are_numbers(tmp_path: Path, yes: str, no: str) -> None:
    data = survey(table(tmp_path, f"a,1,{yes},Biota > Corals", f"b,2,{no},Biota > Sponges", "c,3,,Biota"))
    np.testing.assert_array_equal(data.X, [[1, 1], [2, 0], [3, np.nan]])


def test_booleans_that_are_text() -> None:
    frame = pl.DataFrame({"x": ["True", "FALSE", None], "taxa": ["Biota > Corals", "Biota", "Biota"]})
    np.testing.assert_array_equal(Dataset.read(frame, labels="taxa").X, [[1], [0], [np.nan]])
    few = pl.DataFrame({"x": ["true", "maybe"], "taxa": ["Biota > Corals", "Biota"]})
    assert Dataset.read(few, labels="taxa").X["x"].to_list() == ["true", "maybe"]


def test_ids_and_labels_are_never_numbers(tmp_path: Path) -> None:
    path = write(tmp_path, "id,x,y\n007,1,1/01\n8,2,1/02\n")
    data = Dataset.read(path, id="id", labels="y")
    assert data.ids == ("007", "8")
    assert data.hierarchy.nodes == ("1", "1 > 01", "1 > 02")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
@pytest.mark.parametrize("name", ['width 2"', '"', 'a "b" c', 'a,b "c"', 'tab\t"', 'two\nlines "', "a;b|c", "' \"x"])
def test_names_of_columns_with_quotes(tmp_path: Path, name: str, suffix: str) -> None:
    rows: dict[str, list[Any]] = {"id": ["a", "b"], name: [1.5, 2.5], 'taxa "t"': ["Biota > Corals", 'Biota > "x"']}
    frame = pl.DataFrame(rows)
    path = tmp_path / f"t{suffix}"
    if suffix == ".parquet":
        frame.write_parquet(path)
    else:
        frame.write_csv(path, separator="," if suffix == ".csv" else "\t")
    data = Dataset.read(path, id="id", labels='taxa "t"')
    assert data.feature_names == (name,)
    np.testing.assert_array_equal(data.X, [[1.5], [2.5]])
    assert set(data.hierarchy.nodes) == {"Biota", 'Biota > "x"', "Biota > Corals"}


def test_numbers_with_45_digits(tmp_path: Path) -> None:
    data = survey(table(tmp_path, f"a,{'1' * 45},true,Biota > Corals", "b,2,false,Biota"))
    assert data.X.tolist() == [[float("1" * 45), 1], [2, 0]]


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ('image,depth,taxa\na,"1,234",Biota > C\nb,"0,5",Biota\n', [1.234, 0.5]),
        ('image,depth,taxa\na,"1,234",Biota > C\nb,"0,567",Biota\n', [1.234, 0.567]),
        ("image;depth;taxa\na;1,234;Biota > C\nb;999;Biota\n", [1.234, 999]),
    ],
)
def test_decimal_commas(tmp_path: Path, content: str, values: list[float]) -> None:
    assert survey(write(tmp_path, content)).X[:, 0].tolist() == values


def test_commas_in_categories(tmp_path: Path) -> None:
    data = survey(table(tmp_path, 'a,1,"1,234",Biota > Corals', "b,2,sand,Biota", "c,3,mud,Biota"))
    assert data.X["ground"].to_list() == ["1,234", "sand", "mud"]


@pytest.mark.parametrize("quote", ["", '"'])
def test_blanks_around_missing_words(tmp_path: Path, quote: str) -> None:
    data = survey(table(tmp_path, f"a, NA ,{quote}sand{quote}, ?", "b,2, NA,Biota > Sponges"))
    assert np.isnan(data.X["depth"].to_numpy()).tolist() == [True, False]
    assert data.X["ground"].to_list() == ["sand", None]
    assert data.known is not None
    assert data.known.any(axis=1).tolist() == [False, True]


@pytest.mark.parametrize("kind", ["pandas", "polars", "categories", "parquet", "arrow"])
def test_missing_words_are_missing_in_every_format(tmp_path: Path, kind: str) -> None:
    rows = ["a,NA,sand,Biota > Corals", "b,2,?,NA", "c,3, mud,Biota > Sponges"]
    expected = survey(table(tmp_path, *rows))
    frame = pl.read_csv(tmp_path / "t.csv", infer_schema=False)
    source: Any = frame
    if kind == "pandas":
        source = pd.DataFrame(frame.to_dict(as_series=False))
    elif kind == "categories":
        source = frame.with_columns(pl.col("depth", "ground").cast(pl.Categorical))
    elif kind != "polars":
        source = tmp_path / f"t.{kind}"
        frame.write_parquet(source) if kind == "parquet" else frame.write_ipc(source)
    found = survey(source)
    assert (found.fingerprint, found.ids) == (expected.fingerprint, expected.ids)
    assert expected.known is not None
    assert not expected.known[1].any()


@pytest.mark.parametrize(
    "make",
    [
        lambda sets: pl.DataFrame({"x": [1, 2, 3], "taxa": sets}),
        lambda sets: pd.DataFrame({"x": [1, 2, 3], "taxa": sets}),
        lambda sets: pd.DataFrame({"x": [1, 2, 3], "taxa": [each and set(each) for each in sets]}),
        lambda sets: pd.DataFrame({"x": [1, 2, 3], "taxa": [each and tuple(each) for each in sets]}),
        lambda sets: pd.DataFrame({"x": [1, 2, 3], "taxa": [each and np.array(each) for each in sets]}),
    ],
    ids=["polars", "lists", "sets", "tuples", "arrays"],
)
def test_a_column_of_lists_has_the_labels_of_each_row(tmp_path: Path, make: Callable[[Any], Any]) -> None:
    sets = [["Biota > Corals", "Biota > Sponges"], None, ["Biota > Sponges"]]
    found = Dataset.read(make(sets), labels="taxa")
    assert found.Y.astype(int).tolist() == [[1, 1, 1], [0, 0, 0], [1, 0, 1]]
    assert found.known is not None
    assert found.known.any(axis=1).tolist() == [True, False, True]
    pl.DataFrame({"x": [1, 2, 3], "taxa": sets}).write_parquet(tmp_path / "t.parquet")
    assert Dataset.read(tmp_path / "t.parquet", labels="taxa").fingerprint == found.fingerprint


@pytest.mark.parametrize(
    ("column", "values", "told"),
    [
        ("taxa", [{"a": 1}, {"a": 2}], "column 'taxa' contains Struct.*; expected labels, one in each row"),
        ("taxa", [[["a"]], [["b"]]], r"column 'taxa' contains List\(List"),
        ("taxa", [b"\xff", b"a"], "column 'taxa' contains bytes that are not UTF-8 text"),
        ("image", [["a"], ["b"]], r"column 'image' contains List\(String\); expected ids, one in each row"),
        ("image", [b"\xff", b"a"], "column 'image' contains bytes that are not UTF-8 text"),
    ],
)
def test_ids_and_labels_that_are_no_text(column: str, values: list[Any], told: str) -> None:
    frame = pl.DataFrame({"image": ["a", "b"], "depth": [1, 2], "taxa": ["Biota > Corals"] * 2})
    with pytest.raises(DataError, match=f"the data frame: {told}"):
        survey(frame.with_columns(pl.Series(column, values)))


@pytest.mark.parametrize("kind", ["boolean", "Int64", "Float64"])
def test_pandas_numbers_with_missing_values(kind: str) -> None:
    frame = pd.DataFrame({"x": pd.array([1, None, 0], dtype=kind), "taxa": ["Biota > Corals"] * 3})
    np.testing.assert_array_equal(Dataset.read(frame, labels="taxa").X, [[1], [np.nan], [0]])


def test_ids_and_labels_that_are_numbers_in_a_data_frame() -> None:
    """A missing value makes pandas write 1 as 1.0."""
    frame = pd.DataFrame({"image": [7.0, 8.0, 9.0], "depth": [1, 2, 3], "taxa": [1.0, None, 2.0]})
    data = survey(frame, hierarchy=[("0", "1"), ("0", "2")])
    assert data.ids == ("7", "8", "9")
    assert data.Y.astype(int).tolist() == [[1, 1, 0], [0, 0, 0], [1, 0, 1]]


def test_pandas_strings_with_missing_values() -> None:
    frame = pd.DataFrame({"x": [1, 2], "ground": ["sand", None], "taxa": ["Biota > Corals", None]})
    frame = frame.astype({"ground": "string", "taxa": "string"})
    data = Dataset.read(frame, labels="taxa")
    assert data.X["ground"].to_list() == ["sand", None]
    assert data.known is not None
    assert data.known.any(axis=1).tolist() == [True, False]


@pytest.mark.parametrize("index", [pd.RangeIndex(300, 302), pd.RangeIndex(2, name="sample"), pd.Index(["p", "q"])])
def test_the_index_of_a_pandas_frame_has_the_ids(index: Any) -> None:
    frame = pd.DataFrame({"x": [1, 2], "taxa": ["Biota > Corals"] * 2}, index=index)
    assert Dataset.read(frame, labels="taxa").ids == tuple(map(str, index))
    named = frame.rename_axis("sample")
    assert Dataset.read(named, labels="taxa", id="sample").ids == tuple(map(str, index))
    with pytest.raises(ArgumentError, match=r"has no column 'other' \(--id\)"):
        Dataset.read(named, labels="taxa", id="other")
    assert Dataset.read(frame.reset_index(drop=True), labels="taxa").ids is None


@pytest.mark.parametrize(
    "hierarchy",
    [
        [("Biota", "Corals"), ("Biota", "Sponges")],
        {"Biota": ["Corals", "Sponges"]},
        networkx.DiGraph([("Biota", "Corals"), ("Biota", "Sponges")]),
    ],
    ids=["edges", "nested", "graph"],
)
def test_hierarchies_that_are_no_file(tmp_path: Path, hierarchy: Any) -> None:
    path = table(tmp_path, "a,1,sand,Corals", "b,2,mud,Sponges")
    assert survey(path, hierarchy=hierarchy).Y.astype(int).tolist() == [[1, 1, 0], [1, 0, 1]]
    Y = [[0, 1, 0], [0, 0, 1]]
    assert Dataset.from_arrays([[1], [2]], Y, hierarchy).Y.astype(int).tolist() == [[1, 1, 0], [1, 0, 1]]


def test_labels_that_are_no_columns(tmp_path: Path) -> None:
    labels = pl.DataFrame({"id": ["a", "b"], "label": ["Biota > Corals", "Biota"]})
    path = table(tmp_path, "a,1,sand", "b,2,mud", header="image,depth,ground")
    with pytest.raises(ArgumentError, match="labels must be names of columns or a file, got DataFrame; join it to the"):
        survey(path, labels=labels)
    labels.write_csv(tmp_path / "labels.csv")
    assert survey(path, labels=tmp_path / "labels.csv").Y.astype(int).tolist() == [[1, 1], [1, 0]]


def test_a_node_called_root_counts() -> None:
    frame = pl.DataFrame({"x": [1, 2], "taxa": ["root > stem", "root"]})
    assert Dataset.read(frame, labels="taxa").scored.all()


numbers = st.floats(-1e12, 1e12) | st.integers(-(10**12), 10**12).map(float) | st.none()
words = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=5)


@given(
    rows=st.lists(st.tuples(numbers, words), min_size=1, max_size=6),
    delimiter=st.sampled_from(",;\t|"),
    comma=st.booleans(),
    by=st.sampled_from(["csv", "pandas", "polars"]),
)
def test_what_others_write_is_read_as_it_was(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[float | None, str]],
    delimiter: str,
    comma: bool,
    by: str,
) -> None:
    path = tmp_path_factory.getbasetemp() / "by.csv"
    rows = [(0.5, "first"), *rows]  # a column of commas before three digits might have thousands
    values = [value for value, _ in rows]
    ids = [f"{word}{place}" for place, (_, word) in enumerate(rows)]
    labels = ["Biota > Corals"] * len(rows)
    if by == "csv":
        shown = ["" if v is None else repr(v).replace(".", "," if comma else ".") for v in values]
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL if comma else csv.QUOTE_MINIMAL)
            writer.writerow(["image", "depth", "other", "taxa"])
            writer.writerows(zip(ids, shown, "5" * len(rows), labels, strict=True))
    elif by == "pandas":
        frame = pd.DataFrame({"image": ids, "depth": pd.Series(values, dtype=float), "other": 5, "taxa": labels})
        frame.to_csv(path, index=False, sep=delimiter, decimal="," if comma else ".")
    else:
        columns = {"image": ids, "depth": pl.Series(values, dtype=pl.Float64), "other": 5, "taxa": labels}
        pl.DataFrame(columns).write_csv(path, separator=delimiter, decimal_comma=comma)
    data = survey(path)
    assert data.ids == tuple(ids)
    np.testing.assert_array_equal(data.X[:, 0], [np.nan if value is None else value for value in values])


# --- what is refused -------------------------------------------------------------------------------------------------

TEXTS = [f"a long sentence about photograph number {number}" for number in range(30)]

MALFORMED = [
    # content, line, words of the message
    (HEADER + "\n", None, "it has no rows"),
    (HEADER, None, "it has no rows"),
    (f"{HEADER}\na,1,sand\n", 2, "expected 4 fields as in the header, got 3"),
    (f"{HEADER}\na,1,sand,Biota,x\n", 2, "expected 4 fields as in the header, got 5"),
    (f"{HEADER}\n\na,1,sand\n", 3, "expected 4 fields as in the header, got 3"),
    ("image,depth,depth,taxa\na,1,2,Biota\n", 1, "columns 2 and 3 have the same name 'depth'"),
    ("image,,ground,taxa\na,1,2,Biota\n", 1, "column 2 has no name"),
    (",image,depth,ground,taxa\n0,a,1,2,Biota\n", 1, "column 1 has no name"),
    (f"{HEADER}\na,1,s,Biota > Corals\n\n , ,\t, \na,2,s,Biota > Corals\n", 5, "'a' in column 'image' appears twice"),
    (f"{HEADER}\na,1,s,Biota > C\n , ,\t, \na,2,s,Biota > C\n", 4, "'a' in column 'image' appears twice"),
    (f"{HEADER}\na,1,s,Biota > Corals\n,2,s,Biota > Corals\n", 3, "the id in column 'image' is missing"),
    (f"{HEADER}\na,1,s,Biota > Corals\nb,inf,s,Biota\n", 3, "column 'depth': expected a number up to .*got inf"),
    (f"{HEADER}\na,1,s,Biota > Corals\nb,-1e300,s,Biota\n", 3, "column 'depth': expected a number up to .*got -1e"),
    (f'{HEADER}\na,"1,5",s,Biota > C\nb,1e400,s,Biota\n', 3, "column 'depth': expected a number up to .*got inf"),
    (HEADER + "".join(f"\n{n},{n},s,Biota > C" for n in range(9)) + "\nx,<5,s,Biota", 11,
     "column 'depth': expected a number, got '<5'; leave a missing value blank, or begin every value with a letter"),
    (f"{HEADER}\na,1,s,Biota > C\nb,2,s,Biota\nc,n.d.,s,Biota\nd,low,s,Biota\n", 4,
     "column 'depth': expected a number, got 'n.d.'"),
    (f"{HEADER}\na,1,s,Biota > C\nb,٣,s,Biota\n", 3, "column 'depth': expected a number, got '٣'"),
    (f"{HEADER}\na,1,s,Biota > C\nb,{'٣' * 99},s,Biota\n", 3, r"expected a number, got '٣{40}\.\.\.'"),
    (f'{HEADER}\na,999,s,Biota > C\nb,"1,234",s,Biota\n', 3,
     "column 'depth': the comma in '1,234' may separate thousands or decimals; write 1234 or 1.234"),
    (f'{HEADER}\na,9.5,s,Biota > C\nb,"1,234",s,Biota\n', 3, "the comma in '1,234' may separate thousands"),
    (f'{HEADER}\na,999,s,Biota > C\nb,"-1,234,567",s,Biota\n', 3, "decimals; write -1234567$"),
    (f'{HEADER}\na,999,s,Biota > C\nb,"1,234.5",s,Biota\n', 3,
     "column 'depth': '1,234.5' has thousands separators; remove them"),
    (f'{HEADER}\na,"1,5",s,Biota > C\nb,"1.234,0",s,Biota\n', 3, "'1.234,0' has thousands separators"),
    (f'{HEADER}\na,"1,5",s,Biota > C\nb,2.5,s,Biota\n', 2, "column 'depth': expected a number, got '1,5'"),
    (HEADER + "".join(f"\n{n},2024-01-{n + 1:02d},s,Biota > C" for n in range(9)), None,
     "column 'depth' contains dates; replace it by numbers, such as the day of the year; or leave it out .--ignore"),
    (HEADER + "".join(f"\n{n},{n}.5.2024,s,Biota > C" for n in range(9)), None, "column 'depth' contains dates"),
    (HEADER + "".join(f"\n{n},12:3{n},s,Biota > C" for n in range(9)), None, "column 'depth' contains dates"),
    (HEADER + "".join(f"\n{n},1,{text},Biota > C" for n, text in enumerate(TEXTS)), None,
     "column 'ground' has 30 distinct values, such as .*, so it is an id or free text .*TfidfVectorizer; or leave"),
    (f"{HEADER}\nb,1,x,Biota\na,1,{'x' * 61},Biota > Corals\n", 3,
     "column 'ground': 'x{40}...' has 61 characters, more than the 60 of a category, so this is free text; turn"),
    (f"{HEADER}\na,1,s,Biota >\n", 2, "column 'taxa': the path 'Biota >' has an empty step"),
    (f"{HEADER}\na,1,s,Coral\n", None, "single names and say nothing of a hierarchy; give one .--hierarchy FILE"),
    (f"{HEADER}\na,1,s,\n", None, "no row has a label in 'taxa'"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "line", "told"), MALFORMED)
def test_malformed_tables(tmp_path: Path, content: str, line: int | None, told: str) -> None:
    path = write(tmp_path, content)
    with pytest.raises(RarenodeError, match=told) as caught:
        survey(path)
    assert line is None or f"{path}, line {line}: " in str(caught.value)
    assert line is not None or "single names" in str(caught.value) or str(path) in str(caught.value)


def test_the_file_and_line_among_several(tmp_path: Path) -> None:
    first, second = table(tmp_path, name="1.csv"), table(tmp_path, "x,1,mud,Biota", "a,1,mud,Biota", name="2.csv")
    with pytest.raises(FileFormatError, match=r"2\.csv, line 3: the id 'a' in column 'image' appears twice"):
        survey(first, second)
    with pytest.raises(DataError, match=r"2\.csv: its columns are not those of .*1\.csv: 'deep' is a column of only"):
        survey(first, table(tmp_path, header="image,deep,ground,taxa", name="2.csv"))
    with pytest.raises(DataError, match="their order differs"):
        survey(first, table(tmp_path, header="image,ground,depth,taxa", name="2.csv"))
    pl.DataFrame({"image": ["z"], "depth": [[1]], "ground": ["x"], "taxa": ["Biota"]}).write_parquet(tmp_path / "3.pq")
    with pytest.raises(DataError, match=r"column 'depth' contains .*List|3\.pq"):
        survey(first, tmp_path / "3.pq")


def test_text_among_the_numbers_of_another_file(tmp_path: Path) -> None:
    many = table(tmp_path, *(f"m{n},{n},mud,Biota > Corals" for n in range(9)), name="1.csv")
    with pytest.raises(FileFormatError, match=r"2\.csv, line 2: column 'depth': expected a number, got 'deep'"):
        survey(many, table(tmp_path, "x,deep,mud,Biota", name="2.csv"))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"labels": ()}, r"say where the labels of .*t\.csv are \(--labels\).*'image', 'depth', 'ground', 'taxa'"),
        ({"labels": "taxon"}, "has no column 'taxon', and there is no such file; it has 'image', 'depth'"),
        ({"labels": ["taxa", "level_*"]}, r"has no column 'level_\*'"),
        ({"id": "img"}, r"has no column 'img' \(--id\); it has 'image'"),
        ({"weight": "w"}, r"has no column 'w' \(--weight\)"),
        ({"features": "feature_*"}, r"has no column 'feature_\*'"),
        ({"features": ["depth", "taxa"]}, "the column 'taxa' cannot be a feature and something else"),
        ({"ignore": "grund"}, "has no column 'grund'"),
        ({"ignore": ["depth", "ground"]}, "no column is left for features"),
        ({"lables": "taxa"}, "unknown setting 'lables'; did you mean 'labels'"),
        ({"separator": ""}, "separator: "),
        ({"unknown": "some"}, "unknown: "),
        ({"weight": "ground"}, r"line 2: column 'ground': expected a number, got 'sand'"),
    ],
)
def test_options_that_do_not_fit(tmp_path: Path, options: dict[str, Any], told: str) -> None:
    with pytest.raises(RarenodeError, match=told):
        survey(table(tmp_path), **options)


def test_columns_with_long_names(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="has no column 'w'") as raised:
        survey(table(tmp_path, *ROWS, header=f"image,depth,{'g' * 10_000},taxa"), weight="w")
    assert len(str(raised.value)) < 1000


def test_parts_that_are_no_text() -> None:
    frame = pl.DataFrame({"a": [1], "part": [datetime.timedelta(1)], "taxa": ["Biota > Corals"]})
    with pytest.raises(DataError, match=r"column 'part' contains Duration.*; expected train, valid or test"):
        Dataset.read(frame, labels="taxa", partition="part")


@pytest.mark.parametrize("weight", ["-1", "", "inf", "1e39"])
def test_weights_that_are_none(tmp_path: Path, weight: str) -> None:
    path = table(tmp_path, "a,1,sand,Biota > Corals", f"b,{weight},sand,Biota")
    with pytest.raises(FileFormatError, match=r"line 3: .*column 'depth'"):
        survey(path, weight="depth")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("rows.xlsx", "the suffix '.xlsx'; known: .*; save the sheet as 'CSV UTF-8'"),
        ("rows.ods", "save the sheet as 'CSV UTF-8'"),
        ("rows", "no suffix; known: .arff, .csv"),
        ("rows.docx", "the suffix '.docx'"),
    ],
)
def test_formats_that_are_not_known(tmp_path: Path, name: str, told: str) -> None:
    with pytest.raises(FileFormatError, match=told):
        survey(write(tmp_path, b"PK\x03\x04", name))


def test_files_that_are_none(tmp_path: Path) -> None:
    for suffix in (".csv", ".parquet", ".arrow"):
        with pytest.raises(MissingFileError, match="no such file"):
            survey(tmp_path / f"nowhere{suffix}")
        (tmp_path / f"folder{suffix}").mkdir()
        with pytest.raises(FileFormatError, match=r"folder without pictures .*; name a file .* pattern such as .*csv"):
            survey(tmp_path / f"folder{suffix}")
    with pytest.raises(FileFormatError, match=r"ends in \.gz, but the file is not gzipped"):
        survey(write(tmp_path, "a,b\n", "t.csv.gz"))
    with pytest.raises(FileFormatError, match="cannot be joined with that of"):
        survey(table(tmp_path), write(tmp_path, "@relation x", "x.arff"))
    with pytest.raises(ArgumentError, match="no file is given"):
        read([])


def damage(content: bytes, how: str) -> bytes:
    middle = len(content) // 2
    return {
        "empty": b"",
        "half": content[:middle],
        "without its end": content[:-4],
        "text": b"image,depth\na,1\n",
        "other bytes inside": content[:12] + bytes(len(content) - 24) + content[-12:],
        "gzipped": gzip.compress(content, mtime=0),
    }[how]


@pytest.mark.parametrize("how", ["empty", "half", "without its end", "text", "other bytes inside", "gzipped"])
@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_damaged_binary_files(tmp_path: Path, suffix: str, how: str) -> None:
    file = io.BytesIO()
    frame = pl.DataFrame({"image": ["a", "b"], "depth": [1.0, 2.0], "taxa": ["Biota", "Biota > Corals"]})
    frame.write_parquet(file) if suffix == ".parquet" else frame.write_ipc(file)
    path = write(tmp_path, damage(file.getvalue(), how), f"t{suffix}")
    kind = "Parquet" if suffix == ".parquet" else "Arrow IPC"
    with pytest.raises(FileFormatError, match=f"it is damaged, or no {kind} file"):
        survey(path)
    with pytest.raises(FileFormatError, match=r"only text may be gzipped; unpack it"):
        survey(write(tmp_path, gzip.compress(file.getvalue(), mtime=0), f"t{suffix}.gz"))


def test_rows_of_binary_files_are_counted_from_one(tmp_path: Path) -> None:
    frame = pl.DataFrame({"image": ["a", "a"], "depth": [1.0, 2.0], "taxa": ["Biota", "Biota > Corals"]})
    frame.write_parquet(tmp_path / "t.parquet")
    with pytest.raises(FileFormatError, match=r"t\.parquet: row 2: the id 'a' in column 'image' appears twice"):
        survey(tmp_path / "t.parquet")
    frame.clear().write_parquet(tmp_path / "none.parquet")
    with pytest.raises(FileFormatError, match=r"none\.parquet: it has no rows"):
        survey(tmp_path / "none.parquet")


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([datetime.date(2024, 1, 2)] * 2, "column 'x' contains dates or times; replace it by numbers"),
        ([datetime.time(12, 5)] * 2, "column 'x' contains dates or times"),
        ([datetime.timedelta(hours=5)] * 2, "column 'x' contains dates or times"),
        ([[1, 2], [3]], r"column 'x' contains List\(Int64\); expected numbers, booleans or categories"),
        ([b"x", b"y"], "column 'x' contains Binary"),
        ([1.0, math.inf], "row 1: column 'x': expected a number up to"),
    ],
)
def test_columns_of_data_frames_that_cannot_be_features(values: list[Any], told: str) -> None:
    frame = pl.DataFrame({"x": values, "taxa": ["Biota > Corals", "Biota > Sponges"]})
    with pytest.raises(DataError, match=told):
        Dataset.read(frame, labels="taxa")


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_a_small_file_of_very_many_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    frame = pl.DataFrame({"x": [0.5] * 200_000, "taxa": ["Biota > Corals"] * 200_000})
    path = tmp_path / f"t{suffix}"
    if suffix == ".parquet":
        frame.write_parquet(path)
    else:
        frame.write_ipc(path, compression="zstd")
    assert len(Dataset.read(path, labels="taxa")) == 200_000
    monkeypatch.setattr(frames, "MOST_CELLS", 1000)
    monkeypatch.setattr(frames, "CELLS_BY_BYTE", 1)
    with pytest.raises(FileFormatError, match=r"it has 200,000 rows of 2 columns in [\d,]+ bytes, which take too much"):
        Dataset.read(path, labels="taxa")


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"a\ud800": [1, 2]}, "the name of the column 'a.ud800' is not valid Unicode text"),
        ({"x": ["a\ud800", "b"]}, "column 'x': 'a.ud800' is not valid Unicode text"),
    ],
)
def test_half_a_character_in_a_data_frame(columns: dict[str, list[Any]], told: str) -> None:
    frame = pd.DataFrame(columns | {"taxa": ["Biota > Corals", "Biota > Sponges"]})
    with pytest.raises(DataError, match=told):
        Dataset.read(frame, labels="taxa")


def test_half_a_character_in_an_index_is_stored() -> None:
    frame = pd.DataFrame({"x": [1, 2], "taxa": ["Biota > Corals", "Biota > Sponges"]}, index=["a\ud800", "b"])
    frame.index.name = "\ud800"
    assert Dataset.read(frame, labels="taxa").ids == ("a\\ud800", "b")


def test_data_frames_that_cannot_be_read() -> None:
    frame = pd.DataFrame({"x": [1, 2], "taxa": ["Biota > Corals"] * 2}, index=["a", "a"])
    with pytest.raises(DataError, match="the id 'a' in its index appears twice"):
        Dataset.read(frame, labels="taxa")
    twice = pd.DataFrame([[1, 2, "Biota > Corals"]], columns=["x", "x", "taxa"])
    with pytest.raises(DataError, match="two columns have the same name"):
        Dataset.read(twice, labels="taxa")
    with pytest.raises(DataError, match="the data frame has no rows"):
        Dataset.read(frame[:0], labels="taxa")
    with pytest.raises(DataError, match="only one data frame"):
        Dataset.read(frame, frame, labels="taxa")
    with pytest.raises(DataError, match="expected a file, or a pandas or polars data frame, got list"):
        Dataset.read([[1, 2]], labels="taxa")
    for values, told in (
        ([1, "a"], r"^column 'x' mixes values of several types \(int and str\); make them of one type$"),
        (pd.to_datetime(["2024-01-01"] * 2, utc=True), "column 'x' contains dates or times"),
        ([[1], "a"], r"mixes values of several types \(list and str\)"),
    ):
        with pytest.raises(DataError, match=told):
            Dataset.read(pd.DataFrame({"x": values, "taxa": ["Biota > Corals"] * 2}), labels="taxa")
    numbers = pd.DataFrame({"x": pd.Series([1, 2.5, None], dtype=object), "taxa": ["Biota > Corals"] * 3})
    np.testing.assert_array_equal(Dataset.read(numbers, labels="taxa").X, [[1], [2.5], [np.nan]])
    with pytest.raises(ArgumentError, match=r"say where the labels.*Rows without labels .*: Run\.predict takes"):
        Dataset.read(numbers)


# --- rows for a model ------------------------------------------------------------------------------------------------


def new_rows(path: Path, text: tuple[str, ...] = ("ground",), **options: Any) -> Dataset:
    reading = TableOptions(**{"labels": ("taxa",), "id": "image", **options})
    expected = Expected(TREE, ("depth", "ground"), text, reading)
    return read([path], expected=expected, labels=False)


def test_new_rows_need_only_ids_and_features(tmp_path: Path) -> None:
    path = write(tmp_path, "more,ground,depth,image\nx,sand,1,a\ny,coral rubble,2,b\n")
    data = new_rows(path, weight="w", ignore=("note",))
    assert (data.ids, data.feature_names) == (("a", "b"), ("depth", "ground"))
    assert data.X["ground"].to_list() == ["sand", "coral rubble"]
    assert data.known is not None
    assert not data.known.any()
    assert data.sample_weight is None


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("image,depth\na,1\n", "lacks columns that the model needs: 'ground'"),
        ("image,Depth,ground\na,1,s\n", r"needs: 'depth' \(is it 'Depth' here\? then rename it\)"),
        ("image,depht,grond\na,1,s\n", r"needs: 'depth' \(is it 'depht' here.* and 1 more"),
        ("depth,ground\n1,s\n", r"has no column 'image' \(--id\)"),
        ("image,depth,ground\na,deep,s\n", "line 2: column 'depth': expected a number, got 'deep'"),
        ("image,depth,ground\na,2024-05-01,s\n", "line 2: column 'depth': expected a number, got '2024-05-01'"),
        ("image,depth,ground\na,1,s\nb,inf,s\n", "line 3: column 'depth': expected a number up to"),
        ("image,depth,ground\na,1,s\na,2,s\n", "line 3: the id 'a' in column 'image' appears twice"),
        ('image,depth,ground\na,"1,234",s\n', "line 2: column 'depth': the comma in '1,234' may"),
        ("image,depth,ground\n", "it has no rows"),
    ],
)
def test_new_rows_that_do_not_fit(tmp_path: Path, content: str, told: str) -> None:
    with pytest.raises(RarenodeError, match=told) as caught:
        new_rows(write(tmp_path, content))
    assert "t.csv" in str(caught.value)


def test_columns_that_a_model_needs_cannot_be_left_out(tmp_path: Path) -> None:
    frame = pl.DataFrame({"image": ["a"], "depth": [datetime.date(2024, 1, 2)], "ground": ["s"]})
    frame.write_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match="column 'depth' contains dates or times") as caught:
        new_rows(tmp_path / "t.parquet")
    assert "--ignore" not in str(caught.value)


def test_numbers_where_categories_are_expected(tmp_path: Path) -> None:
    """The same level, whatever the type of the column."""
    shown = new_rows(write(tmp_path, "image,depth,ground\na,1,3\nb,2,\n")).X["ground"].to_list()
    assert shown == ["3", None]
    for values in ([3, None], [3.0, math.nan], [3.0, None]):
        frame = pl.DataFrame({"image": ["a", "b"], "depth": [1, 2], "ground": values}, strict=False)
        frame.write_parquet(tmp_path / "t.parquet")
        assert new_rows(tmp_path / "t.parquet").X["ground"].to_list() == shown


def test_long_text_is_no_category_of_new_rows_but_no_error(tmp_path: Path) -> None:
    assert new_rows(write(tmp_path, f"image,depth,ground\na,1,{'x' * 99}\n")).X["ground"].to_list() == ["x" * 99]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_a_table_in_parts(tmp_path: Path, suffix: str) -> None:
    frame = pl.DataFrame({"image": [f"i{n}" for n in range(10)], "depth": np.arange(10.0)})
    paths = [tmp_path / f"{name}{suffix}" for name in "ab"]
    for path, part in zip(paths, (frame[:7], frame[7:]), strict=True):
        getattr(part, {".csv": "write_csv", ".parquet": "write_parquet", ".arrow": "write_ipc"}[suffix])(path)
    parts = list(scan_table(paths, lambda names: {"image": True}, 3))
    assert pl.concat([part.frame for part in parts]).equals(frame)
    assert all(len(part.frame) <= 3 for part in parts)
    assert [part.first_row for part in parts] == np.cumsum([0, *(len(part.frame) for part in parts)])[:-1].tolist()
    if suffix == ".csv":  # what a comma means is seen in all rows
        commas = write(tmp_path, 'image,depth\na,"0,5"\nb,"1,234"\n')
        assert all("depth" in part.decimal_commas for part in scan_table([commas], lambda names: {"image": True}, 1))
    where = parts[-1].error(len(parts[-1].frame) - 1, "x")
    assert str(where) == f"{paths[1]}{', line 4' if suffix == '.csv' else ': row 3'}: x"
