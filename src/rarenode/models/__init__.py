"""The kinds of model: an ensemble of perceptrons, a forest, nearest neighbours, and blends of them."""

from rarenode.models.blend import MODELS as PARTS
from rarenode.models.blend import Blend, pool
from rarenode.models.blend_fitting import BlendWeights, learn_weights
from rarenode.models.ensemble import MlpEnsemble, initial_parameters
from rarenode.models.forest import Forest
from rarenode.models.forest_growth import grow_forest
from rarenode.models.mlp import Mlp
from rarenode.models.model import Model, Output
from rarenode.models.neighbour_fitting import fit_neighbours
from rarenode.models.neighbours import Neighbours

MODELS: dict[str, type[Model]] = {**PARTS, Blend.kind: Blend}
"""Kind -> model, as model files name them."""

__all__ = [
    "MODELS",
    "Blend",
    "BlendWeights",
    "Forest",
    "Mlp",
    "MlpEnsemble",
    "Model",
    "Neighbours",
    "Output",
    "fit_neighbours",
    "grow_forest",
    "initial_parameters",
    "learn_weights",
    "pool",
]
