"""Targets of the fuzzer: tables, hierarchies and pictures, as they come from anywhere."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from PIL import Image

from rarenode import Hierarchy
from rarenode.data.decoding import decode
from rarenode.data.readers import read
from rarenode.data.table_options import TableOptions
from rarenode.hierarchy.files import read_hierarchy, write_hierarchy
from tools.fuzz_mutations import Files
from tools.fuzz_promises import check_rows, check_tree, promise

# --- tables and hierarchies ----------------------------------------------------------------------------------------

PATHS = ("A > B", "A > C", "D", "A > B > E")
TREE = Hierarchy.from_edges([("A", "B"), ("A", "C"), ("B", "E"), ("C", "E"), ("A", "D")])
ARFF = """@RELATION small
@ATTRIBUTE a numeric
@ATTRIBUTE 'b c' {x,y,'z z'}
@ATTRIBUTE class hierarchical 1,1/1,1/2,2,2/1
@DATA
1,x,1/1@2
?,y,1/2
-2.5e3,'z z',2/1
"""
SPARSE_ARFF = (
    "@RELATION s\n@ATTRIBUTE a numeric\n@ATTRIBUTE b numeric\n@ATTRIBUTE class hierarchical root/a,a/b\n@DATA\n"
)
SPARSE_ARFF += "{0 1.5, 2 a}\n{1 2, 2 b}\n"
OBO = """format-version: 1.2
[Term]
id: T:1
name: all
namespace: x

[Term]
id: T:2
name: "some" ! thing
namespace: x
is_a: T:1 ! all
alt_id: T:9

