"""Decisions: from probabilities to nodes. Each strategy is fitted on rows that the model was not trained on."""

from rarenode.decision.by_name import make_strategy
from rarenode.decision.calibration import Calibration, Isotonic, Temperature, TemperatureByDepth
from rarenode.decision.calibration_error import Reliability, ece, ece_by_rarity, reliability
from rarenode.decision.coherence import Rule, make_coherent
from rarenode.decision.expected_f import ExpectedF
from rarenode.decision.fixed import Fixed
from rarenode.decision.global_threshold import GlobalThreshold, Metric
from rarenode.decision.precision_floor import PrecisionFloor
from rarenode.decision.prior_matched import PriorMatched
from rarenode.decision.strategy import Strategy
from rarenode.decision.thresholds import Thresholds
from rarenode.decision.tuned_per_node import TunedPerNode

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
