"""The run folder as a Python object: fit, resume, evaluate, predict, report. The command line only calls it."""

from rarenode.run.predictions import Predictions
from rarenode.run.run import Evaluation, Run

__all__ = ["Evaluation", "Predictions", "Run"]
