"""The loss of the fused engine and its gradient, one row of one member at a time.

The mathematics is that of `RareNodeLoss`; the constraint is its compiled loop over edges. Only the uncertainty of an
ensemble needs all members at once, so it is computed before, for some nodes of a row at a time.
"""

from __future__ import annotations

from types import MappingProxyType

import numba
import numpy as np
from numpy.typing import NDArray

from rarenode.engines.fused_layers import FAST
from rarenode.engines.fused_math import exp_of_negative, log1p_of_share, sigmoid
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
FOCAL, BBMA, GMU, KL, PREDICTIVE, ALEATORIC = 1, 2, 3, 4, 6, 7

_EPSILON = np.float64(np.finfo(np.float32).eps)
_LOG2 = np.float64(np.log(2))


@numba.njit(error_model="numpy", cache=True, nogil=True)
def _entropy(p: float) -> float:
    """Binary entropy in bits."""
    if p <= 0 or p >= 1:
        return 0.0
    return -(p * np.log(p) + (1 - p) * np.log(1 - p)) / _LOG2


@numba.njit(error_model="numpy", cache=True, nogil=True)
def _uncertainty(probs: NDArray[np.float64], kind: int) -> float:
    """The other kinds, for one node; see `rarenode.objective.uncertainties`. ``probs`` (members,) is scratch."""
    members = probs.shape[0]
    if kind == PREDICTIVE:
        return _entropy(probs.mean())
    total = 0.0
    if kind == ALEATORIC:
        for p in probs:
            total += _entropy(p)
        return total / members
    if members == 1:
        return 0.0
    if kind == KL:
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


@numba.njit(fastmath=FAST, error_model="numpy", cache=True, nogil=True)
def _margins(probs: Floats, gated: bool, focus: Floats) -> None:
    """bBMA, or gated GMU, of all nodes of ``probs`` (members, nodes): the two that training uses most, in vectors."""
    members, nodes = probs.shape
    one, two, zero = np.float32(1), np.float32(2), np.float32(0)
    mean = np.zeros(nodes, dtype=np.float32)
    variance = np.zeros(nodes, dtype=np.float32)
    for member in range(members):
        for node in range(nodes):
            mean[node] += probs[member, node]
    for node in range(nodes):
        mean[node] /= np.float32(members)
    for member in range(members):
        for node in range(nodes):
            apart = probs[member, node] - mean[node]
            variance[node] += apart * apart
    divisor = np.float32(max(1, members - 1))
    for node in range(nodes):
        margin = abs(two * mean[node] - one)
        if gated:
            sigma = np.sqrt(variance[node] / divisor)
            focus[node] = one - margin * (one - exp_of_negative(-margin / (two * sigma + np.float32(1e-10))))
        else:
            focus[node] = one - margin
        focus[node] = focus[node] if focus[node] > zero else zero


@numba.njit(fastmath=FAST, error_model="numpy", cache=True, nogil=True)
def focus_nodes(logits: Floats, row: int, start: int, stop: int, kind: int, u0: float, k: float, focus: Floats) -> None:
    """Write U0 + U^k for nodes ``start`` to ``stop`` of a row into ``focus`` (rows, nodes).

    ``logits`` are (members, rows, nodes).
    """
    members = logits.shape[0]
    probs = np.empty((members, stop - start), dtype=np.float32)
    for member in range(members):
        for node in range(stop - start):
            probs[member, node] = sigmoid(logits[member, row, start + node])
    here = focus[row, start:stop]
    if kind in (BBMA, GMU):
        _margins(probs, kind == GMU, here)
    else:
        column = np.empty(members, dtype=np.float64)
        for node in range(stop - start):
            for member in range(members):
                column[member] = probs[member, node]
            here[node] = _uncertainty(column, kind)
    if k == 1:
        for node in range(stop - start):
            here[node] += np.float32(u0)
    else:
        for node in range(stop - start):
            here[node] = np.float32(u0 + here[node] ** k)


@numba.njit(fastmath=FAST, error_model="numpy", cache=True, nogil=True)
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

    ``focus`` (nodes,) is the ensemble's focal weight; the classic focal term is computed here. NaN if labels are
    not closed or a logit is not finite.
    """
    nodes = logits.shape[0]
    zero, one = np.float32(0), np.float32(1)
    one_row = (1, nodes)
    if not find_maximisers(
        logits.reshape(one_row), label.reshape(one_row), parents, starts, children, best.reshape(one_row)
    ):
        return np.nan
    for node in range(nodes):
        if not np.isfinite(logits[node]):  # the selections below would hide it
            return np.nan
    weight = np.empty(nodes, dtype=np.float32)
    for node in range(nodes):
        weight[node] = positive[node] if label[node] else negative[node]
    if kind == FOCAL:
        for node in range(nodes):
            weight[node] *= np.float32(u0 + sigmoid(-logits[node] if label[node] else logits[node]) ** k)
    elif kind:
        for node in range(nodes):
            weight[node] *= focus[node]

    against = np.empty(nodes, dtype=np.float32)  # how far the score speaks against the label
    for node in range(nodes):
        score = logits[best[node]]
        against[node] = -score if label[node] else score
    total = 0.0
    share = one / np.float32(divisor)
    for node in range(nodes):
        a = against[node]
        small = exp_of_negative(-abs(a))
        total += weight[node] * ((a if a > zero else zero) + log1p_of_share(small))
        wrong = (one if a >= zero else small) / (one + small)
        against[node] = share * weight[node] * (-wrong if label[node] else wrong)
    for node in range(nodes):
        slope[node] = zero
    for node in range(nodes):
        slope[best[node]] += against[node]
    return total / divisor
