"""Dropout masks from a counter, so that both engines draw the same ones and no thread depends on another.

A hidden unit is kept if a hash of (seed, step, layer, member, row of the batch, unit) falls below the share to keep.
The hash is splitmix64's mixing function, applied to a key of the first four and then to the place within the layer.

It is written twice: compiled, for the CPU, and in whole-tensor operations, for devices to which masks would otherwise
have to be copied. torch cannot multiply unsigned numbers of 64 bits, but the product of signed ones has the same bits.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

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
def _fill(
    masks: NDArray[np.bool_],
    seed: np.uint64,
    step: np.uint64,
    layer: np.uint64,
    threshold: np.uint64,
    first_member: int,
    first_row: int,
) -> None:
    members, rows, width = masks.shape
    for member in range(members):
        key = mask_key(seed, step, layer, np.uint64(first_member + member))
        for row in range(rows):
            for unit in range(width):
                masks[member, row, unit] = is_kept(key, np.uint64((first_row + row) * width + unit), threshold)


def keep_threshold(dropout: float) -> np.uint64:
    """The share of units to keep, times 2^32."""
    return np.uint64(round((1 - dropout) * 2**32))


def dropout_masks(
    seed: int,
    step: int,
    layer: int,
    members: int,
    rows: int,
    width: int,
    dropout: float,
    first_member: int = 0,
    first_row: int = 0,
) -> NDArray[np.bool_]:
    """Which units are kept, (members, rows, width), of these members of an ensemble and these rows of a batch."""
    masks = np.empty((members, rows, width), dtype=np.bool_)
    _fill(masks, np.uint64(seed), np.uint64(step), np.uint64(layer), keep_threshold(dropout), first_member, first_row)
    return masks


def dropout_masks_on(
    device: torch.device,
    seed: int,
    step: int,
    layer: int,
    members: int,
    rows: int,
    width: int,
    dropout: float,
    first_member: int = 0,
    first_row: int = 0,
) -> Tensor:
    """The masks of `dropout_masks`, bit for bit, computed on a device."""
    # As in `mask_key`. What all members have in common are two numbers, which need no place on the device.
    golden, key = int(_GOLDEN), int(mix(np.uint64((seed + int(_GOLDEN)) % 2**64)))
    key = int(mix(np.uint64((key + step * golden + 1) % 2**64))) + layer * int(_MIX1)
    which = torch.arange(first_member, first_member + members, device=device)
    keys = _mixed(which * _signed(int(_MIX2)) + _signed(key))
    places = torch.arange(first_row * width, (first_row + rows) * width, device=device) * _signed(golden)
    hashed = _shifted(_mixed(keys[:, None] + places), int(_HALF))
    return (hashed < int(keep_threshold(dropout))).reshape(members, rows, width)


def _mixed(value: Tensor) -> Tensor:
    """`mix` of every number."""
    value = (value ^ _shifted(value, 30)) * _signed(int(_MIX1))
    value = (value ^ _shifted(value, 27)) * _signed(int(_MIX2))
    return value ^ _shifted(value, 31)


def _shifted(value: Tensor, bits: int) -> Tensor:
    """Shifted to the right as an unsigned number."""
    return (value >> bits) & (2 ** (64 - bits) - 1)


def _signed(value: int) -> int:
    """The signed number that has the lowest 64 bits of another one."""
    return (value + 2**63) % 2**64 - 2**63
