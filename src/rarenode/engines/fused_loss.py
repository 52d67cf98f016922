"""The loss of the fused engine and its gradient, one (member, row) at a time: constraint, weights, focus and cross-entropy.

The mathematics is that of `RareNodeLoss`; the constraint is its compiled loop over edges. Only the uncertainty of an ensemble
needs all members at once, so it is computed before, for some nodes of a row at a time.
"""

from __future__ import annotations

from types import MappingProxyType

import numba
import numpy as np
from numpy.typing import NDArray

from rarenode.objective.kernels import find_maximisers

Floats = NDArray[np.float32]

FOCUS_CODES = MappingProxyType(
    {
        None: 0,
        "focal": 1,
        "bbma": 2,
        "gmu": 3,
        "epistemic_kl": 4,
        "epistemic_js": 5,
        "predictive": 6,
        "aleatoric": 7,
    }
)
FOCAL = 1

_EPSILON = np.float64(np.finfo(np.float32).eps)
_LOG2 = np.float64(np.log(2))


@numba.njit(cache=True, nogil=True)
def _sigmoid(z: float) -> float:
    e = np.exp(-abs(z))
    return 1 / (1 + e) if z >= 0 else e / (1 + e)


@numba.njit(cache=True, nogil=True)
def _entropy(p: float) -> float:
    """Binary entropy in bits."""
    if p <= 0 or p >= 1:
        return 0.0
    return -(p * np.log(p) + (1 - p) * np.log(1 - p)) / _LOG2


@numba.njit(cache=True, nogil=True)
def _uncertainty(probs: NDArray[np.float64], kind: int) -> float:
    """See `rarenode.objective.uncertainties`; ``probs`` are the members' probabilities of one node."""
    members = probs.shape[0]
    mu = probs.mean()
    margin = abs(2 * mu - 1)
    if kind == 2:
        return 1 - margin
    if kind == 6:
        return _entropy(mu)
    if kind == 7:
        total = 0.0
        for p in probs:
            total += _entropy(p)
        return total / members
    if members == 1:
        return 1 - margin if kind == 3 else 0.0
    if kind == 3:
        total = 0.0
        for p in probs:
            total += (p - mu) ** 2
        sigma = np.sqrt(total / (members - 1))
        return 1 + margin * np.expm1(-margin / (2 * sigma + 1e-10))
    total = 0.0
    if kind == 4:
        for i in range(members):
            probs[i] = min(max(probs[i], _EPSILON), 1 - _EPSILON)
        mu = probs.mean()
        for p in probs:  # the covariance of p and logit(p): centring one of the two is enough
            total += (p - mu) * np.log(p / (1 - p))
        return max(total, 0.0) / ((members - 1) * _LOG2)
    for i in range(members):
        for j in range(i):
            divergence = _entropy((probs[i] + probs[j]) / 2) - (_entropy(probs[i]) + _entropy(probs[j])) / 2
            total += 2 * max(divergence, 0.0)
    return total / (members * (members - 1))


@numba.njit(cache=True, nogil=True)
def focus_nodes(logits: Floats, row: int, start: int, stop: int, kind: int, u0: float, k: float, focus: Floats) -> None:
    """Write U0 + U^k for nodes ``start`` to ``stop`` of a row into ``focus`` (rows, nodes); logits (members, rows, nodes)."""
    probs = np.empty(logits.shape[0], dtype=np.float64)
    for node in range(start, stop):
        for member in range(logits.shape[0]):
            probs[member] = _sigmoid(float(logits[member, row, node]))
        focus[row, node] = u0 + max(_uncertainty(probs, kind), 0.0) ** k


@numba.njit(cache=True, nogil=True)
def loss_row(
    logits: Floats,
    label: NDArray[np.bool_],
    positive: Floats,
    negative: Floats,
    focus: Floats,
    kind: int,
    u0: float,
    k: float,
    divisor: float,
    parents: NDArray[np.int64],
    starts: NDArray[np.int64],
    children: NDArray[np.int64],
    best: NDArray[np.int64],
    slope: Floats,
) -> float:
    """The loss of one member's row; its gradient goes into ``slope`` (nodes,), at the maximisers.

    ``focus`` (nodes,) is the ensemble's focal weight; the classic focal term is computed here. Labels must be closed.
    """
    nodes = logits.shape[0]
    find_maximisers(logits.reshape(1, nodes), label.reshape(1, nodes), parents, starts, children, best.reshape(1, nodes))
    for node in range(nodes):
        slope[node] = np.float32(0)
    total = 0.0
    for node in range(nodes):
        weight = float(positive[node] if label[node] else negative[node])
        if weight == 0:
            continue
        sign = -1.0 if label[node] else 1.0
        if kind == FOCAL:
            weight *= u0 + _sigmoid(sign * float(logits[node])) ** k
        elif kind:
            weight *= focus[node]
        against = sign * float(logits[best[node]])
        small = np.exp(-abs(against))
        total += weight * (max(against, 0.0) + np.log1p(small))
        share = 1 / (1 + small) if against >= 0 else small / (1 + small)
        slope[best[node]] += np.float32(sign * weight * share / divisor)
    return total / divisor
