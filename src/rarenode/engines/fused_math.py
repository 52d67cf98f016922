"""Exponential and logarithm in float32 that a compiler can turn into vector instructions.

The C library's functions are called one number at a time, and at four thousand nodes a row they would cost as much as a
layer. Both are good to about 1e-7 on the ranges that the loss needs, which is float32's own precision.
"""

from __future__ import annotations

import math

import numba
import numpy as np

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


@numba.njit(inline="always", error_model="numpy")
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


@numba.njit(inline="always", error_model="numpy")
def log1p_of_share(x: np.float32) -> np.float32:
    """log(1 + x) for 0 <= x <= 1: twice the artanh of x / (2 + x), which is at most 1/3, by its series."""
    t = x / (x + _ONE + _ONE)
    q = t * t
    return t * (((((((_L15 * q + _L13) * q + _L11) * q + _L9) * q + _L7) * q + _L5) * q + _L3) * q + _L1)


@numba.njit(inline="always", error_model="numpy")
def sigmoid(z: np.float32) -> np.float32:
    """1 / (1 + exp(-z))."""
    e = exp_of_negative(-abs(z))
    return (_ONE if z >= np.float32(0) else e) / (_ONE + e)
