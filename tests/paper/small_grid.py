"""Grids so small that a test can run them: a spec, files that stand for a dataset, records that nobody trained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, get_args

import numpy as np
import pytest
from pydantic import BaseModel

import rarenode.data.catalogue
from rarenode.config import Settings
from rarenode.data.catalogue import CatalogueEntry, CatalogueFile
from rarenode.metrics import Summary
from rarenode.metrics.average_precision import POINTS
from rarenode.paper import measure as measuring
from rarenode.paper.as_published import settings_for
from rarenode.paper.grid import Cell, Task
from rarenode.paper.record import (
    CalibrationName,
    CalibrationShown,
    DatasetNodes,
    Decided,
    DecisionScores,
    FixedScores,
    NodesFound,
    PredictedNodes,
    Record,
    RowsDecided,
)
from rarenode.paper.spec import Protocol, Spec
from rarenode.thresholds.calibration_error import BINS

STANDING_FOR = "gasch2_FUN"
"""The dataset of the catalogue whose files `write_files` makes where worker processes must find them."""
QUICK = {"hidden_size": 2, "n_layers": 1, "dropout": 0.0, "batch_size": 4000, "epochs": 1, "engine": "torch"}
ENDLESS = {"epochs": 10**9}

TINY = CatalogueEntry(
    name="tiny", title="", about="", kind="tree", source="https://example.org/", features=3, nodes=6, edges=5,
    files=(
        CatalogueFile("train", PurePosixPath("tiny.train.arff"), 40),
        CatalogueFile("valid", PurePosixPath("tiny.valid.arff"), 15),
        CatalogueFile("test", PurePosixPath("tiny.test.arff"), 33),
    ),
    unscored=("root",), citations=(), licence="",
)  # fmt: skip
"""A dataset to be put into the catalogue of this process."""
TINY_SETTINGS: dict[str, Any] = {
    "hidden_size": 16, "learning_rate": 0.02, "epochs": 20, "n_layers": 2, "dropout": 0.1, "batch_size": 8,
    "weight_decay": 0.0, "engine": "torch",
}  # fmt: skip


def write_files(root: Path, entry: CatalogueEntry) -> None:
    """Files with the numbers of rows, features and nodes that the catalogue expects; features tell labels."""
    names = [f"{1 + i // 2}" if i % 2 == 0 else f"{1 + i // 2}/1" for i in range(entry.nodes - 1)]
    rng = np.random.default_rng(0)
    for file in entry.files:
        labels = rng.integers(len(names), size=file.rows)
        bits = (labels[:, None] >> (np.arange(entry.features) % 9)) & 1
        values = bits + rng.normal(scale=0.3, size=bits.shape)
        lines = ["@RELATION small", *(f"@ATTRIBUTE f{column} numeric" for column in range(entry.features))]
        lines += [f"@ATTRIBUTE class hierarchical {','.join(names)}", "@DATA"]
        lines += [
            ",".join([*(f"{value:.2f}" for value in row), names[label]])
            for row, label in zip(values.tolist(), labels.tolist(), strict=True)
        ]
        path = root / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="ascii")


@contextmanager
def tiny_alone(folder: Path) -> Iterator[Path]:
    """While it lasts, the catalogue has one dataset, named tiny, whose files are in the folder."""
    write_files(folder, TINY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rarenode.data.catalogue, "catalogue", lambda: {TINY.name: TINY})
        yield folder
    measuring.load_once.cache_clear()


def small_spec(*methods: dict[str, Any], datasets: Sequence[str] = (STANDING_FOR,), **changes: Any) -> Spec:
    return Spec.model_validate({"title": "small", "datasets": datasets, "seeds": 1, "methods": methods} | changes)


def cell_of(dataset: str = "cellcycle_FUN", protocol: Protocol = "paper", **changes: Any) -> Cell:
    return Cell(dataset, settings_for(dataset, **changes), protocol)


def tiny_cell(protocol: Protocol = "paper", **changes: Any) -> Cell:
    return Cell("tiny", Settings.preset("paper", **(TINY_SETTINGS | changes)), protocol)


def held_out_task(*decisions: str, dataset: str = "cellcycle_FUN", **changes: Any) -> Task:
    return Task(cell_of(dataset, "held_out", **changes), "decided", decisions)


def task_of(method: str = "plain", dataset: str = "cellcycle_FUN", **changes: Any) -> Task:
    return Task(cell_of(dataset, **changes), method)


def made_up(cell: Cell, **changes: Any) -> tuple[Record, DatasetNodes]:
    """What `measure` might have returned for the cell."""
    values: dict[str, Any] = {
        "steps_per_epoch": 619,
        "summary": Summary(1 / 3, 0.25, 0.5, 0.1, 0.2, nodes=2, nodes_predicted=1, nodes_found=1),
        "seconds": 12.5,
        "steps_per_second": 1234.5,
        "seconds_per_epoch": 0.5,
        "training_bytes": 1200,
        "peak_bytes": None,
        "nodes": PredictedNodes(column=(1,), predicted=(3,), true_positives=(2,)),
    }
    nodes = DatasetNodes(
        hierarchy="ab12",
        names=("root", 'n "1"\n', "é/2"),
        scored=(False, True, True),
        training_rows=(9, 4, 5),
        test_rows=(6, 4, 2),
    )
    return _record(cell, FixedScores, "fixed", values | changes), nodes


def decided(strategy: str = "fixed", f1: float = 0.25, **changes: Any) -> Decided:
    """A way to decide that found half of the nodes; of two bands and of one depth, with half of the F1 in the first."""
    common = NodesFound(nodes=4, nodes_found=2, f1=f1, precision=0.5, recall=0.125)
    rare = common.model_copy(update={"nodes_found": 1, "f1": f1 / 2})
    nobody = NodesFound(nodes=0, nodes_found=0, f1=0, precision=0, recall=0)
    rows = RowsDecided(**dict(common), nodes_predicted=3, bin_ap=0.1)
    values: dict[str, Any] = {
        "strategy": strategy,
        "rule": "add_ancestors",
        "calibration": "none",
        "fitted_on": "held_out",
        "test": rows,
        "held_out": rows,
        "by_rarity": {"0": nobody, "1-4": rare, "5-19": common},
        "by_depth": {1: common},
    }
    return Decided(**(values | changes))


def decided_record(cell: Cell, *ways: Decided, **changes: Any) -> Record:
    """What `decide` might have returned for the cell."""
    bins = len(BINS) - 1
    shown = CalibrationShown(
        mean_probability=(0.0005, *[None] * (bins - 2), 0.95),
        frequency=(0.001, *[None] * (bins - 2), 0.9),
        cells=(60, *[0] * (bins - 2), 20),
        ece=0.02,
        ece_by_rarity={"0": None, "1-4": 0.01, "5-19": 0.03, "20-99": None, "100+": None},
    )
    values: dict[str, Any] = {
        "epochs": 7,
        "seconds": 12.5,
        "ap": 0.2,
        "ap_held_out": 0.3,
        "reliability": dict.fromkeys(get_args(CalibrationName), shown),
        "curves": {"0": None, "1-4": (0.5,) * POINTS, "5-19": (0.75,) * POINTS},
        "decided": ways or (decided(), decided("expected_f1", 0.5)),
    }
    return _record(cell, DecisionScores, "decisions", values | changes)


def _record(cell: Cell, kind: type[BaseModel], part: str, values: dict[str, Any]) -> Record:
    inner = {name: value for name, value in values.items() if name in kind.model_fields}
    usual: dict[str, Any] = {
        "dataset": cell.dataset,
        "settings": cell.settings,
        "protocol": cell.protocol,
        "factor": cell.factor,
        "fraction": cell.fraction,
        "engine": "torch",
        "versions": {"rarenode": "0.1.0"},
        "machine": "one",
        "threads": 1,
    }
    others = {name: value for name, value in values.items() if name not in inner}
    return Record(**(usual | others | {part: kind(**inner)}))
