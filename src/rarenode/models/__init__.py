"""What is trained: ensembles of perceptrons, as shapes and as plain arrays of parameters."""

from rarenode.models.mlp import MlpEnsemble, initial_parameters

__all__ = ["MlpEnsemble", "initial_parameters"]
