"""From rows and settings to a model: the loop, checkpoints and resuming, and the folder that a model is saved in."""

from rarenode.training.checkpoint import remove_checkpoint
from rarenode.training.fit import fit, fit_and_ask
from rarenode.training.history import EpochRecord
from rarenode.training.loop import train
from rarenode.training.progress import Outlook, PlainProgress, RichProgress, Silent, Watch, choose_progress
from rarenode.training.rows import TrainingRows
from rarenode.training.settings import Settings
from rarenode.training.trained import TrainedModel

__all__ = [
    "EpochRecord",
    "Outlook",
    "PlainProgress",
    "RichProgress",
    "Settings",
    "Silent",
    "TrainedModel",
    "TrainingRows",
    "Watch",
    "choose_progress",
    "fit",
    "fit_and_ask",
    "remove_checkpoint",
    "train",
]
