"""The ARFF reader: what it accepts, and how it reports what it rejects."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode import Dataset, read_arff
from rarenode.data.readers import arff, arff_syntax
from rarenode.data.readers.arff import Kind
from rarenode.errors import ArgumentError, FileFormatError, MissingFileError, RarenodeError

TREE = """\
@RELATION yeast  % where it comes from

% a whole line
@ATTRIBUTE alpha            numeric
@attribute strand           {w,c}
@ATTRIBUTE 0point02%_MMS    REAL
@ATTRIBUTE class            hierarchical 01,01/01,01/01/03,02/07
@DATA
0.5,w,-1e3,01/01/03@02/07 % a gene
?,?,2,01
 1 , c , 3 , 02/07
"""

DAG = """\
@relation go
@attribute x numeric
@attribute class hierarchical root/a,root/b,a/c,b/c,c/d
@data
1,c
2,b@a
3,root
4,d
"""


def kind_of(file: Dataset) -> Kind:
    """The nodes of a tree are named by their paths."""
    return "tree" if any("/" in node for node in file.hierarchy.nodes) else "dag"


def read(tmp_path: Path, text: str, kind: Kind = "auto") -> Dataset:
    path = tmp_path / "file.arff"
    path.write_text(text, encoding="utf-8")
    return read_arff(path, kind)


def problem(tmp_path: Path, text: str, kind: Kind = "auto") -> tuple[int | None, str]:
    """Line and message of the error that reading ``text`` raises; the message must name the file."""
    with pytest.raises(FileFormatError) as caught:
        read(tmp_path, text, kind)
    assert "file.arff" in str(caught.value)
    return caught.value.line, caught.value.problem


def test_a_tree_has_full_paths_a_root_and_closed_labels(tmp_path: Path) -> None:
    file = read(tmp_path, TREE)
    assert kind_of(file) == "tree"
    assert file.hierarchy.nodes == ("root", "01", "02", "01/01", "02/07", "01/01/03")
    assert file.hierarchy.roots == ("root",)
    assert file.hierarchy.decode(file.Y) == [
        {"root", "01", "01/01", "01/01/03", "02", "02/07"},
        {"root", "01"},
        {"root", "02", "02/07"},
    ]


def test_features_are_numbers_one_hot_columns_and_missing_values(tmp_path: Path) -> None:
    file = read(tmp_path, TREE)
    assert file.feature_names == ("alpha", "strand=w", "strand=c", "0point02%_MMS")
    expected = [[0.5, 1, 0, -1000], [np.nan, 0, 0, 2], [1, 0, 1, 3]]
    np.testing.assert_array_equal(file.X, expected)
    assert file.X.dtype == np.float64


def test_a_dag_has_the_nodes_of_its_pairs(tmp_path: Path) -> None:
    file = read(tmp_path, DAG)
    assert kind_of(file) == "dag"
    assert set(file.hierarchy.edges) == {("root", "a"), ("root", "b"), ("a", "c"), ("b", "c"), ("c", "d")}
    assert file.hierarchy.decode(file.Y)[0] == {"root", "a", "b", "c"}


def test_a_dag_without_a_root_gains_none(tmp_path: Path) -> None:
    assert read(tmp_path, DAG.replace("root/a,root/b,", "").replace("3,root\n", "")).hierarchy.roots == ("a", "b")


@pytest.mark.parametrize(
    ("entries", "labels", "kind"),
    [
        ("a/b,b/c", "c", "dag"),
        ("a/b,b/c", "a/b", "tree"),  # a row label that is a path
        ("a/b,b", "b", "tree"),  # an entry that is no pair
        ("a/b/c,a/b", "a", "tree"),
    ],
)
def test_auto_is_a_dag_only_if_entries_are_pairs_and_labels_single_names(
    tmp_path: Path, entries: str, labels: str, kind: str
) -> None:
    text = f"@attribute x numeric\n@attribute class hierarchical {entries}\n@data\n1,{labels}\n"
    assert kind_of(read(tmp_path, text)) == kind


def test_kind_overrides_the_guess(tmp_path: Path) -> None:
    text = "@attribute x numeric\n@attribute class hierarchical a/b,c/d\n@data\n1,a\n"
    assert read(tmp_path, text).hierarchy.nodes == ("a", "c", "b", "d")
    assert read(tmp_path, text, "tree").hierarchy.nodes == ("root", "a", "c", "a/b", "c/d")


def test_a_tree_that_declares_a_root_keeps_it(tmp_path: Path) -> None:
    text = "@attribute class hierarchical root/a,root/a/b\n@data\nroot/a/b\n"
    assert read(tmp_path, text).hierarchy.nodes == ("root", "root/a", "root/a/b")


def test_sparse_rows_name_what_is_not_zero(tmp_path: Path) -> None:
    text = TREE[: TREE.index("0.5,w")] + "{0 1.5, 3 02/07}\n{1 c, 2 ?, 3 '01/01@02/07'}\n{3 01}\n"
    file = read(tmp_path, text)
    np.testing.assert_array_equal(file.X, [[1.5, 1, 0, 0], [0, 0, 1, np.nan], [0, 1, 0, 0]])
    assert file.hierarchy.decode(file.Y)[1] == {"root", "01", "01/01", "02", "02/07"}


def test_quotes_keep_commas_spaces_and_comment_signs(tmp_path: Path) -> None:
    text = (
        "@attribute 'a name, 5 % of it' numeric\n"
        "@attribute colour {'deep, dark red', \"50% grey\", blue}\n"
        "@attribute class hierarchical x,y\n@data\n"
        "1,'deep, dark red',x\n2,\"50% grey\",y % comment\n3,blue,x@y\n"
    )
    file = read(tmp_path, text)
    assert file.feature_names == ("a name, 5 % of it", "colour=deep, dark red", "colour=50% grey", "colour=blue")
    np.testing.assert_array_equal(file.X, [[1, 1, 0, 0], [2, 0, 1, 0], [3, 0, 0, 1]])


def test_names_of_classes_may_be_quoted_in_the_header_and_in_rows(tmp_path: Path) -> None:
    text = "@attribute c hierarchical 'a b','a b/c%',\"d\"\n@data\n'a b/c%'\n'd'@\"a b\" % comment\nd\n"
    data = read(tmp_path, text)
    assert data.hierarchy.nodes == ("root", "a b", "d", "a b/c%")
    np.testing.assert_array_equal(data.Y, [[1, 1, 0, 1], [1, 1, 1, 0], [1, 0, 1, 0]])


def test_a_quote_inside_a_value_is_no_quote(tmp_path: Path) -> None:
    text = "@attribute end {5'UTR,3'UTR}\n@attribute class hierarchical p\n@data\n3'UTR,p\n{0 3'UTR, 1 p}\n"
    np.testing.assert_array_equal(read(tmp_path, text).X, [[0, 1], [0, 1]])


def test_tabs_separate_as_blanks_do(tmp_path: Path) -> None:
    file = read(tmp_path, "@attribute\tx\tnumeric\n@attribute\tclass\thierarchical\tp,q\n@data\n1,\tq\n{0\t2,1\tp}\n")
    np.testing.assert_array_equal(file.X, [[1], [2]])
    assert file.hierarchy.decode(file.Y) == [{"root", "q"}, {"root", "p"}]


def test_the_class_may_stand_anywhere(tmp_path: Path) -> None:
    file = read(tmp_path, "@attribute a numeric\n@attribute k hierarchical p,q\n@attribute b numeric\n@data\n1,q,2\n")
    np.testing.assert_array_equal(file.X, [[1, 2]])
    assert file.hierarchy.decode(file.Y) == [{"root", "q"}]


def test_names_declared_twice_become_distinct(tmp_path: Path) -> None:
    text = "@attribute a numeric\n@attribute a numeric\n@attribute a#2 numeric\n@attribute a numeric\n"
    file = read(tmp_path, text + "@attribute class hierarchical p\n@data\n1,2,3,4,p\n")
    assert file.feature_names == ("a", "a#2", "a#2#2", "a#3")


def test_a_row_of_unknown_class_is_not_labelled(tmp_path: Path) -> None:
    file = read(tmp_path, TREE + "1,w,2,?\n{0 1, 3 ?}\n4,w,2,01\n")
    assert file.known is not None
    assert file.known.all(axis=1).tolist() == [True, True, True, False, False, True]
    assert file.known.any(axis=1).tolist() == file.Y.any(axis=1).tolist() == file.known.all(axis=1).tolist()


def test_windows_line_ends_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "file.arff"
    path.write_bytes(b"\xef\xbb\xbf" + TREE.replace("\n", "\r\n").encode())
    assert read_arff(path).hierarchy == read(tmp_path, TREE).hierarchy


def test_a_file_without_rows(tmp_path: Path) -> None:
    file = read(tmp_path, TREE[: TREE.index("0.5,w")])
    assert file.X.shape == (0, 4)
    assert file.Y.shape == (0, 6)
    assert len(file) == 0


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[int], list[list[int | None]]]:
    """For each attribute its number of categories (0 for numeric), and rows of values; None is missing."""
    attributes = draw(st.lists(st.integers(0, 3), max_size=4))
    values = [st.none() | (st.integers(0, size - 1) if size else st.integers(-9, 9)) for size in attributes]
    return attributes, [list(row) for row in draw(st.lists(st.tuples(*values), max_size=5))]


@given(table=tables(), sparse=st.booleans(), class_position=st.integers(0, 4))
def test_features_are_what_was_written(
    tmp_path_factory: pytest.TempPathFactory,
    table: tuple[list[int], list[list[int | None]]],
    sparse: bool,
    class_position: int,
) -> None:
    attributes, rows = table
    header = [
        f"@attribute a{place} " + (f"{{{','.join(f'v{code}' for code in range(size))}}}" if size else "numeric")
        for place, size in enumerate(attributes)
    ]
    header.insert(class_position, "@attribute class hierarchical p")
    lines = []
    for row in rows:
        fields = [
            "?" if value is None else f"v{value}" if size else str(value)
            for size, value in zip(attributes, row, strict=True)
        ]
        fields.insert(class_position, "p")
        # Omitted values of a sparse row are 0, or the first category.
        stated = [f"{place} {field}" for place, field in enumerate(fields) if field not in ("0", "v0")]
        lines.append("{" + ", ".join(stated) + "}" if sparse else ",".join(fields))
    path = tmp_path_factory.getbasetemp() / "table.arff"
    path.write_text("\n".join([*header, "@data", *lines]), encoding="utf-8")

    expected: list[list[float]] = []
    for row in rows:
        expected.append([])
        for size, value in zip(attributes, row, strict=True):
            if size:
                expected[-1] += [float(value == code) for code in range(size)]
            else:
                expected[-1].append(np.nan if value is None else value)
    columns = sum(size or 1 for size in attributes)
    np.testing.assert_array_equal(read_arff(path).X, np.array(expected).reshape(len(rows), columns))


HEADER = "@attribute x numeric\n@attribute s {w,c}\n@attribute class hierarchical a,a/b\n@data\n"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (HEADER + "1,w,a\n1,w\n", 6, ["expected 3 values", "got 2"]),
        (HEADER + "1,w,a,a\n", 5, ["expected 3 values", "got 4"]),
        (HEADER + "one,w,a\n", 5, ["'x'", "a number", "'one'"]),
        (HEADER + "inf,w,a\n", 5, ["'x'", "a number"]),
        (HEADER + "1,z,a\n", 5, ["'s'", "w, c", "'z'"]),
        (HEADER + "1e200,w,a\n", 5, ["'x'", "up to 1e+150"]),
        (HEADER + "1,w,a%\n", 5, ["'a%'", "hierarchy"]),
        (HEADER + "1,w,a/z\n", 5, ["'a/z'", "hierarchy"]),
        (HEADER + "1,w,a@@b\n", 5, ["separated by @", "'a@@b'"]),
        (HEADER + "1,w,\n", 5, ["labels"]),
        (HEADER + "{0 1, 2 a\n", 5, ["'}'"]),
        (HEADER + "{0 1, 7 a}\n", 5, ["from 0 to 2", "'7 a'"]),
        (HEADER + "{0 1, %s a}\n" % ("9" * 5000), 5, ["from 0 to 2"]),
        (HEADER + "{0 1', 2 a}\n", 5, ["'x'", "a number"]),
        (HEADER + "{0 1, , 2 a}\n", 5, ["index value"]),
        (HEADER + "1_000,w,a\n", 5, ["'x'", "'1_000'"]),
        (HEADER + "nan,w,a\n", 5, ["'x'", "'nan'"]),
        (HEADER + "1e999,w,a\n", 5, ["'x'", "finite"]),
        (HEADER + "\u0661,w,a\n", 5, ["'x'", "a number"]),
        (HEADER + "{0 1, 0 2, 2 a}\n", 5, ["twice"]),
        (HEADER + "{0 1}\n", 5, ["labels"]),
        (HEADER + "1,'w,a\n", 5, ["'s'", "'w"]),
        ("@attribute x numeric\n@data\n1\n", 2, ["hierarchical"]),
        ("@attribute class hierarchical a\n", 1, ["@data"]),
        ("", None, ["empty", "@data"]),
        (" \n\n", None, ["empty"]),
        ("\ufeff", None, ["@data"]),
        ("% a comment\n", None, ["@data"]),
        ("hello\n", 1, ["@relation, @attribute or @data", "'hello'"]),
        ("@attribute x\n@data\n", 1, ["@attribute name type"]),
        ("@attribute x string\n@data\n", 1, ["'x'", "'string'"]),
        ("@attribute x {a,a}\n@data\n", 1, ["distinct"]),
        ("@attribute x {a,?}\n@data\n", 1, ["nor ?"]),
        ("@attribute '' numeric\n@data\n", 1, ["name", "empty"]),
        ("@attribute c hierarchical a,,b\n@data\n", 1, ["entry is empty"]),
        ("@attribute c hierarchical a,a//b\n@data\na\n", 1, ["step is empty", "a//b"]),
        ("@attribute c hierarchical a\n@attribute d hierarchical a\n@data\n", 2, ["second hierarchical"]),
        ("\n@attribute c hierarchical a/b,b/a\n@data\na\n", 2, ["cycle", "a -> b -> a"]),
        ("@attribute c hierarchical a/b,a/b\n@data\na\n", 1, ["repeats"]),
        ("@attribute c hierarchical a,root\n@data\na\n", 1, ["'root'"]),
    ],
)
def test_malformed_files_say_line_and_what_was_expected(
    tmp_path: Path, text: str, line: int | None, words: list[str]
) -> None:
    found, message = problem(tmp_path, text)
    assert found == line
    assert all(word in message for word in words), message


def test_an_entry_that_is_no_pair_in_a_dag(tmp_path: Path) -> None:
    assert problem(tmp_path, "@attribute c hierarchical a/b,c\n@data\nb\n", "dag") == (
        1,
        "expected a parent/child pair in a DAG, got 'c'",
    )


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "file.arff"
    path.write_bytes(b"@relation x\n\xff\xfe\n")
    with pytest.raises(FileFormatError, match="line 2: expected UTF-8"):
        read_arff(path)


@pytest.mark.parametrize("path", ["nowhere.arff", "file.arff/within.arff", "null\0.arff"])
def test_a_missing_file(tmp_path: Path, path: str) -> None:
    (tmp_path / "file.arff").touch()
    with pytest.raises(MissingFileError, match="no such file"):
        read_arff(tmp_path / path)


def test_a_directory_an_empty_path_and_an_unknown_kind(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="is a directory"):
        read_arff(tmp_path)
    with pytest.raises(FileFormatError, match="is a directory"):
        read_arff("")
    with pytest.raises(ArgumentError, match="graph"):
        read_arff(tmp_path, "graph")  # type: ignore[arg-type]


class TestExpansion:
    """Small files that would take gigabytes in memory are sparse, or rejected at once."""

    def test_many_categories_in_many_rows(self, tmp_path: Path) -> None:
        categories = ",".join(str(code) for code in range(33_000))
        text = f"@attribute few {{a,b}}\n@attribute gene {{{categories}}}\n@attribute class hierarchical p\n@data\n"
        X = read(tmp_path, text + "a,7,p\n" * 33_000).X
        assert (tmp_path / "file.arff").stat().st_size < 500_000
        assert X.shape == (33_000, 33_002)
        assert X.nnz == 66_000
        assert X.sum(axis=0)[[0, 1, 2 + 7]].tolist() == [33_000, 0, 33_000]

    def test_sparse_features_are_those_of_a_dense_matrix(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        text = "@attribute a {x,y,z}\n@attribute n numeric\n@attribute class hierarchical p\n@attribute b {v,w}\n"
        text += "@data\n"
        text += "x,0,p,w\ny,?,p,?\nz,2.5,?,v\n{1 3, 2 p}\n"
        dense = read(tmp_path, text).X
        monkeypatch.setattr(arff, "MOST_DENSE_FEATURES", 5)
        sparse = read(tmp_path, text).X
        assert sparse.format == "csr"
        np.testing.assert_array_equal(sparse.toarray(), dense)

    def test_long_names_of_many_categories(self, tmp_path: Path) -> None:
        text = f"@attribute {'a' * 20_000} {{{','.join(map(str, range(30_000)))}}}\n"
        text += "@attribute class hierarchical p\n@data\n"
        _, message = problem(tmp_path, text + "7,p\n")
        assert "too long a name for that many categories" in message
        assert len(message) < 200

    def test_many_attributes_in_sparse_rows(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(arff_syntax, "MAX_IMPLIED_CELLS", 1000)
        monkeypatch.setattr(arff_syntax, "IMPLIED_BY_CHARACTER", 1)
        attributes = "".join(f"@attribute a{place} numeric\n" for place in range(99))
        text = attributes + "@attribute class hierarchical p\n@data\n"
        assert read(tmp_path, text + "{99 p}\n" * 10).X.shape == (10, 99)
        line, message = problem(tmp_path, text + "{99 p}\n" * 11)
        assert line == 112
        assert "sparse rows of 99 attributes" in message

    def test_dense_numbers_have_no_limit(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(arff_syntax, "MAX_IMPLIED_CELLS", 0)
        monkeypatch.setattr(arff_syntax, "IMPLIED_BY_CHARACTER", 0)
        text = "@attribute x numeric\n@attribute class hierarchical p\n@data\n" + "1,p\n" * 100
        assert read(tmp_path, text).X.shape == (100, 1)

    def test_many_classes_in_many_rows(self, tmp_path: Path) -> None:
        classes = ",".join(str(name) for name in range(40_000))
        text = f"@attribute class hierarchical {classes}\n@data\n" + "7\n" * 30_000
        data = read(tmp_path, text)
        assert data.Y.shape == (30_000, 40_001)
        assert data.Y.nnz == 60_000  # sparse, with the root
        data = read(tmp_path, text + "?\n")
        assert data.known is not None
        assert data.known[:3, :3].all()
        assert not data.known[-1].any()

    def test_a_path_of_many_levels(self, tmp_path: Path) -> None:
        text = f"@attribute class hierarchical p,{'/'.join('a' * 40_000)}\n@data\np\n"
        start = time.process_time()
        line, message = problem(tmp_path, text)
        assert time.process_time() - start < 1
        assert line == 1
        assert "40,000 levels; at most 1,000 are read" in message
        assert len(message) < 200

    def test_a_path_of_as_many_levels_as_are_read(self, tmp_path: Path) -> None:
        deepest = "/".join("a" * 1000)
        file = read(tmp_path, f"@attribute class hierarchical {deepest}\n@data\n{deepest}\n")
        assert file.Y.shape == (1, 1001)
        assert file.Y.all()


@given(noise=st.text(alphabet="@{}'\"%,?/ \n01acw=rotdshe\t", max_size=80), at=st.integers(0, len(TREE)))
def test_damaged_files_are_read_or_rejected_with_a_clear_error(
    tmp_path_factory: pytest.TempPathFactory, noise: str, at: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.arff"
    path.write_text(TREE[:at] + noise + TREE[at:], encoding="utf-8")
    try:
        file = read_arff(path)
    except RarenodeError as error:
        assert "damaged.arff" in str(error)
    else:
        assert file.X.shape == (len(file.Y), len(file.feature_names or ()))
        assert file.hierarchy.is_closed(file.Y)
