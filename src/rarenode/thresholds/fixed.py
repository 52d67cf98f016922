"""`Fixed`: one threshold, chosen beforehand. At 0.5 this is what the paper does, and what hides its rare nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rarenode.thresholds.strategy import HeldOut, Strategy, check_number, with_number


@dataclass(frozen=True)
class Fixed(Strategy):
    """The same threshold for every node, whatever the rows."""

    threshold: float = 0.5

    def __post_init__(self) -> None:
        check_number(self.threshold, "threshold", most=1.0, open_below=False)

    @property
    def name(self) -> str:
        """``fixed``, or ``fixed:0.3``."""
        return "fixed" if self.threshold == 0.5 else with_number("fixed:", self.threshold)

    def choose(self, rows: HeldOut) -> NDArray[np.float64]:
        """The threshold, for each node."""
        return np.full(rows.nodes, float(self.threshold))
