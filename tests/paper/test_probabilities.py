from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from rarenode.errors import FileFormatError
from rarenode.paper.grid import Cell
from rarenode.paper.record import Training
from rarenode.paper.store import Probabilities, probabilities_path, read_probabilities, write_probabilities
from tests.paper.small_grid import cell_of

CELL = cell_of(protocol="held_out")
HELD_OUT, TEST = (3, 4), (2, 4)


def training(cell: Cell = CELL) -> Training:
    return Training(
        dataset=cell.dataset, settings=cell.settings, protocol=cell.protocol, engine="fused",
        versions={"rarenode": "0.1.0"}, machine="one", threads=1, seconds=1.5,
    )  # fmt: skip


def scores(**changes: Any) -> Probabilities:
    rng = np.random.default_rng(0)
    held_out, test = (rng.random(shape, dtype=np.float32) for shape in (HELD_OUT, TEST))
    values: dict[str, Any] = {"training": training(), "epochs": 106, "held_out": held_out, "test": test}
    return Probabilities(**(values | changes))


def problem(folder: Path, cell: Cell = CELL) -> str:
    with pytest.raises(FileFormatError) as caught:
        read = read_probabilities(folder, cell)
        assert read is not None
        read.require_shapes(probabilities_path(folder, cell), HELD_OUT, TEST)
    assert str(probabilities_path(folder, cell)) in str(caught.value)
    return str(caught.value)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    given = scores()
    write_probabilities(tmp_path, given)
    assert [path.name for path in (tmp_path / "cellcycle_FUN" / "scores").iterdir()] == [f"{CELL.name}.safetensors"]
    read = read_probabilities(tmp_path, CELL)
    assert read is not None
    read.require_shapes(tmp_path, HELD_OUT, TEST)
    assert (read.training, read.epochs) == (given.training, 106)
    np.testing.assert_array_equal(read.held_out, given.held_out)
    np.testing.assert_array_equal(read.test, given.test)


def test_there_may_be_none(tmp_path: Path) -> None:
    assert read_probabilities(tmp_path, CELL) is None


def test_how_it_was_computed_makes_no_other_training(tmp_path: Path) -> None:
    write_probabilities(tmp_path, scores(training=training(cell_of(protocol="held_out", engine="torch"))))
    assert read_probabilities(tmp_path, CELL) is not None


@pytest.mark.parametrize(
    "other", [cell_of(protocol="cross_fit"), cell_of(protocol="held_out", w0=0.5), cell_of("spo_FUN", "held_out")]
)
def test_scores_of_another_training(tmp_path: Path, other: Cell) -> None:
    write_probabilities(tmp_path, scores(training=training(other)))
    path = probabilities_path(tmp_path, CELL)
    path.parent.mkdir(parents=True, exist_ok=True)
    probabilities_path(tmp_path, other).rename(path)
    assert "it belongs to another training" in problem(tmp_path)


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (3, 4, 1)])
def test_scores_of_other_rows(tmp_path: Path, shape: tuple[int, ...]) -> None:
    write_probabilities(tmp_path, scores(held_out=np.zeros(shape, dtype=np.float32)))
    assert f"held_out has the shape {shape}, where the data have {HELD_OUT}" in problem(tmp_path)


@pytest.mark.parametrize("value", [np.nan, np.inf, -0.001, 1.001])
@pytest.mark.parametrize("name", ["held_out", "test"])
def test_what_is_no_probability(tmp_path: Path, name: str, value: float) -> None:
    wrong = getattr(scores(), name).copy()
    wrong[1, 2] = value
    write_probabilities(tmp_path, scores(**{name: wrong}))
    assert f"{name}: row 1, column 2 is" in problem(tmp_path)


def test_files_of_others_and_damaged_ones(tmp_path: Path) -> None:
    write_probabilities(tmp_path, scores())
    path = probabilities_path(tmp_path, CELL)
    content = path.read_bytes()
    path.write_bytes(content[:-5])
    problem(tmp_path)
    path.write_bytes(b"")
    problem(tmp_path)
    arrays = {"held_out": scores().held_out, "test": scores().test}
    save_file(arrays, path)
    assert "rarenode did not write it" in problem(tmp_path)
    for note in ("", "{}", '{"format": "rarenode scores"}', "[" * 10_000):
        save_file(arrays, path, {"rarenode": note})
        assert "it does not contain probabilities" in problem(tmp_path)
