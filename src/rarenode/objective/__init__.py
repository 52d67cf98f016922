"""What training minimises: constraint, node weights, uncertainty focus, schedules, and the loss that multiplies
them."""

from rarenode.objective.constraint import constrain
from rarenode.objective.given_loss import GivenLoss, LossFunction, MakeLoss
from rarenode.objective.loss import RareNodeLoss
from rarenode.objective.schedule import WeightSchedule
from rarenode.objective.uncertainties import uncertainty
from rarenode.objective.weights import NodeWeights, node_weights

__all__ = [
    "GivenLoss",
    "LossFunction",
    "MakeLoss",
    "NodeWeights",
    "RareNodeLoss",
    "WeightSchedule",
    "constrain",
    "node_weights",
    "uncertainty",
]
