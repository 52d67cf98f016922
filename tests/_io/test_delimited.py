"""Text files of records: what is read, what is refused, and which line the message names."""

from __future__ import annotations

import csv
import gzip
import io
import tracemalloc
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rarenode._io import delimited
from rarenode._io.delimited import Dialect, dialect_of, guess_delimiter, read_records, read_text, suffix_of
from rarenode.errors import FileFormatError, MissingFileError

TABLE = "id,café\na,1\nb,2\n"
READ = [["a", "1"], ["b", "2"]]


def write(folder: Path, content: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    "content",
    [
        TABLE.encode(),
        TABLE.encode("utf-8-sig"),
        TABLE.encode("utf-16"),
        b"\xfe\xff" + TABLE.encode("utf-16-be"),
        TABLE.replace("\n", "\r\n").encode(),
        TABLE.replace("\n", "\r").encode(),
        TABLE.rstrip("\n").encode(),
        TABLE.replace("\n", "\n\n").encode(),
        TABLE.replace("\n", "\n , \n").encode(),
        TABLE.replace("\n", ",,\n").encode(),
        ("\n  \n" + TABLE).encode(),
        TABLE.replace(",", ";").encode(),
        TABLE.replace(",", "\t").encode(),
        TABLE.replace(",", "|").encode(),
        TABLE.replace(",", " , ").encode(),
        b'"id","caf\xc3\xa9"\n"a","1"\n"b","2"\n',
        gzip.compress(TABLE.encode(), mtime=0),
        gzip.compress(TABLE.encode("utf-16"), mtime=0),
    ],
)
def test_the_same_table_however_it_was_saved(tmp_path: Path, content: bytes) -> None:
    records = read_records(write(tmp_path, content))
    assert records.header == ("id", "café")
    assert [fields for _, fields in records.rows] == READ


LATIN = "id,name\na,x\nb,café\n".encode("latin-1")


@pytest.mark.parametrize(
    ("content", "line", "told"),
    [
        (b"", None, "the file is empty"),
        (b" \n\n \r\n", None, "the file is empty"),
        (b"\xef\xbb\xbf", None, "the file is empty"),
        (b",,\n,,\n", 1, "expected a header"),
        (LATIN, 3, r"expected UTF-8 text; in Excel, save as 'CSV UTF-8', or convert the file with iconv"),
        (LATIN.replace(b"\n", b"\r"), 3, "expected UTF-8"),
        ("id,name\na,1\n".encode("utf-16-le"), 1, "null character; if it is UTF-16, save it as UTF-8"),
        ("id,name\na,1\n".encode("utf-16-be"), 1, "null character"),
        (TABLE.encode("utf-16-le"), 1, "expected UTF-8 text"),
        (TABLE.encode("utf-16")[:-1], 3, "expected UTF-8"),
        (b"\xff\xfe\x00\x00" + "a,b\n".encode("utf-32-le"), 1, "null character"),
        (b"a,b\n1,\x002\n", 2, "null character"),
        (b"\x1f\x8b not really", None, "it cannot be unpacked"),
        (gzip.compress(TABLE.encode() * 99, mtime=0)[:-20], None, "it cannot be unpacked"),
        (gzip.compress(b"", mtime=0), None, "the file is empty"),
        (b"a,b\n1\n", 2, "expected 2 fields as in the header, got 1"),
        (b"a,b\n1,2\n\n3,4,5\n", 4, "expected 2 fields as in the header, got 3; if a value contains ',', put it in"),
        (b'a,b\n"x\ny",2\n3\n', 4, "expected 2 fields as in the header, got 1"),
        (b"a,,c\n1,2,3\n", 1, "column 2 has no name; give it one"),
        (b",a\n1,2\n", 1, "column 1 has no name"),
        (b"\n\na,,c\n1,2,3\n", 3, "column 2 has no name"),
        (b"a,b,a\n1,2,3\n", 1, "columns 1 and 3 have the same name 'a'; rename one"),
        (b"a, a\n1,2\n", 1, "columns 1 and 2 have the same name 'a'"),
        (b'a,b\n1,"2\n3,4\n', 2, "check that quotes are closed"),
        (b'a,b\n1,"2"3\n', 2, "check that quotes are closed"),
        (b'a,b\n1,"' + b"x" * ((1 << 20) + 1) + b'"\n', 2, "a field has more than 1,048,576 characters"),
    ],
)
def test_malformed_files(tmp_path: Path, content: bytes, line: int | None, told: str) -> None:
    path = write(tmp_path, content)
    with pytest.raises(FileFormatError, match=told) as caught:
        read_records(path)
    assert (caught.value.path, caught.value.line) == (path, line)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="it is a folder; expected a file"):
        read_text(tmp_path)
    for name in ("no.csv", "no/such/file.csv", "a\0b", "t.csv/below"):
        write(tmp_path, TABLE)
        with pytest.raises(MissingFileError, match="no such file"):
            read_text(tmp_path / name)
    with pytest.raises(FileFormatError, match=r"ends in \.gz, but the file is not gzipped"):
        read_text(write(tmp_path, TABLE, "t.csv.gz"))
    with pytest.raises(FileFormatError, match="cannot be read: File name too long"):
        read_text(tmp_path / ("x" * 300))


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "MOST_BYTES", 1000)
    with pytest.raises(FileFormatError, match="more than 1,000 bytes when unpacked"):
        read_text(write(tmp_path, gzip.compress(b"a" * 1001, mtime=0)))
    assert len(read_text(write(tmp_path, gzip.compress(b"a" * 1000, mtime=0)))) == 1000


