"""Predictions in every layout and format, against plain loops; parts of a table against the whole."""

from __future__ import annotations

import codecs
import csv
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode import Hierarchy, Run, Settings
from rarenode._io.delimited import Dialect
from rarenode.data.readers.frames import read_table
from rarenode.data.readers.tables import read_labels
from rarenode.data.table_options import TableOptions
from rarenode.errors import ArgumentError, DataError, FileFormatError, MissingFileError
from rarenode.hierarchy import Terms
from rarenode.run import predicting as module
from rarenode.run.predictions import Choice, Layout, Predictions, write_predictions
from rarenode.thresholds import Thresholds
from tests import oracles
from tests.commands import on_training_rows
from tests.strategies import hierarchies

LAYOUTS: tuple[Layout, ...] = ("long", "wide", "sets", "cafa")
SUFFIXES = (".csv", ".tsv", ".parquet", ".jsonl")


@st.composite
def predictions(draw: st.DrawFn) -> Predictions:
    """A parent's probability is never below its child's, and decisions are closed; some are unscored, as a root is."""
    hierarchy = draw(hierarchies(6))
    rows = draw(st.integers(1, 4))
    values = draw(st.lists(st.integers(0, 1000), min_size=rows * len(hierarchy), max_size=rows * len(hierarchy)))
    probs = (np.array(values, dtype=np.float32) / np.float32(1000)).reshape(rows, len(hierarchy))
    each = st.lists(st.sampled_from([0.0, 0.2, 0.5, 0.9]), min_size=len(hierarchy), max_size=len(hierarchy))
    decided = oracles.close(probs > np.array(draw(each)), hierarchy)
    for parent, child in zip(hierarchy.edge_parents[::-1], hierarchy.edge_children[::-1], strict=True):
        probs[:, parent] = np.maximum(probs[:, parent], probs[:, child])
    if draw(st.booleans()):
        titles = tuple(f"the {node}; really" for node in hierarchy.nodes)
        hierarchy = hierarchy.with_terms(Terms(titles))
    scored = np.ones(len(hierarchy), dtype=np.bool_)
    scored[0] = len(hierarchy) == 1 or draw(st.booleans())
    ids = tuple(f"id {row}" for row in range(rows)) if draw(st.booleans()) else None
    probs, decided = probs[:, scored], decided[:, scored]
    return Predictions(hierarchy, scored, probs, decided, 1 - probs, "by hand", ids)


choices = st.builds(
    Choice,
    layout=st.sampled_from(LAYOUTS),
    decided_only=st.booleans(),
    min_probability=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    all_labels=st.booleans(),
    most_terms=st.sampled_from([1, 2, 1500]),
)


def by_loops(found: Predictions, choice: Choice) -> list[dict[str, Any]]:
    """The lines of a layout."""
    nodes = [node for node, kept in zip(found.hierarchy.nodes, found.scored, strict=True) if kept]
    title = dict(zip(found.hierarchy.nodes, found.hierarchy.titles, strict=True))
    lines: list[dict[str, Any]] = []
    for row in range(len(found)):
        key = {"row": row} if found.ids is None else {"id": found.ids[row]}
        has = {node: bool(found.decided[row, place]) for place, node in enumerate(nodes)}
        p = {node: float(found.probs[row, place]) for place, node in enumerate(nodes)}
        likely = [node for node in nodes if p[node] >= np.float32(choice.min_probability)]
        if choice.layout == "wide":
            if choice.decided_only:
                lines.append(key | {node: int(has[node] and node in likely) for node in nodes})
            else:
                lines.append(key | {node: p[node] if node in likely else None for node in nodes})
        elif choice.layout == "sets":
            labels = [node for node in likely if has[node]]
            if not choice.all_labels:
                labels = [n for n in labels if not any(child in labels for child in found.hierarchy.children(n))]
            labels = sorted(labels, key=lambda n: (-p[n], nodes.index(n)))
            titles = {} if found.hierarchy.terms is None else {"titles": [title[node] for node in labels]}
            lines.append(key | {"labels": labels} | titles | {"probabilities": [round(p[n], 3) for n in labels]})
        elif choice.layout == "long":
            for node in likely:
                if has[node] or not choice.decided_only:
                    named = {"node": node} if found.hierarchy.terms is None else {"node": node, "title": title[node]}
                    place = nodes.index(node)
                    measured = {"decided": int(has[node]), "uncertainty": float(found.uncertainty[row, place])}
                    lines.append(key | named | {"probability": p[node]} | measured)
        else:
            kept = [n for n in likely if p[n] >= np.float32(0.001) and (has[n] or not choice.decided_only)]
            best = sorted(kept, key=lambda n: (-p[n], nodes.index(n)))[: choice.most_terms]
            name = str(next(iter(key.values())))
            lines.extend({"id": name, "term": node, "score": f"{p[node]:.3f}"} for node in best)
    return lines


