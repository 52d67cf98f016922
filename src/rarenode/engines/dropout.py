"""Dropout masks from a counter, so that both engines draw the same ones and no thread depends on another.

A hidden unit is kept if a hash of (seed, step, layer, member, row of the batch, unit) falls below the share to keep.
The hash is splitmix64's mixing function, applied to a key of the first four and then to the place within the layer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rarenode._io.compiled import compiled

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_HALF = np.uint64(32)


@compiled(inline="always")
def mix(value: np.uint64) -> np.uint64:
    """Scatter the bits of a 64-bit number."""
    value = (value ^ (value >> np.uint64(30))) * _MIX1
    value = (value ^ (value >> np.uint64(27))) * _MIX2
    return value ^ (value >> np.uint64(31))


@compiled(inline="always")
def mask_key(seed: np.uint64, step: np.uint64, layer: np.uint64, member: np.uint64) -> np.uint64:
    """One number for the mask of a member's layer at a step."""
    key = mix(seed + _GOLDEN)
    key = mix(key + step * _GOLDEN + np.uint64(1))
    return mix(key + layer * _MIX1 + member * _MIX2)


@compiled(inline="always")
def is_kept(key: np.uint64, place: np.uint64, threshold: np.uint64) -> np.bool_:
    """Whether the unit at a place (row x width + unit) is kept; the threshold is the share to keep, times 2^32."""
    return (mix(key + place * _GOLDEN) >> _HALF) < threshold


@compiled()
def _fill(masks: NDArray[np.bool_], seed: np.uint64, step: np.uint64, layer: np.uint64, threshold: np.uint64) -> None:
    members, rows, width = masks.shape
    for member in range(members):
        key = mask_key(seed, step, layer, np.uint64(member))
        for row in range(rows):
            for unit in range(width):
                masks[member, row, unit] = is_kept(key, np.uint64(row * width + unit), threshold)


def keep_threshold(dropout: float) -> np.uint64:
    """The share of units to keep, times 2^32."""
    return np.uint64(round((1 - dropout) * 2**32))


def dropout_masks(
    seed: int, step: int, layer: int, members: int, rows: int, width: int, dropout: float
) -> NDArray[np.bool_]:
    """Which units are kept, (members, rows, width)."""
    masks = np.empty((members, rows, width), dtype=np.bool_)
    _fill(masks, np.uint64(seed), np.uint64(step), np.uint64(layer), keep_threshold(dropout))
    return masks
