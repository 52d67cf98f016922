"""Runs to report on, which nobody had to train: models with random parameters, and nodes with counts from anywhere."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from rarenode import Hierarchy
from rarenode.config import Settings
from rarenode.diagnosis import NodeDiagnosis, diagnose_counts
from rarenode.metrics import NodeScores, Summary
from rarenode.models import Blend, Mlp, MlpEnsemble, grow_forest, initial_parameters
from rarenode.report import RunReport
from rarenode.thresholds import Thresholds
from rarenode.training import EpochRecord, TrainedModel

FEATURES = 4
EDGES = (("a", "b"), ("a", "c"), ("b", "d"), ("b", "e"), ("c", "e"), ("c", "f"), ("a", "f"), ("d", "g"))
DAG = Hierarchy.from_edges(EDGES, nodes=["z"])
"""With two roots, two nodes with two parents, and one that has parents of different depths."""
SUMMARY = Summary(0.25, 0.5, 0.125, 0.75, 0.375, nodes=5, nodes_predicted=4, nodes_found=3)
HISTORY = tuple(
    EpochRecord(epoch=n, loss=1 / n, seconds=0.5, steps_per_second=10.0, valid=SUMMARY if n > 1 else None)
    for n in (1, 2, 3)
)
COUNTS_AT_EDGES = (0, 1, 4, 5, 19, 20, 99, 100, 5000)
"""Of training rows: where a band of rarity begins or ends."""


class Rows(NamedTuple):
    X: NDArray[np.float32]
    Y: NDArray[np.bool_]


def rows_over(hierarchy: Hierarchy, rows: int = 40, seed: int = 0) -> Rows:
    """Rows whose labels have nothing to do with their features."""
    rng = np.random.default_rng(seed)
    Y = hierarchy.close(rng.random((rows, len(hierarchy))) < 0.15)
    return Rows(rng.normal(size=(rows, FEATURES)).astype(np.float32), Y)


def model_over(hierarchy: Hierarchy, members: int = 2, trees: int = 3, seed: int = 0, **changes: Any) -> TrainedModel:
    """A model that nobody trained, whose probabilities differ from row to row."""
    settings = Settings(n_members=members, hidden_size=6, n_trees=max(trees, 1))
    shape = MlpEnsemble.from_settings(settings, FEATURES, len(hierarchy))
    given = rows_over(hierarchy, 60, seed + 100)
    every = np.ones(len(hierarchy), dtype=np.bool_)
    parameters = {name: (6 * array).astype(np.float32) for name, array in initial_parameters(shape, seed).items()}
    network = Mlp(shape, parameters, hierarchy)
    values: dict[str, Any] = {
        "model": Blend((network, grow_forest(given.X, given.Y, scored=every, trees=trees, seed=seed)))
        if trees
        else network,
        "hierarchy": hierarchy,
        "scored": every,
        "settings": settings,
        "engine": "torch",
        "history": HISTORY,
        "training_positives": np.array([COUNTS_AT_EDGES[c % len(COUNTS_AT_EDGES)] for c in range(len(hierarchy))]),
        "versions": {"rarenode": "0.1.0"},
        "fingerprints": {"rows": "0" * 64},
    }
    return TrainedModel(**(values | changes))


class Counts(NamedTuple):
    """Of one node: rows where it is found, decided and labelled."""

    found: int
    decided: int
    labelled: int


def nodes_with(
    hierarchy: Hierarchy, counts: list[Counts], scored: list[bool] | None = None, training: list[int] | None = None
) -> NodeDiagnosis:
    found, decided, labelled = (np.array(values, dtype=np.int64) for values in zip(*counts, strict=True))
    scores = NodeScores(
        precision=found / np.maximum(decided, 1),
        recall=found / np.maximum(labelled, 1),
        f1=2 * found / np.maximum(decided + labelled, 1),
        true_positives=found,
        predicted=decided,
        support=labelled,
    )
    return diagnose_counts(
        hierarchy,
        scores,
        Thresholds(np.full(len(hierarchy), 0.5)),
        np.array([1] * len(hierarchy) if training is None else training, dtype=np.int64),
        np.array([True] * len(hierarchy) if scored is None else scored, dtype=np.bool_),
    )


def run_of(nodes: NodeDiagnosis, name: str = "run", **changes: Any) -> RunReport:
    values: dict[str, Any] = {
        "name": name, "about": "rows of a test", "summary": SUMMARY, "deviations": None, "deviations_of": "",
        "nodes": nodes, "card": (), "curves": {}, "reliability": {}, "history": (), "unsure_rows": (),
    }  # fmt: skip
    return RunReport(**(values | changes))


@st.composite
def nodes_over(draw: st.DrawFn, hierarchy: Hierarchy) -> NodeDiagnosis:
    """Any counts that can be, of nodes any of which may be left out of scoring."""
    size = len(hierarchy)

    def counts() -> Counts:
        decided, labelled = draw(st.integers(0, 3)), draw(st.integers(0, 3))
        return Counts(draw(st.integers(0, min(decided, labelled))), decided, labelled)

    scored = draw(hnp.arrays(np.bool_, size, elements=st.sampled_from((True, True, True, False))))
    training = draw(st.lists(st.sampled_from(COUNTS_AT_EDGES), min_size=size, max_size=size))
    return nodes_with(hierarchy, [counts() for _ in range(size)], scored.tolist(), training)
