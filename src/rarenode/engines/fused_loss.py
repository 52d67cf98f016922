"""The loss of the fused engine and its gradient, one row of one member at a time.

The mathematics is that of `RareNodeLoss`; the constraint is its compiled loop over edges. Only the uncertainty of an
ensemble needs all members at once, so it is computed before, for some nodes of a row at a time.
"""

from __future__ import annotations

import math
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from rarenode._io.compiled import compiled
from rarenode.engines.fused_layers import FAST
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

# --- exponential and logarithm -------------------------------------------------------------------------------------
# In float32, as the compiler can turn into vector instructions. The C library's functions take one number at a time,
# and at four thousand nodes a row would cost as much as a layer. Both are accurate to about 1e-7 on the ranges that the
# loss needs, which is the precision of float32.

_LOG2_E = np.float32(1 / math.log(2))
_LN2_HIGH = np.float32(355 / 512)  # ln 2 in two parts; the first has few bits, so that its multiples are exact
_LN2_LOW = np.float32(math.log(2) - 355 / 512)
_LEAST = np.float32(-87)  # exp of less is below float32's normal numbers
_TAYLOR = tuple(np.float32(1 / math.factorial(n)) for n in range(8))
_T2, _T3, _T4, _T5, _T6, _T7 = _TAYLOR[2:]
_ONE = np.float32(1)
_HALF = np.float32(0.5)
_BIAS = np.int32(127)
_MANTISSA_BITS = np.int32(23)


@compiled(inline="always", error_model="numpy")
def exp_of_negative(x: np.float32) -> np.float32:
    """exp(x) for x <= 0; at least exp(-87). x = n ln 2 + r with |r| <= ln 2 / 2, and exp(r) by its Taylor series."""
    x = x if x > _LEAST else _LEAST
    n = np.floor(x * _LOG2_E + _HALF)
    r = x - n * _LN2_HIGH - n * _LN2_LOW
    series = ((((((_T7 * r + _T6) * r + _T5) * r + _T4) * r + _T3) * r + _T2) * r + _ONE) * r + _ONE
    two_to_the_n = np.int32((np.int32(n) + _BIAS) << _MANTISSA_BITS).view(np.float32)
    return series * two_to_the_n


_ODD = tuple(np.float32(2 / n) for n in range(1, 16, 2))
_L1, _L3, _L5, _L7, _L9, _L11, _L13, _L15 = _ODD


@compiled(inline="always", error_model="numpy")
def log1p_of_share(x: np.float32) -> np.float32:
    """log(1 + x) for 0 <= x <= 1: twice the artanh of x / (2 + x), which is at most 1/3, by its series."""
    t = x / (x + _ONE + _ONE)
    q = t * t
    return t * (((((((_L15 * q + _L13) * q + _L11) * q + _L9) * q + _L7) * q + _L5) * q + _L3) * q + _L1)


@compiled(inline="always", error_model="numpy")
def sigmoid(z: np.float32) -> np.float32:
    """1 / (1 + exp(-z))."""
    e = exp_of_negative(-abs(z))
    return (_ONE if z >= np.float32(0) else e) / (_ONE + e)


# --- uncertainty ---------------------------------------------------------------------------------------------------

_EPSILON = np.float64(np.finfo(np.float32).eps)
_LOG2 = np.float64(np.log(2))


@compiled(error_model="numpy")
def _entropy(p: float) -> float:
    """Binary entropy in bits."""
    if p <= 0 or p >= 1:
        return 0.0
    return -(p * np.log(p) + (1 - p) * np.log(1 - p)) / _LOG2


@compiled(error_model="numpy")
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


@compiled(fastmath=FAST, error_model="numpy")
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


@compiled(fastmath=FAST, error_model="numpy")
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


# --- loss ----------------------------------------------------------------------------------------------------------


@compiled(fastmath=FAST, error_model="numpy")
def loss_row(
    logits: Floats,
    label: NDArray[np.bool_],
    known: NDArray[np.bool_],
    positive: Floats,
    negative: Floats,
    focus: Floats,
    kind: int,
    u0: float,
    k: float,
    row_weight: np.float32,
    divisor: float,
    parents: NDArray[np.int64],
    starts: NDArray[np.int64],
    children: NDArray[np.int64],
    best: NDArray[np.int64],
    slope: Floats,
) -> float:
    """The loss of one member's row; its gradient goes into ``slope`` (nodes,), at the maximisers.

    ``known`` is (nodes,), or empty where all labels are. ``focus`` (nodes,) is the ensemble's focal weight; the classic
    focal term is computed here. ``row_weight`` multiplies loss and gradient. NaN if labels are not closed or a logit is
    not finite.
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
    for node in range(known.shape[0]):
        if not known[node]:
            weight[node] = zero
    if kind == FOCAL:
        for node in range(nodes):
            weight[node] *= np.float32(u0 + sigmoid(-logits[node] if label[node] else logits[node]) ** k)
    elif kind:
        for node in range(nodes):
            weight[node] *= focus[node]

    against = np.empty(nodes, dtype=np.float32)  # the score with the sign that disagrees with the label
    for node in range(nodes):
        score = logits[best[node]]
        against[node] = -score if label[node] else score
    total = 0.0
    share = row_weight / np.float32(divisor)
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
    return float(row_weight) * total / divisor
