"""Diagnosis: which nodes are found, and why the others are missed."""

from rarenode.diagnosis.diagnosing import diagnose, diagnose_counts
from rarenode.diagnosis.node_diagnosis import NodeDiagnosis
from rarenode.diagnosis.reasons import NAMES, REASONS, STATES, Reason, State

__all__ = ["NAMES", "REASONS", "STATES", "NodeDiagnosis", "Reason", "State", "diagnose", "diagnose_counts"]
