"""What a training leaves on record after each epoch."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from rarenode.metrics import Summary


class EpochRecord(BaseModel):
    """One epoch."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    epoch: int
    """Counted from 1."""
    loss: float
    """The mean of the losses of its batches, each from before its step."""
    seconds: float
    """Spent on its steps; validation and checkpoints are not in it."""
    steps_per_second: float
    valid: Summary | None = None
    """How well the validation rows are predicted, where there are any."""
