"""`measure`: train one cell as the paper did, and score it on the test rows once."""

from __future__ import annotations

import math
import os
import platform
from functools import lru_cache
from pathlib import Path
from statistics import median

import numba
import numpy as np

from rarenode.data.dataset import Dataset, load_dataset
from rarenode.metrics import node_scores, summary
from rarenode.paper.grid import Cell
from rarenode.paper.record import DatasetNodes, PredictedNodes, Record
from rarenode.training import TrainingRows, train
from rarenode.training.progress import Outlook, Silent

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def measure(cell: Cell, root: Path | None = None) -> tuple[Record, DatasetNodes]:
    """Train and score.

    Args:
        cell: what to train.
        root: the folder of the data; None is that of ``RARENODE_DATA``.
    """
    dataset = load_once(cell.dataset, root)
    rows = TrainingRows.from_dataset(dataset)
    _forget_peak()
    watch = _Outlook()
    model = train(rows, cell.settings, watch=watch)
    peak = _peak_bytes()
    probs = model.predict_proba(dataset.test.X)
    scores = node_scores(dataset.test.Y, probs >= 0.5)
    predicted = np.flatnonzero((scores.predicted > 0) & dataset.scored)
    epochs = model.history
    parameters = sum(map(math.prod, model.shape.parameter_shapes.values()))
    record = Record(
        dataset=cell.dataset,
        settings=cell.settings,
        engine=model.engine,
        versions=dict(model.versions),
        machine=machine(),
        threads=numba.get_num_threads(),
        steps_per_epoch=watch.outlook.batches,
        summary=summary(dataset.test.Y, probs, scored=dataset.scored),
        seconds=round(sum(epoch.seconds for epoch in epochs), 3),
        steps_per_second=round(median(epoch.steps_per_second for epoch in epochs), 2),
        seconds_per_epoch=round(median(epoch.seconds for epoch in epochs), 4),
        training_bytes=3 * 4 * parameters,
        peak_bytes=peak,
        nodes=PredictedNodes(
            column=tuple(predicted.tolist()),
            predicted=tuple(scores.predicted[predicted].tolist()),
            true_positives=tuple(scores.true_positives[predicted].tolist()),
        ),
    )
    nodes = DatasetNodes(
        hierarchy=dataset.hierarchy.fingerprint,
        names=dataset.hierarchy.nodes,
        scored=tuple(dataset.scored.tolist()),
        training_rows=tuple(model.training_positives.tolist()),
        test_rows=tuple(scores.support.tolist()),
    )
    return record, nodes


class _Outlook(Silent):
    """Keeps what a training said it would do."""

    def started(self, outlook: Outlook) -> None:
        """See `Watch`."""
        self.outlook = outlook


@lru_cache(maxsize=3)
def load_once(name: str, root: Path | None) -> Dataset:
    """`load_dataset`, remembered for a while: a grid comes back to a dataset for every method."""
    return load_dataset(name, root)


def machine() -> str:
    """What this runs on."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"


def _forget_peak() -> None:
    """Start the count of the most memory held anew; only Linux can."""
    try:
        CLEAR.write_text("5", encoding="ascii")
    except OSError:
        return


def _peak_bytes() -> int | None:
    try:
        lines = STATUS.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), None)
