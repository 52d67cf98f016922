"""Thresholds: from probabilities to predictions. Strategies choose the thresholds on held-out rows."""

from rarenode.config.choices import Rule
from rarenode.thresholds.calibration import Calibration, Isotonic, Temperature, TemperatureByDepth
from rarenode.thresholds.calibration_error import Reliability, ece, ece_by_rarity, reliability
from rarenode.thresholds.coherence import make_coherent
from rarenode.thresholds.guarantees import GUARANTEED, GuaranteedRecall, PrecisionGuarantee, RecallGuarantee
from rarenode.thresholds.strategies import (
    ExpectedF,
    Fixed,
    GlobalThreshold,
    Midpoint,
    PriorMatched,
    TunedPerNode,
    depends_on_rows,
    make_strategy,
)
from rarenode.thresholds.strategy import HeldOut, Strategy
from rarenode.thresholds.thresholds import Thresholds

__all__ = [
    "GUARANTEED",
    "Calibration",
    "ExpectedF",
    "Fixed",
    "GlobalThreshold",
    "GuaranteedRecall",
    "HeldOut",
    "Isotonic",
    "Midpoint",
    "PrecisionGuarantee",
    "PriorMatched",
    "RecallGuarantee",
    "Reliability",
    "Rule",
    "Strategy",
    "Temperature",
    "TemperatureByDepth",
    "Thresholds",
    "TunedPerNode",
    "depends_on_rows",
    "ece",
    "ece_by_rarity",
    "make_coherent",
    "make_strategy",
    "reliability",
]
