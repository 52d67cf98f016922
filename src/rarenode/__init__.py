"""Hierarchical multi-label learning that finds the rare, deep nodes.

The main names are here, and the packages ``metrics``, ``thresholds``, ``training``, ``plots``, ``report`` and ``paper``
have the rest. Everything is imported when it is first used, so that what needs no torch starts at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from rarenode.version import __version__

if TYPE_CHECKING:
    from rarenode import metrics, paper, plots, report, thresholds, training
    from rarenode.config import Settings
    from rarenode.data.catalogue import catalogue
    from rarenode.data.dataset import Dataset, DatasetSplits
    from rarenode.data.fetch import fetch_dataset
    from rarenode.data.images import Images
    from rarenode.data.preparation import Preparation
    from rarenode.data.readers.arff import read_arff
    from rarenode.data.reef import make_reef
    from rarenode.data.sources import load_dataset
    from rarenode.data.split import HierarchicalSplit
    from rarenode.data.synthetic import make_hierarchical
    from rarenode.data.table_options import TableOptions
    from rarenode.diagnosis import NodeDiagnosis, diagnose
    from rarenode.diagnosis.data_checks import examine
    from rarenode.errors import RarenodeError
    from rarenode.estimator import RareNodeClassifier
    from rarenode.hierarchy import Hierarchy, read_hierarchy, write_hierarchy
    from rarenode.metrics import NodeScores, Summary, node_scores
    from rarenode.models.encoder import Encoder
    from rarenode.models.pretrained import load_encoder
    from rarenode.objective import NodeWeights, RareNodeLoss, WeightSchedule, constrain, node_weights, uncertainty
    from rarenode.resampling import HROSPD, LPROS
    from rarenode.run import Run
    from rarenode.training import Callback, TrainedModel

_HOME = {
    "Callback": "training",
    "Dataset": "data.dataset",
    "DatasetSplits": "data.dataset",
    "Encoder": "models.encoder",
    "HROSPD": "resampling",
    "HierarchicalSplit": "data.split",
    "Hierarchy": "hierarchy",
    "Images": "data.images",
    "LPROS": "resampling",
    "NodeDiagnosis": "diagnosis",
    "NodeScores": "metrics",
    "NodeWeights": "objective",
    "Preparation": "data.preparation",
    "RareNodeClassifier": "estimator",
    "RareNodeLoss": "objective",
    "RarenodeError": "errors",
    "Run": "run",
    "Settings": "config",
    "Summary": "metrics",
    "TableOptions": "data.table_options",
    "TrainedModel": "training",
    "WeightSchedule": "objective",
    "catalogue": "data.catalogue",
    "constrain": "objective",
    "diagnose": "diagnosis",
    "examine": "diagnosis.data_checks",
    "fetch_dataset": "data.fetch",
    "load_dataset": "data.sources",
    "load_encoder": "models.pretrained",
    "make_hierarchical": "data.synthetic",
    "make_reef": "data.reef",
    "node_scores": "metrics",
    "node_weights": "objective",
    "read_arff": "data.readers.arff",
    "read_hierarchy": "hierarchy",
    "uncertainty": "objective",
    "write_hierarchy": "hierarchy",
}
_PACKAGES = ("metrics", "paper", "plots", "report", "thresholds", "training")

__all__ = [
    "HROSPD",
    "LPROS",
    "Callback",
    "Dataset",
    "DatasetSplits",
    "Encoder",
    "HierarchicalSplit",
    "Hierarchy",
    "Images",
    "NodeDiagnosis",
    "NodeScores",
    "NodeWeights",
    "Preparation",
    "RareNodeClassifier",
    "RareNodeLoss",
    "RarenodeError",
    "Run",
    "Settings",
    "Summary",
    "TableOptions",
    "TrainedModel",
    "WeightSchedule",
    "__version__",
    "catalogue",
    "constrain",
    "diagnose",
    "examine",
    "fetch_dataset",
    "load_dataset",
    "load_encoder",
    "make_hierarchical",
    "make_reef",
    "metrics",
    "node_scores",
    "node_weights",
    "paper",
    "plots",
    "read_arff",
    "read_hierarchy",
    "report",
    "thresholds",
    "training",
    "uncertainty",
    "write_hierarchy",
]


if not TYPE_CHECKING:  # a type checker reads the imports above, and still reports names that are not there

    def __getattr__(name: str) -> object:
        if name in _PACKAGES:
            return import_module(f"rarenode.{name}")
        if name not in _HOME:
            raise AttributeError(f"module 'rarenode' has no attribute {name!r}")
        value = getattr(import_module(f"rarenode.{_HOME[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