def read_lines(path: Path, layout: Layout) -> list[dict[str, Any]]:
    """The lines of a file, all values as text."""
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if path.suffix == ".parquet":
        return pl.read_parquet(path).to_dicts()
    tabs = path.suffix in (".tsv", ".txt") or layout == "cafa"
    names = ["id", "term", "score"] if layout == "cafa" else None
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, names, delimiter="\t" if tabs else ","))


def as_text(lines: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Lists as cells, numbers to six digits."""

    def cell(name: str, value: Any) -> str:
        if isinstance(value, list):
            return ";".join(f"{each:.3f}" if isinstance(each, float) else each for each in value)
        if value is None:
            return ""
        if name == "probabilities":  # several in a cell
            return str(value)
        try:
            return f"{float(value):.6g}"
        except ValueError:
            return str(value)

    return [{name: cell(name, value) for name, value in line.items()} for line in lines]


@given(found=predictions(), choice=choices, suffix=st.sampled_from(SUFFIXES))
def test_every_layout_in_every_format(
    tmp_path_factory: pytest.TempPathFactory, found: Predictions, choice: Choice, suffix: str
) -> None:
    if choice.layout == "cafa" and suffix in (".parquet", ".jsonl"):
        suffix = ".txt"
    path = tmp_path_factory.getbasetemp() / f"predictions{suffix}"
    expected = by_loops(found, choice)
    assert found.write(path, choice) == len(expected)
    lines = read_lines(path, choice.layout)
    if suffix == ".jsonl" and choice.layout == "sets":
        assert lines == expected  # as lists, though titles contain the separator
    assert as_text(lines) == as_text(expected)


@given(found=predictions(), choice=choices)
def test_parts_are_the_whole(tmp_path_factory: pytest.TempPathFactory, found: Predictions, choice: Choice) -> None:
    folder = tmp_path_factory.getbasetemp()

    def parts() -> Iterator[Predictions]:
        for row in range(len(found)):
            one = slice(row, row + 1)
            arrays = {name: getattr(found, name)[one] for name in ("probs", "decided", "uncertainty")}
            yield replace(found, **arrays, ids=None if found.ids is None else found.ids[one], first_row=row)

    for suffix in (".tsv",) if choice.layout == "cafa" else SUFFIXES:
        whole, divided = folder / f"whole{suffix}", folder / f"divided{suffix}"
        assert found.write(whole, choice) == write_predictions(parts(), divided, choice)
        if suffix == ".parquet":
            assert pl.read_parquet(whole).equals(pl.read_parquet(divided))
        else:
            assert whole.read_bytes() == divided.read_bytes()


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("ids", [None, ("a", "b")])
def test_a_first_part_without_lines(tmp_path: Path, ids: tuple[str, ...] | None, suffix: str) -> None:
    flat = Hierarchy.from_edges([], nodes=["n"])
    ones = np.ones((1, 1), dtype=np.float32)
    parts = [
        Predictions(flat, np.array([True]), ones * p, ones > 0, ones, "by hand", ids and ids[row : row + 1], row)
        for row, p in enumerate((0.1, 0.9))
    ]
    path = tmp_path / f"p{suffix}"
    assert write_predictions(parts, path, Choice(min_probability=0.5)) == 1
    (line,) = read_lines(path, "long")
    assert str(line.get("id", line.get("row"))) == ("1" if ids is None else "b")


@given(predictions())
def test_the_deepest_labels(found: Predictions) -> None:
    every = np.zeros((len(found), len(found.hierarchy)), dtype=np.bool_)
    every[:, found.scored] = found.decided
    expected = [
        [has[place] and not any(has[found.hierarchy.index[child]] for child in found.hierarchy.children(node))
         for place, node in enumerate(found.hierarchy.nodes)]
        for has in every
    ]  # fmt: skip
    np.testing.assert_array_equal(found.deepest, np.array(expected)[:, found.scored])


def test_the_best_of_the_decided_terms() -> None:
    """Not the decided ones of the best: a term may be decided though others are more probable."""
    flat = Hierarchy.from_edges([], nodes=["a", "b", "c"])
    probs = np.array([[0.9, 0.4, 0.3]], dtype=np.float32)
    found = Predictions(flat, np.ones(3, dtype=np.bool_), probs, np.array([[False, True, True]]), probs, "by hand")
    best = found.to_frame(layout="cafa", most_terms=1, decided_only=True)
    assert best.rows() == [("0", "b", "0.400")]


def test_what_is_refused(tmp_path: Path) -> None:
    tree = Hierarchy.from_edges([("row", "a;b")])
    ones = np.ones((1, 2), dtype=np.float32)
    found = Predictions(tree, np.ones(2, dtype=np.bool_), ones, ones > 0, ones, "by hand")
    with pytest.raises(ArgumentError, match="the node 'a;b' contains the separator ';'; choose another one"):
        found.to_frame(layout="sets")
    assert found.to_frame(layout="sets", separator="|")["labels"].to_list() == ["a;b"]
    with pytest.raises(ArgumentError, match="the node 'a;b' contains the separator ';'; choose another one"):
        found.to_frame(layout="sets", separator="; ")  # readers ignore blanks around it
    with pytest.raises(ArgumentError, match="the node 'a;b' overlaps the separator 'bb'; choose another one"):
        found.to_frame(layout="sets", separator="bb")
    assert found.to_frame(layout="sets", separator=" ")["labels"].to_list() == ["a;b"]
    with pytest.raises(ArgumentError, match="the node 'row' is called like the column that names the rows"):
        found.to_frame(layout="wide")
    for name, layout, told in (
        ("p.txt", "long", r"must end in \.csv, \.tsv"),
        ("p", "sets", "must end in"),
        ("p.jsonl", "cafa", "the layout cafa is text"),
        ("no/p.csv", "long", "cannot be written"),
    ):
        with pytest.raises(ArgumentError, match=told):
            found.write(tmp_path / name, layout=layout)
    for wrong, told in (
        ({"layout": "tall"}, "unknown layout 'tall'; choose one of long, wide, sets, cafa"),
        ({"min_probability": 1.5}, "min_probability must lie between 0 and 1"),
        ({"separator": ""}, "the separator must not be empty"),
        ({"separator": "\udcff"}, "the separator '.udcff' is not valid Unicode text"),
        ({"most_terms": 0}, "most_terms must be at least 1"),
    ):
        with pytest.raises(ArgumentError, match=told):
            Choice(**wrong)
    assert list(tmp_path.iterdir()) == []


# --- a run's predictions ---------------------------------------------------------------------------------------------


def rows(count: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    leaf = rng.integers(0, 3, count)
    return pl.DataFrame(
        {
            "image": [f"IMG {seed}.{row}" for row in range(count)],
            "depth": np.round(leaf + rng.normal(scale=0.4, size=count), 3),
            "ground": [("sand", "mud", "rock")[each if rng.random() < 0.8 else 0] for each in leaf],
            "taxa": [("Biota > Corals > Black", "Biota > Corals > Soft", "Biota > Sponges")[each] for each in leaf],
        }
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("run")
    rows(90, 0).write_csv(folder / "train.csv")
    small = Settings(hidden_size=8, epochs=3, n_trees=5, holdout=0.3, batch_size=16, engine="torch")
    options = {"labels": "taxa", "id": "image"}
    return Run.fit(folder / "train.csv", folder / "run", small, options=options, report=False)


@pytest.fixture
def new(tmp_path: Path) -> Path:
    rows(23, 1).drop("taxa").write_parquet(tmp_path / "new.parquet")
    rows(23, 1).drop("taxa").write_csv(tmp_path / "new.csv")
    return tmp_path / "new.csv"


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("source", [".csv", ".parquet"])
def test_streaming_gives_the_same_file(
    run: Run, new: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, suffix: str
) -> None:
    data = new.with_suffix(source)
    whole, divided = tmp_path / f"whole{suffix}", tmp_path / f"divided{suffix}"
    for choice in (Choice(), Choice("wide"), Choice("sets"), Choice(decided_only=True, min_probability=0.5)):
        assert run.predict_to_file(data, whole, choice=choice)[0] == 23
        with monkeypatch.context() as patch:
            patch.setattr(module, "CELLS_AT_A_TIME", 4 * len(run.model.hierarchy))
            assert run.predict_to_file(data, divided, choice=choice)[0] == 23
        if suffix == ".parquet":
            assert pl.read_parquet(whole).equals(pl.read_parquet(divided))
        else:
            assert whole.read_bytes() == divided.read_bytes()


def test_a_table_that_is_replaced_while_it_is_read(
    run: Run, new: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = new.with_suffix(".parquet")
    monkeypatch.setattr(module, "CELLS_AT_A_TIME", 4 * len(run.model.hierarchy))
    plain = module.predict_rows

    def predict_and_replace(*arguments: Any) -> Predictions:
        rows(23, 2).write_parquet(tmp_path / "other.parquet")
        (tmp_path / "other.parquet").replace(data)
        return plain(*arguments)

    monkeypatch.setattr(module, "predict_rows", predict_and_replace)
    for out in ("p.csv", "p.parquet"):
        with pytest.raises(FileFormatError, match=r"new\.parquet: it has changed while it was read"):
            run.predict_to_file(data, tmp_path / out)
        assert not (tmp_path / out).exists()


def test_ids_are_carried_through(run: Run, new: Path, tmp_path: Path) -> None:
    ids = pl.read_csv(new)["image"].to_list()
    found = run.predict(new)
    assert found.ids == tuple(ids)
    run.predict_to_file(new, tmp_path / "p.csv", choice=Choice("sets"))
    assert pl.read_csv(tmp_path / "p.csv")["image"].to_list() == ids
    assert replace(found, id_name="node").to_frame().columns[:2] == ["id", "node"]
    run.predict_to_file(new, tmp_path / "p.tsv", choice=Choice("cafa"))
    lines = (tmp_path / "p.tsv").read_text().splitlines()
    assert list(dict.fromkeys(line.split("\t")[0] for line in lines)) == ids


def test_a_csv_file_for_a_spreadsheet(run: Run, new: Path, tmp_path: Path) -> None:
    choice = Choice(dialect=Dialect(";", decimal_comma=True, byte_order_mark=True))
    written = run.predict_to_file(new, tmp_path / "p.csv", choice=choice)
    content = (tmp_path / "p.csv").read_bytes()
    assert content.count(codecs.BOM_UTF8) == 1
    header, first = content.decode("utf-8-sig").splitlines()[:2]
    assert header == "image;node;title;probability;decided;uncertainty"
    assert re.fullmatch(r"IMG 1\.0;[^;]+;[^;]+;\d+,\d+;[01];\d+,\d+(e-\d+)?", first)
    assert written.lines == content.count(b"\n") - 1
    run.predict_to_file(new, tmp_path / "s.csv", choice=replace(choice, layout="sets"))
    cells = pl.read_csv(tmp_path / "s.csv", separator=";")["probabilities"].to_list()
    assert all(re.fullmatch(r"\d,\d{3}(;\d,\d{3})*", cell) for cell in cells)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_spreadsheet_sees_a_formula(tmp_path: Path, layout: Layout, suffix: str) -> None:
    hierarchy = Hierarchy.from_edges([("=cmd|' /C calc'!A0", "+1"), ("=cmd|' /C calc'!A0", "@SUM(A1)")])
    probs = np.full((2, 3), 0.5, dtype=np.float32)
    found = Predictions(
        hierarchy, np.ones(3, dtype=np.bool_), probs, probs > 0, -probs, "by hand", ("x;=1", "-1+1"), id_name="@id"
    )
    if layout == "cafa" and suffix in (".parquet", ".jsonl"):
        return
    shown, raw = tmp_path / f"shown{suffix}", tmp_path / f"raw{suffix}"
    found.write(shown, layout=layout)
    found.write(raw, layout=layout, raw=True)
    if layout == "cafa" or suffix in (".parquet", ".jsonl"):
        assert shown.read_bytes() == raw.read_bytes()
        return
    with shown.open(newline="") as file:
        cells = [cell for line in csv.reader(file, delimiter="\t" if suffix == ".tsv" else ",") for cell in line]
    assert not [cell for cell in cells if cell[0] in "=+-@" and re.fullmatch(r"[+-]?[\d.]+", cell) is None]
    assert {"'-1+1", "'@id", "x;'=1"} <= set(cells)
    assert re.search(r"[;,\t\n]=", shown.read_text()) is None  # also if it is opened with another delimiter
    text = dict.fromkeys(["@id", "labels", "node"], True)
    again, plain = (read_table([path], lambda _: text).frame for path in (shown, raw))
    assert again.equals(plain)  # rarenode reads the same names from both
    assert again["@id"].unique().sort().to_list() == ["-1+1", "x;=1"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_odd_names_are_read_back(tmp_path: Path, suffix: str) -> None:
    nodes = ('12" pipe', 'a "b", c', "two\nlines")
    hierarchy = Hierarchy.from_edges([("top", node) for node in nodes])
    decided = np.array([[node in (each, "top") for node in hierarchy.nodes] for each in nodes])
    probs = decided.astype(np.float32)
    ids = ('1"', "x,y", "z")
    found = Predictions(hierarchy, np.ones(4, dtype=np.bool_), probs, decided, probs, "by hand", ids, id_name='key "1"')
    for layout, labels in (("wide", hierarchy.nodes), ("sets", ("labels",))):
        path = tmp_path / f"{layout}{suffix}"
        found.write(path, layout=layout, decided_only=True)
        options = TableOptions(labels=labels, id='key "1"')
        _, again, known = read_labels([path], options, hierarchy)
        np.testing.assert_array_equal(again, decided)
        assert known is None


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_nodes_and_rows_called_na_are_read_back(tmp_path: Path, suffix: str) -> None:
    nodes = ("NA", "ZA", "null", "?", "nan")
    hierarchy = Hierarchy.from_edges([("Africa", node) for node in nodes])
    decided = np.array([[node in (each, "Africa") for node in hierarchy.nodes] for each in nodes])
    probs = decided.astype(np.float32)
    found = Predictions(hierarchy, np.ones(6, dtype=np.bool_), probs, decided, probs, "by hand", nodes)
    for layout, labels in (("wide", hierarchy.nodes), ("sets", ("labels",))):
        path = tmp_path / f"{layout}{suffix}"
        found.write(path, layout=layout, decided_only=True)
        _, again, known = read_labels([path], TableOptions(labels=labels, id="id"), hierarchy)
        np.testing.assert_array_equal(again, decided)
        assert known is None
    path = tmp_path / f"long{suffix}"
    lines = found.write(path, decided_only=True)
    _, again, known = read_labels([path], TableOptions(labels=("node",)), hierarchy)
    np.testing.assert_array_equal(again[: lines // 5].any(axis=0), decided[0])
    assert len(again) == lines == 10
    assert known is None


def test_rows_without_labels_are_counted(run: Run, new: Path, tmp_path: Path) -> None:
    assert run.predict_to_file(new, tmp_path / "p.csv").without_labels == 0
    # A node that all training rows have is certain, so the threshold is one that nothing reaches.
    nothing = run.model.with_thresholds(Thresholds(np.full(len(run.model.hierarchy), np.inf), "add_ancestors", "none"))
    nothing.save(tmp_path / "nothing")
    assert Run(tmp_path / "nothing").predict_to_file(new, tmp_path / "p.csv").without_labels == 23


def test_the_data_are_not_overwritten(run: Run, new: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.csv"
    copy.write_bytes(new.read_bytes())
    (tmp_path / "link.csv").symlink_to(copy)
    for out in (copy, tmp_path / "link.csv"):
        for data in (copy, [str(copy)]):
            with pytest.raises(ArgumentError, match="the predictions would replace the data"):
                run.predict_to_file(data, out)
    assert copy.read_bytes() == new.read_bytes()


def test_data_that_are_not_there_are_named(run: Run, tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"^[^ ]*nothing\.csv: "):
        run.predict_to_file(tmp_path / "nothing.csv", tmp_path / "p.csv")


def test_cafa_has_no_quotes(tmp_path: Path) -> None:
    ones = np.ones((1, 1), dtype=np.float32)
    for name, told in (('a "b", c', None), ("a\tb", "contains a tab or a line break")):
        flat = Hierarchy.from_edges([], nodes=[name])
        found = Predictions(flat, np.array([True]), ones, ones > 0, ones, "by hand", ("x",))
        if told is None:
            found.write(tmp_path / "p.tsv", layout="cafa")
            assert (tmp_path / "p.tsv").read_text() == f"x\t{name}\t1.000\n"
        else:
            with pytest.raises(ArgumentError, match=told):
                found.write(tmp_path / "p.tsv", layout="cafa")
    found = Predictions(Hierarchy.from_edges([], nodes=["a"]), np.array([True]), ones, ones > 0, ones, "x", ("1\n2",))
    with pytest.raises(ArgumentError, match=r"the id '1\\n2' contains a tab or a line break"):
        found.write(tmp_path / "p.tsv", layout="cafa")


def test_files_and_rows_are_predicted_alike(run: Run, new: Path) -> None:
    by_csv, by_parquet = run.predict(new), run.predict(new.with_suffix(".parquet"))
    assert np.array_equal(by_csv.probs, by_parquet.probs)
    frame = pl.read_csv(new)
    assert np.array_equal(run.model.predict_proba(frame.select("depth", "ground"))[:, run.model.scored], by_csv.probs)


@pytest.mark.parametrize("kind", ["polars", "pandas", "pandas with an index"])
def test_data_frames_are_predicted_as_files_are(
    run: Run, new: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    labelled = rows(23, 1)
    frame: Any = labelled.drop("taxa")
    if kind != "polars":
        frame = pd.DataFrame(frame.to_dict(as_series=False))
        frame = frame.set_index("image") if kind == "pandas with an index" else frame
    by_file, by_frame = run.predict(new), run.predict(frame)
    assert np.array_equal(by_frame.probs, by_file.probs)
    assert by_frame.ids == by_file.ids
    monkeypatch.setattr(module, "CELLS_AT_A_TIME", 5 * len(run.model.hierarchy))
    for source, name in ((new, "file.csv"), (frame, "frame.csv")):
        assert run.predict_to_file(source, tmp_path / name)[0] == 23
    assert (tmp_path / "file.csv").read_bytes() == (tmp_path / "frame.csv").read_bytes()
    assert run.evaluate(labelled).rows == 23


def test_a_run_of_a_data_frame(run: Run, tmp_path: Path) -> None:
    edges = [("root", "Corals"), ("Corals", "Black"), ("Corals", "Soft"), ("root", "Sponges")]
    taxa = [label.split(" > ")[-1] for label in rows(90, 0)["taxa"]]
    frame = pd.DataFrame({"depth": rows(90, 0)["depth"].to_list(), "taxa": taxa}).iloc[10:]
    found = Run.fit(frame, tmp_path / "run", run.settings, hierarchy=edges, options={"labels": "taxa"}, report=False)
    assert found.model.hierarchy == Hierarchy.from_edges(edges)
    assert found.model.scored.all()  # a node called root is a node
    predicted = found.predict(frame[["depth"]])
    assert predicted.ids == tuple(str(row) for row in range(10, 90))
    assert predicted.nodes[0] == "root"
    assert predicted.probs[:, 0].min() > 0.5
    with on_training_rows():
        assert found.evaluate(frame).trained_on
    assert found.evaluate().data == "the data frame, held-out rows"


def test_labels_end_where_confidence_does(run: Run, new: Path) -> None:
    everything, sure = run.predict(new), run.predict(new, min_confidence=0.9)
    np.testing.assert_array_equal(sure.decided, everything.decided & (everything.probs >= np.float32(0.9)))
    assert sure.decided.sum() < everything.decided.sum()
    for parent, child in run.model.hierarchy.edges:  # still closed
        p, c = (everything.nodes.index(node) for node in (parent, child))
        assert (sure.decided[:, p] | ~sure.decided[:, c]).all()


def test_a_fault_in_a_later_part_leaves_no_file(
    run: Run, new: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CELLS_AT_A_TIME", 4 * len(run.model.hierarchy))
    frame = pl.read_parquet(new.with_suffix(".parquet"))
    twice = frame.with_columns(image=pl.Series([*frame["image"][:-1], frame["image"][0]]))
    large = frame.with_columns(depth=pl.Series([*frame["depth"][:-1], float("inf")]))
    for bad, told in ((twice, "row 23: the id 'IMG 1.0' .* appears twice"), (large, "row 23: column 'depth'")):
        bad.write_parquet(tmp_path / "bad.parquet")
        for out in ("p.csv", "p.parquet", "p.jsonl"):
            with pytest.raises(DataError, match=told):
                run.predict_to_file(tmp_path / "bad.parquet", tmp_path / out)
            assert not (tmp_path / out).exists()


def test_an_unseen_category_is_predicted(run: Run, new: Path, tmp_path: Path) -> None:
    frame = pl.read_csv(new).with_columns(ground=pl.lit("coral rubble"))
    frame.write_csv(tmp_path / "unseen.csv")
    missing = frame.with_columns(ground=pl.lit(None, dtype=pl.String))
    found = run.predict(tmp_path / "unseen.csv").probs
    assert np.isfinite(found).all()
    missing.write_parquet(tmp_path / "missing.parquet")
    assert np.array_equal(run.predict(tmp_path / "missing.parquet").probs, found)  # no level was rare in training


LIMITED = """
import resource, sys
from pathlib import Path
import numpy as np
from rarenode import Hierarchy
from rarenode.errors import ArgumentError
from rarenode.run.predictions import Predictions

tree = Hierarchy.from_paths(["a > b", "a > c"])
probs = np.random.default_rng(0).random((20_000, 3)).astype(np.float32)
found = Predictions(tree, np.ones(3, dtype=np.bool_), probs, probs > 0.5, probs, "by hand")
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
for path in map(Path, sys.argv[1:]):
    try:
        found.write(path)
    except ArgumentError as error:
        print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="files have no limit there")
def test_a_disk_that_is_full(tmp_path: Path) -> None:
    paths = [tmp_path / f"p{suffix}" for suffix in SUFFIXES]
    result = subprocess.run([sys.executable, "-c", LIMITED, *paths], capture_output=True, text=True, check=True)
    for path, line in zip(paths, result.stdout.splitlines(), strict=True):
        assert line.startswith(f"{path} cannot be written: File too large")
    assert list(tmp_path.iterdir()) == []
