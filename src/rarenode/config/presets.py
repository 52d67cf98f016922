"""What each preset sets; everything else has its default."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "best": MappingProxyType({}),
        "paper": MappingProxyType(
            {
                "thresholds": "fixed",
                "cv": None,
                "model": "mlp",
                "blend": "geometric",
                "output_bias": "random",
                "weighting": "as_published",
                "patience": None,
                "batch_size": 4,
                "learning_rate": 1e-4,
            }
        ),
    }
)
