"""From rows and settings to a model: the loop, out-of-fold fitting, checkpoints and resuming, the model folder."""

from rarenode.engines import several_processes
from rarenode.training.callbacks import Callback, EpochRecord, Plan, ShowProgress
from rarenode.training.fit import Fitted, fit_model
from rarenode.training.model import TrainedModel
from rarenode.training.out_of_fold import OutOfFold
from rarenode.training.train import train_model

__all__ = [
    "Callback",
    "EpochRecord",
    "Fitted",
    "OutOfFold",
    "Plan",
    "ShowProgress",
    "TrainedModel",
    "fit_model",
    "several_processes",
    "train_model",
]