def test_unpacking_takes_no_more_memory_than_the_content(tmp_path: Path) -> None:
    path = write(tmp_path, gzip.compress(b"a", mtime=0))
    tracemalloc.start()
    try:
        assert read_text(path) == "a"
        assert tracemalloc.get_traced_memory()[1] < 10 * delimited.BYTES_AT_A_TIME
    finally:
        tracemalloc.stop()


def test_lines_are_where_records_begin(tmp_path: Path) -> None:
    path = write(tmp_path, 'a,b\n\n"x\n\ny",1\r\nz,2\n , \n"q\ru",3\n')
    assert read_records(path).rows == [(3, ["x\n\ny", "1"]), (6, ["z", "2"]), (8, ["q\ru", "3"])]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_only_line_breaks_end_a_record(tmp_path: Path, ending: str) -> None:
    odd = "x\x0by\x0cz\x1c\x85\u2028\u2029w"
    path = write(tmp_path, ending.join(["id,name", f"a,{odd}", "b,2", ""]))
    assert read_records(path).rows == [(2, ["a", odd]), (3, ["b", "2"])]


def test_the_limit_of_other_code_is_left_as_it_was(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    read_records(write(tmp_path, TABLE))
    with pytest.raises(FileFormatError):
        read_records(write(tmp_path, 'a,b\n1,"2\n'))
    assert csv.field_size_limit() == before


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a;b;c\n1,5;2,5;3,5\n", ";"),
        ("a,b\n1;2,3;4\n5;6,7;8\n", ","),
        ("a\tb\n1,2\t3,4\n", "\t"),
        ("a|b\nx > y|z\n", "|"),
        ("taxon\nBiota > Corals\n", ","),
        ('a;b\n"x,y";"1,2,3"\n', ";"),
        ('a;b\n"x\n;;;\ny";2\n', ";"),
        ("a,b;c\n1,2\n", ","),
        ("a;b;\n1;2;;;\n", ";"),
    ],
)
def test_the_delimiter(text: str, expected: str) -> None:
    assert guess_delimiter(text) == expected


def test_a_tsv_has_tabs() -> None:
    assert guess_delimiter("a,b\n1,2\n", ".tsv") == "\t"


def test_a_long_file_is_judged_by_its_beginning() -> None:
    text = "a;b\n" + "1,5;2,5\n" * 300_000
    assert guess_delimiter(text) == ";"
    assert guess_delimiter("a;b\n" + '"' + "x\n" * 1_000_000 + '";2\n') == ";"


def test_suffixes() -> None:
    assert [suffix_of(name) for name in ("a.CSV", "b.csv.GZ", "c", "d.gz", "e.tar.gz", "x/.csv")] == [
        ".csv", ".csv", "", "", ".tar", "",
    ]  # fmt: skip


cells = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


@given(
    rows=st.lists(st.lists(cells, min_size=2, max_size=2), max_size=5),
    delimiter=st.sampled_from(",;\t|"),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    ending=st.sampled_from(["\n", "\r\n"]),
)
def test_what_csv_writes_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], delimiter: str, quoting: Literal[0, 1], ending: str
) -> None:
    """Whatever the cells contain, but for blanks at their ends and rows of nothing else.

    csv leaves a lone carriage return without quotes, if lines end otherwise.
    """
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=delimiter, quoting=quoting, lineterminator=ending)
    writer.writerows([["id", "name"], *rows])
    assume(quoting == csv.QUOTE_ALL or ending == "\r\n" or not any("\r" in cell for row in rows for cell in row))
    path = write(tmp_path_factory.getbasetemp(), file.getvalue())
    expected = [[cell.strip() for cell in row] for row in rows]
    assert [fields for _, fields in read_records(path, delimiter).rows] == [row for row in expected if any(row)]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a,b\n1.5,2\n", Dialect()),
        ("a;b\n1,5;2\n", Dialect(";", decimal_comma=True)),
        ("\ufeffa;b\n1.5;2\n", Dialect(";", byte_order_mark=True)),
        ("a;b\nx;y\n", Dialect(";")),
    ],
)
def test_the_dialect_of_a_file(tmp_path: Path, content: str, expected: Dialect) -> None:
    for name, dialect in (("t.csv", expected), ("t.txt", Dialect())):
        (tmp_path / name).write_text(content, encoding="utf-8")
        assert dialect_of(tmp_path / name) == dialect
