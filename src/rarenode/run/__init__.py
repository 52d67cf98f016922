"""The run folder as a Python object: fit, resume, evaluate, predict, report. The command line only calls it."""

from rarenode.run.evaluation import Evaluation
from rarenode.run.predictions import Predictions
from rarenode.run.run import Run

__all__ = ["Evaluation", "Predictions", "Run"]