[Term]
id: T:3
is_a: T:2
relationship: part_of T:1
is_obsolete: false
"""


def make_table(labels: Mapping[str, list[Any]], rows: int = 12) -> pl.DataFrame:
    """A table with numbers and categories, and columns of labels."""
    columns = {
        "id": [f"r{row}" for row in range(rows)],
        "a": [None if row == 5 else row * 0.5 for row in range(rows)],
        "b": [("x", "y", None)[row % 3] for row in range(rows)],
        "n": [row % 4 for row in range(rows)],
    }
    return pl.DataFrame(columns | {name: (values * rows)[:rows] for name, values in labels.items()})


def _gaf() -> str:
    lines = [
        ("G1", "involved_in", "T:2", "IDA"),
        ("G2", "NOT|involved_in", "T:3", "IEA"),
        ("G3", "enables", "T:1", "EXP"),
    ]
    rows = [["DB", key, key, how, term, "R", code, "", "P", *[""] * 8] for key, how, term, code in lines]
    return "!gaf-version: 2.2\n" + "\n".join("\t".join(row) for row in rows) + "\n"


def _in_formats(frame: pl.DataFrame, **beside: str) -> list[Files]:
    """A table in every format."""
    parquet, arrow = io.BytesIO(), io.BytesIO()
    frame.write_parquet(parquet)
    frame.write_ipc(arrow)
    flat = frame.with_columns(pl.col(pl.List(pl.String)).list.join(";"))
    csv, rest = flat.write_csv(), {name.replace("__", "."): text.encode() for name, text in beside.items()}
    tables = {
        "rows.csv": csv.encode(),
        "rows.tsv": flat.write_csv(separator="\t").encode(),
        "rows.csv.gz": gzip.compress(csv.encode(), mtime=0),
        "rows.parquet": parquet.getvalue(),
        "rows.arrow": arrow.getvalue(),
    }
    return [{name: content} | rest for name, content in tables.items()]


def read_rows(options: Mapping[str, Any], hierarchy: str | None, folder: Path) -> None:
    """A table or ARFF file, whatever its format."""
    beside = {name: str(folder / name) for name in options.get("labels", ()) if (folder / name).is_file()}
    given = dict(options)
    if beside:
        given["labels"] = tuple(beside.values())
    tree = None if hierarchy is None else folder / hierarchy
    source = next(path for path in sorted(folder.iterdir()) if path.name.startswith("rows."))
    check_rows(read(source, options=TableOptions(**given), hierarchy=tree))


def read_tree(folder: Path) -> None:
    """A hierarchy in any format; written and read again it is the same."""
    source = next(folder.iterdir())
    tree = read_hierarchy(source)
    check_tree(tree)
    with suppress(ValueError):  # some names cannot be written, and it says so
        write_hierarchy(tree, folder / "again.json")
        promise(read_hierarchy(folder / "again.json") == tree, "a hierarchy that is another one when read again")


def hierarchies() -> list[Files]:
    """A hierarchy in every format."""
    edges = "parent,child\nA,B\nA,C\nB,E\nC,E\n"
    files: Files = {
        "h.obo": OBO.encode(),
        "h.obo.gz": gzip.compress(OBO.encode(), mtime=0),
        "h.csv": edges.encode(),
        "h.tsv": b"id\tparent\ttitle\nA\t\tall\nB\tA\tb\nC\tA\t\nE\tB;C\te\n",
        "paths.csv": ("path\n" + "\n".join(PATHS) + "\n").encode(),
        "paths.txt": ("\n".join(PATHS) + "\n").encode(),
        "levels.csv": b"kingdom,family,genus\nA,B,E\nA,C,\nD,,\n",
        "edges.json": json.dumps(
            {"edges": [["A", "B"], ["B", "C"]], "titles": {"A": "all"}, "nodes": ["A", "Z"]}
        ).encode(),
        "nested.json": json.dumps({"A": {"B": {"E": {}}, "C": {}}, "D": {}}).encode(),
        "list.json": json.dumps(list(PATHS)).encode(),
    }
    return [{name: content} for name, content in files.items()]


def labelled(kind: str) -> list[Files]:
    """Tables with labels of one form."""
    tree = json.dumps({"edges": TREE.edges})
    names = ["B", "E;D", None, "C"]
    match kind:
        case "sets":
            lists = pl.Series("taxa", [["B"], ["E", "D"], None, ["C"]] * 3, dtype=pl.List(pl.String))
            return (
                _in_formats(make_table({"taxa": names}), tree__json=tree)
                + _in_formats(make_table({}).with_columns(lists), tree__json=tree)[3:]
            )
        case "paths":
            return _in_formats(make_table({"taxa": list(PATHS)}))
        case "levels":
            return _in_formats(
                make_table({"l1": ["A", "A", "D", "A"], "l2": ["B", "C", None, "B"], "l3": ["E", None, None, ""]})
            )
        case "indicators":
            return _in_formats(
                make_table({"B": [1, 0, None, 1], "C": ["yes", "no", "?", ""], "E": [True, False]}), tree__json=tree
            )
        case "weights":
            parts: dict[str, list[Any]] = {"taxa": list(PATHS), "w": [1.0, 0.5, 0.0, 2.0]}
            return _in_formats(make_table(parts | {"part": ["train", "train", "test", "valid"]}))
        case "label_file":
            labels = "id,label,value\nr0,B,1\nr1,E,1\nr2,C,0\nr3,D,yes\nr9,A,?\n"
            return [
                _in_formats(make_table({}), tree__json=tree, labels__csv=labels)[0],
                {
                    "rows.csv": make_table({}).write_csv().encode(),
                    "tree.json": tree.encode(),
                    "labels.csv": b"r0,B\nr1,E\nr1,D\n",
                },
            ]
        case _:
            table = b"id,a\nG1,1\nG2,2\nG3,3\n"
            return [{"rows.csv": table, "labels.gaf": _gaf().encode(), "tree.obo": OBO.encode()}]


TABLES: Mapping[str, tuple[dict[str, Any], str | None]] = {
    "sets": ({"labels": ("taxa",), "id": "id"}, "tree.json"),
    "paths": ({"labels": ("taxa",), "id": "id", "unknown": "below"}, None),
    "levels": ({"labels": ("l*",), "ignore": ("b",)}, None),
    "indicators": ({"labels": ("B", "C", "E"), "id": "id"}, "tree.json"),
    "weights": ({"labels": ("taxa",), "weight": "w", "partition": "part", "id": "id"}, None),
    "label_file": ({"labels": ("labels.csv",), "id": "id"}, "tree.json"),
    "gaf": ({"labels": ("labels.gaf",), "id": "id", "relations": ("is_a", "part_of")}, "tree.obo"),
}


def arffs() -> list[Files]:
    """An ARFF file, one with sparse rows, and one that is packed."""
    return [
        {"rows.arff": ARFF.encode()},
        {"rows.arff": SPARSE_ARFF.encode()},
        {"rows.arff.gz": gzip.compress(ARFF.encode(), mtime=0)},
    ]


# --- pictures ------------------------------------------------------------------------------------------------------


def pictures() -> Files:
    """A picture in every format."""
    rng = np.random.default_rng(0)
    image = Image.fromarray(rng.integers(0, 256, (12, 9, 3), dtype=np.uint8))
    made = {}
    for suffix, change in (
        ("jpg", image), ("png", image.convert("RGBA")), ("gif", image.convert("P")), ("bmp", image),
        ("tif", image.convert("F")), ("webp", image), ("PNG", image.convert("I;16")),
    ):  # fmt: skip
        file = io.BytesIO()
        change.save(file, {"jpg": "jpeg", "tif": "tiff"}.get(suffix.lower(), suffix))
        made[f"p.{suffix}"] = file.getvalue()
    return made


def read_picture(folder: Path) -> None:
    """A picture, at its full size and at a smaller one."""
    content = next(folder.iterdir()).read_bytes()
    for near in (None, 8):
        image = decode(content, near).image
        promise(image.mode == "RGB" and min(image.size) > 0, "a picture that is none")


def archives() -> list[Files]:
    """A zip archive with folders of pictures, as `zip` and as other programs pack it."""
    packed = []
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", method) as archive:
            for place, (name, content) in enumerate(pictures().items()):
                archive.writestr(zipfile.ZipInfo(f"corals/{'é' * (place % 2)}{place % 3}/{name}"), content)
        packed.append({"rows.zip": file.getvalue()})
    return packed


def read_archive(folder: Path) -> None:
    """All pictures of an archive."""
    data = read(folder / "rows.zip")
    check_rows(data)
    for file in data.X.files:
        decode(file.read())
