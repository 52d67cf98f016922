"""Decisions: from probabilities to nodes. Each strategy is fitted on rows that the model was not trained on."""

from rarenode.decision.by_name import by_name
from rarenode.decision.calibration import Isotonic, Temperature, TemperatureByDepth, ece, ece_by_rarity, reliability
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
    "ExpectedF",
    "Fixed",
    "GlobalThreshold",
    "Isotonic",
    "Metric",
    "PrecisionFloor",
    "PriorMatched",
    "Rule",
    "Strategy",
    "Temperature",
    "TemperatureByDepth",
    "Thresholds",
    "TunedPerNode",
    "by_name",
    "ece",
    "ece_by_rarity",
    "make_coherent",
    "reliability",
]
