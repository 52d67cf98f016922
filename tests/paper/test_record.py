from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from rarenode.errors import FileFormatError
from rarenode.metrics import Summary
from rarenode.paper.grid import Cell
from rarenode.paper.record_settings import DEFAULTS
from rarenode.paper.store import NODES, load_record, read_nodes, read_record, record_files, record_path, write_record
from tests.paper.small_grid import cell_of, made_up

CELL = cell_of(w0=0.5)
RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    write_record(tmp_path, *made_up(CELL))
    return record_path(tmp_path, CELL)


def change(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")


def problem(folder: Path, cell: Cell = CELL) -> str:
    with pytest.raises(FileFormatError) as caught:
        read_record(folder, cell)
    assert caught.value.path == record_path(folder, cell)
    return caught.value.problem


class TestRoundTrip:
    def test_record_and_nodes(self, kept: Path, tmp_path: Path) -> None:
        assert (read_record(tmp_path, CELL), read_nodes(tmp_path, CELL.dataset)) == made_up(CELL)

    def test_numbers_keep_every_bit(self, tmp_path: Path) -> None:
        figures = Summary(1 / 3, 0.1 + 0.2, 5e-324, 1 - 2**-53, 2 / 7, nodes=499, nodes_predicted=3, nodes_found=2)
        write_record(tmp_path, *made_up(CELL, summary=figures, peak_bytes=2**40))
        found = read_record(tmp_path, CELL)
        assert found is not None
        assert found.at_half.summary == figures
        assert found.at_half.peak_bytes == 2**40

    def test_the_file_has_a_line_for_each_field(self, kept: Path) -> None:
        lines = kept.read_text(encoding="utf-8").splitlines()
        record, _ = made_up(CELL)
        assert [line.split('"')[1] for line in lines[1:-1]] == list(record.to_file())

    def test_none_where_there_is_none(self, tmp_path: Path) -> None:
        assert read_record(tmp_path, CELL) is None

    def test_each_cell_has_its_own(self, kept: Path, tmp_path: Path) -> None:
        assert read_record(tmp_path, cell_of(w0=0.5, seed=1)) is None
        assert read_record(tmp_path, cell_of("spo_FUN", w0=0.5)) is None

    def test_the_engine_is_not_part_of_what_is_looked_for(self, kept: Path, tmp_path: Path) -> None:
        assert read_record(tmp_path, cell_of(w0=0.5, engine="fused", checkpoint_epochs=4)) == made_up(CELL)[0]

    def test_a_setting_that_did_not_exist_then_takes_its_default(self, kept: Path, tmp_path: Path) -> None:
        settings = json.loads(kept.read_text(encoding="utf-8"))["settings"]
        assert settings.pop("mix") == DEFAULTS["mix"]
        change(kept, settings=settings)
        assert read_record(tmp_path, CELL) == made_up(CELL)[0]


class TestPictures:
    @pytest.mark.parametrize("changes", [{"factor": 0.0}, {"fraction": 0.05}, {"factor": 0.25, "fraction": 0.5}])
    def test_factor_and_fraction_are_kept(self, tmp_path: Path, changes: dict[str, Any]) -> None:
        cell = replace(cell_of("reef"), **changes)
        record, nodes = made_up(cell)
        write_record(tmp_path, record, nodes)
        assert read_record(tmp_path, cell) == record
        assert record.cell == cell
        fields = json.loads(record_path(tmp_path, cell).read_text(encoding="utf-8"))
        assert {name: fields[name] for name in ("factor", "fraction") if name in fields} == changes
        assert read_record(tmp_path, cell_of("reef")) is None

    def test_the_record_of_another_factor_is_noticed(self, tmp_path: Path) -> None:
        half, other = (replace(cell_of("reef"), factor=factor) for factor in (0.5, 0.75))
        write_record(tmp_path, *made_up(half))
        record_path(tmp_path, half).rename(record_path(tmp_path, other))
        assert "another training; remove it" in problem(tmp_path, other)

    def test_a_factor_beyond_1_cannot_be(self, tmp_path: Path) -> None:
        cell = replace(cell_of("reef"), factor=0.5)
        write_record(tmp_path, *made_up(cell))
        change(record_path(tmp_path, cell), factor=1.5)
        assert "factor: Input should be less than or equal to 1" in problem(tmp_path, cell)

    def test_other_records_say_nothing_of_it(self, kept: Path) -> None:
        assert not {"factor", "fraction"} & json.loads(kept.read_text(encoding="utf-8")).keys()

    def test_a_record_that_is_written_again_has_the_same_bytes(self, kept: Path, tmp_path: Path) -> None:
        write_record(tmp_path / "again", load_record(kept))
        assert record_path(tmp_path / "again", CELL).read_bytes() == kept.read_bytes()

    def test_records_of_before_are_what_they_were(self, tmp_path: Path) -> None:
        """Of each dataset and kind one. Old files lack settings that have their defaults, and have another order."""
        folders = dict.fromkeys(path.parent for path in record_files(RESULTS))
        assert not RESULTS.is_dir() or folders
        for folder in folders:
            path = next(path for path in sorted(folder.glob("*.json")) if path.name != NODES)
            record = load_record(path)
            write_record(tmp_path, record)
            again = record_path(tmp_path, record.cell)
            assert again.relative_to(tmp_path) == path.relative_to(RESULTS)
            before, after = (json.loads(file.read_text(encoding="utf-8")) for file in (path, again))
            assert before | {"settings": {**DEFAULTS, **before["settings"]}} == after


class TestDamage:
    @pytest.mark.parametrize("score", [-0.1, 1.5, 1e300])
    def test_scores_that_are_none(self, kept: Path, tmp_path: Path, score: float) -> None:
        summary = json.loads(kept.read_text(encoding="utf-8"))["summary"]
        change(kept, summary=summary | {"ap": score})
        assert "scores lie between 0 and 1" in problem(tmp_path)

    def test_a_record_that_cannot_be_read(self, kept: Path, tmp_path: Path) -> None:
        kept.unlink()
        kept.mkdir()
        assert "it cannot be read" in problem(tmp_path)

    def test_results_of_other_data_are_not_mixed(self, kept: Path, tmp_path: Path) -> None:
        record, nodes = made_up(CELL)
        other = nodes.model_copy(update={"training_rows": (9, 4, 4)})
        with pytest.raises(FileFormatError, match="belongs to other data"):
            write_record(tmp_path, record, other)

    @pytest.mark.parametrize(
        "content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"format": "rarenode record"}']
    )
    def test_what_is_no_record(self, kept: Path, tmp_path: Path, content: bytes) -> None:
        kept.write_bytes(content)
        assert problem(tmp_path).startswith("this is not a record: ")

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"format": "other"}, "format: it should be one of rarenode record, rarenode decisions; got 'other'"),
            ({"seconds": -1}, "seconds: Input should be greater than or equal to 0; got -1"),
            ({"surprise": 1}, "'surprise'"),
            ({"nodes": {"column": [1], "predicted": [-2], "true_positives": [0]}}, "fixed.nodes.predicted.0"),
            ({"nodes": {"column": [1, 2], "predicted": [2], "true_positives": [1]}}, "of one length"),
            ({"summary": {"f1": "NaN"}}, "summary"),
        ],
    )
    def test_fields_that_cannot_be(self, kept: Path, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
        change(kept, **changes)
        assert message in problem(tmp_path)

    def test_settings_that_cannot_be(self, kept: Path, tmp_path: Path) -> None:
        settings = json.loads(kept.read_text(encoding="utf-8"))["settings"]
        change(kept, settings=settings | {"hidden": 0})
        assert "hidden_size: Input should be greater than or equal to 1" in problem(tmp_path)

    def test_a_record_of_other_settings(self, kept: Path, tmp_path: Path) -> None:
        other = cell_of(w0=0.75)
        kept.rename(record_path(tmp_path, other))
        assert "another training; remove it" in problem(tmp_path, other)

    def test_a_record_of_another_dataset(self, kept: Path, tmp_path: Path) -> None:
        change(kept, dataset="spo_FUN")
        assert "another training; remove it" in problem(tmp_path)


class TestNodes:
    def test_they_are_written_once(self, kept: Path, tmp_path: Path) -> None:
        before = kept.with_name(NODES).stat().st_mtime_ns
        write_record(tmp_path, *made_up(cell_of()))
        assert kept.with_name(NODES).stat().st_mtime_ns == before

    def test_missing_beside_records(self, kept: Path, tmp_path: Path) -> None:
        kept.with_name(NODES).unlink()
        with pytest.raises(FileFormatError, match=r"nodes\.json: it is missing, though the dataset has records"):
            read_nodes(tmp_path, CELL.dataset)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [({"test_rows": [1, 2]}, "of one length"), ({"scored": ["so"]}, "scored.0"), ({"names": 3}, "names")],
    )
    def test_damaged(self, kept: Path, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
        change(kept.with_name(NODES), **changes)
        with pytest.raises(FileFormatError, match=message):
            read_nodes(tmp_path, CELL.dataset)

    def test_processes_side_by_side_may_all_be_the_first(self, tmp_path: Path) -> None:
        cells = [cell_of(seed=seed) for seed in range(8)]
        for attempt in range(10):
            folder = tmp_path / str(attempt)
            together = Barrier(len(cells))

            def write(cell: Cell, folder: Path = folder, together: Barrier = together) -> None:
                together.wait()
                write_record(folder, *made_up(cell))

            with ThreadPoolExecutor(len(cells)) as threads:
                list(threads.map(write, cells))
            assert read_nodes(folder, CELL.dataset) == made_up(CELL)[1]
            assert all(read_record(folder, cell) == made_up(cell)[0] for cell in cells)
            assert len(list((folder / CELL.dataset).iterdir())) == len(cells) + 1


class TestAtomicity:
    def test_a_full_disk_leaves_what_was_there(
        self, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = {path.name: path.read_bytes() for path in kept.parent.iterdir()}

        def no_space(_descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", no_space)
        with pytest.raises(OSError, match="No space left"):
            write_record(tmp_path, *made_up(CELL, threads=7))
        with pytest.raises(OSError, match="No space left"):
            write_record(tmp_path, *made_up(cell_of()))
        assert {path.name: path.read_bytes() for path in kept.parent.iterdir()} == before

    def test_nodes_are_there_before_any_record_is(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A kill between the two must not leave a record that nothing can be told from."""
        appeared = []
        rename = Path.replace

        def watched(path: Path, target: Path) -> Path:
            appeared.append(target.name)
            return rename(path, target)

        monkeypatch.setattr(Path, "replace", watched)
        write_record(tmp_path, *made_up(CELL))
        assert appeared[-2:] == [NODES, record_path(tmp_path, CELL).name]
