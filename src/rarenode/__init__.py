"""Hierarchical multi-label learning that finds the rare, deep nodes.

Every public name is here. A name is imported when it is first used, so that the parts which need no torch start at
once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from rarenode.version import __version__

if TYPE_CHECKING:
    from rarenode.data.arff import ArffFile, read_arff
    from rarenode.data.catalogue import catalogue
    from rarenode.data.dataset import Dataset, Split, load_dataset
    from rarenode.data.fetch import fetch_dataset
    from rarenode.data.preparation import Preparation
    from rarenode.data.synthetic import make_hierarchical
    from rarenode.diagnosis import NodeDiagnosis, diagnose
    from rarenode.errors import RarenodeError
    from rarenode.estimator import RareNodeClassifier
    from rarenode.hierarchy import Hierarchy
    from rarenode.metrics import (
        NodeScores,
        Summary,
        node_scores,
        summary,
        summary_by_depth,
        summary_by_rarity,
    )
    from rarenode.objective import (
        NodeWeights,
        RareNodeLoss,
        WeightSchedule,
        constrain,
        node_weights,
        uncertainty,
    )
    from rarenode.resampling import HROSPD, LPROS
    from rarenode.training import Settings, TrainedModel, TrainingRows, fit, train
    from rarenode.training.presets import preset

_HOME = {
    "HROSPD": "resampling",
    "LPROS": "resampling",
    "ArffFile": "data.arff",
    "Dataset": "data.dataset",
    "Hierarchy": "hierarchy",
    "NodeDiagnosis": "diagnosis",
    "NodeScores": "metrics",
    "NodeWeights": "objective",
    "Preparation": "data.preparation",
    "RareNodeClassifier": "estimator",
    "RareNodeLoss": "objective",
    "RarenodeError": "errors",
    "Settings": "training",
    "Split": "data.dataset",
    "Summary": "metrics",
    "TrainedModel": "training",
    "TrainingRows": "training",
    "WeightSchedule": "objective",
    "catalogue": "data.catalogue",
    "constrain": "objective",
    "diagnose": "diagnosis",
    "fetch_dataset": "data.fetch",
    "fit": "training",
    "load_dataset": "data.dataset",
    "make_hierarchical": "data.synthetic",
    "node_scores": "metrics",
    "node_weights": "objective",
    "preset": "training.presets",
    "read_arff": "data.arff",
    "summary": "metrics",
    "summary_by_depth": "metrics",
    "summary_by_rarity": "metrics",
    "train": "training",
    "uncertainty": "objective",
}

__all__ = [
    "HROSPD",
    "LPROS",
    "ArffFile",
    "Dataset",
    "Hierarchy",
    "NodeDiagnosis",
    "NodeScores",
    "NodeWeights",
    "Preparation",
    "RareNodeClassifier",
    "RareNodeLoss",
    "RarenodeError",
    "Settings",
    "Split",
    "Summary",
    "TrainedModel",
    "TrainingRows",
    "WeightSchedule",
    "__version__",
    "catalogue",
    "constrain",
    "diagnose",
    "fetch_dataset",
    "fit",
    "load_dataset",
    "make_hierarchical",
    "node_scores",
    "node_weights",
    "preset",
    "read_arff",
    "summary",
    "summary_by_depth",
    "summary_by_rarity",
    "train",
    "uncertainty",
]


if not TYPE_CHECKING:  # a type checker reads the imports above, and still reports names that are not there

    def __getattr__(name: str) -> object:
        if name not in _HOME:
            raise AttributeError(f"module 'rarenode' has no attribute {name!r}")
        value = getattr(import_module(f"rarenode.{_HOME[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
