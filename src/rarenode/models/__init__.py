"""What is trained: ensembles of perceptrons, as shapes and as plain arrays of parameters, and forests."""

from rarenode.models.forest import Forest
from rarenode.models.forest_growth import grow_forest
from rarenode.models.mlp import MlpEnsemble, initial_parameters

__all__ = ["Forest", "MlpEnsemble", "grow_forest", "initial_parameters"]
