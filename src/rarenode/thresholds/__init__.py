"""Decisions: from probabilities to nodes. Each strategy is fitted on rows that the model was not trained on."""

from rarenode.thresholds.by_name import make_strategy
from rarenode.thresholds.calibration import Calibration, Isotonic, Temperature, TemperatureByDepth
from rarenode.thresholds.calibration_error import Reliability, ece, ece_by_rarity, reliability
from rarenode.thresholds.coherence import Rule, make_coherent
from rarenode.thresholds.expected_f import ExpectedF
from rarenode.thresholds.fixed import Fixed
from rarenode.thresholds.global_threshold import GlobalThreshold, Metric
from rarenode.thresholds.precision_floor import PrecisionFloor
from rarenode.thresholds.prior_matched import PriorMatched
from rarenode.thresholds.strategy import Strategy
from rarenode.thresholds.thresholds import Thresholds
from rarenode.thresholds.tuned_per_node import TunedPerNode

__all__ = [
    "Calibration",
    "ExpectedF",
    "Fixed",
    "GlobalThreshold",
    "Isotonic",
    "Metric",
    "PrecisionFloor",
    "PriorMatched",
    "Reliability",
    "Rule",
    "Strategy",
    "Temperature",
    "TemperatureByDepth",
    "Thresholds",
    "TunedPerNode",
    "ece",
    "ece_by_rarity",
    "make_coherent",
    "make_strategy",
    "reliability",
]
