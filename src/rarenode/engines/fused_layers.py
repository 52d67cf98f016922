"""The layers of the fused engine: forward, backward and Adam over each row of weights once.

At a batch of a few rows a step is limited by memory. The gradient of a weight matrix has the rank of the batch, so it
is never stored: for one row of weights at a time the gradient is formed, the gradient of the layer's input is
accumulated from the old weights, and Adam updates the row; up to four rows of the batch in a single loop. Each
parameter is read in the forward pass, and read and written with its two moments in the backward pass: 28 bytes a step,
and no more.

Every function here works on some rows of one model, so that threads can share models or rows. What a row computes
does not depend on which thread does it. The input's gradient is summed within a fixed number of chunks of rows, and
the chunks in their order, so the number of threads changes no bit.

Arrays here are those of one model and one layer: weights (out, in), activations and their gradients (rows, width),
where rows are the batch, once for each Monte-Carlo pass. Activations are stored after dropout.

Rows of weights and activations are `padded` with zeros, which stay zeros, and begin where lines of the cache begin: a
vector that crosses two lines is loaded twice, and what is left of a row after its last whole vector costs nearly as
much as all the rest. Widths are therefore passed apart from arrays.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarenode._io.compiled import compiled
from rarenode.engines.dropout import is_kept

CHUNKS = 8
"""Parts of a layer's rows whose contributions to the input's gradient are summed separately."""

LINE = 16
"""Numbers in a line of the cache, or in the longest vector."""

FEW = 4
"""Rows that have a faster way."""

# Sums may be reordered, which lets the compiler use vectors; NaN and infinity must stay what they are.
FAST = {"reassoc", "contract", "nsz"}

Floats = NDArray[np.float32]
Adam = tuple[np.float32, np.float32, np.float32, np.float32, np.float32, np.float32]
"""What `adam_constants` returns."""


@compiled(inline="always")
def padded(width: int) -> int:
    """The length of a row of that width."""
    return (width + LINE - 1) // LINE * LINE


def aligned_zeros(shape: tuple[int, ...]) -> Floats:
    """Zeros that begin where a line of the cache begins."""
    size = math.prod(shape)
    room = np.zeros(size + LINE, dtype=np.float32)
    first = -room.ctypes.data % (LINE * room.itemsize) // room.itemsize
    return room[first : first + size].reshape(shape)


@compiled(fastmath=FAST, error_model="numpy")
def _dot(a: Floats, b: Floats) -> np.float32:
    total = np.float32(0)
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@compiled(fastmath=FAST, error_model="numpy")
def _four_dots(w: Floats, rows: Floats, first: int) -> tuple[np.float32, np.float32, np.float32, np.float32]:
    """Products of one row of weights with four rows of inputs, so that the weights are loaded once."""
    a, b, c, d = rows[first], rows[first + 1], rows[first + 2], rows[first + 3]
    s0 = s1 = s2 = s3 = np.float32(0)
    for i in range(w.shape[0]):
        x = w[i]
        s0 += x * a[i]
        s1 += x * b[i]
        s2 += x * c[i]
        s3 += x * d[i]
    return s0, s1, s2, s3


@compiled(fastmath=FAST, error_model="numpy")
def _sixteen_dots(weight: Floats, unit: int, rows: Floats, first: int, sums: Floats) -> None:
    """Products of four rows of weights with four rows of inputs, each of which is loaded once, into ``sums``."""
    p, q, r, s = weight[unit], weight[unit + 1], weight[unit + 2], weight[unit + 3]
    a, b, c, d = rows[first], rows[first + 1], rows[first + 2], rows[first + 3]
    pa = pb = pc = pd = qa = qb = qc = qd = ra = rb = rc = rd = sa = sb = sc = sd = np.float32(0)
    for i in range(p.shape[0]):
        pa, pb, pc, pd = pa + p[i] * a[i], pb + p[i] * b[i], pc + p[i] * c[i], pd + p[i] * d[i]
        qa, qb, qc, qd = qa + q[i] * a[i], qb + q[i] * b[i], qc + q[i] * c[i], qd + q[i] * d[i]
        ra, rb, rc, rd = ra + r[i] * a[i], rb + r[i] * b[i], rc + r[i] * c[i], rd + r[i] * d[i]
        sa, sb, sc, sd = sa + s[i] * a[i], sb + s[i] * b[i], sc + s[i] * c[i], sd + s[i] * d[i]
    sums[0, first], sums[0, first + 1], sums[0, first + 2], sums[0, first + 3] = pa, pb, pc, pd
    sums[1, first], sums[1, first + 1], sums[1, first + 2], sums[1, first + 3] = qa, qb, qc, qd
    sums[2, first], sums[2, first + 1], sums[2, first + 2], sums[2, first + 3] = ra, rb, rc, rd
    sums[3, first], sums[3, first + 1], sums[3, first + 2], sums[3, first + 3] = sa, sb, sc, sd


@compiled(fastmath=FAST, error_model="numpy")
def forward_rows(
    source: Floats,
    weight: Floats,
    bias: Floats,
    out: Floats,
    start: int,
    stop: int,
    hidden: bool,
    tanh: bool,
    batch: int,
    keys: NDArray[np.uint64],
    threshold: np.uint64,
    scale: np.float32,
) -> None:
    """Units ``start`` to ``stop`` of one layer of one model.

    ``source`` (rows, in) has fewer rows than ``out`` in the first layer, where all passes see the same batch.
    ``keys`` has a key for each pass; a hidden unit that is kept is multiplied by ``scale``.
    """
    width = weight.shape[0]
    rows = source.shape[0]
    copies = out.shape[0] // rows
    fours = rows // 4 * 4
    at_once = 4 if rows > FEW else 1  # few rows wait for memory, which is read faster from one place than from four
    sums = np.empty((4, rows), dtype=np.float32)
    for first in range(start, stop, at_once):
        units = min(at_once, stop - first)
        if units == 4:
            for row in range(0, fours, 4):
                _sixteen_dots(weight, first, source, row, sums)
        else:
            for i in range(units):
                for row in range(0, fours, 4):
                    a, b, c, d = _four_dots(weight[first + i], source, row)
                    sums[i, row], sums[i, row + 1], sums[i, row + 2], sums[i, row + 3] = a, b, c, d
        for i in range(units):
            for row in range(fours, rows):
                sums[i, row] = _dot(weight[first + i], source[row])
        for task in range(units * rows):
            unit, row = first + task // rows, task % rows
            value = sums[unit - first, row] + bias[unit]
            if not hidden:
                for copy in range(copies):
                    out[copy * rows + row, unit] = value
                continue
            if tanh:
                value = np.tanh(value)
            elif value < np.float32(0):  # compared this way round, NaN stays NaN
                value = np.float32(0)
            for copy in range(copies):
                place = copy * rows + row
                kept = is_kept(keys[place // batch], np.uint64((place % batch) * width + unit), threshold)
                out[place, unit] = value * scale if kept else np.float32(0)


@compiled(fastmath=FAST, error_model="numpy")
def _add_one(total: Floats, s: np.float32, a: Floats) -> None:
    for i in range(total.shape[0]):
        total[i] += s * a[i]


@compiled(fastmath=FAST, error_model="numpy")
def _add_four(
    total: Floats,
    s0: np.float32,
    a: Floats,
    s1: np.float32,
    b: Floats,
    s2: np.float32,
    c: Floats,
    s3: np.float32,
    d: Floats,
) -> None:
    """Add multiples of four rows to one, which is then loaded and stored once."""
    for i in range(total.shape[0]):
        total[i] += s0 * a[i] + s1 * b[i] + s2 * c[i] + s3 * d[i]


@compiled(inline="always")
def _adam_row(w: Floats, m: Floats, v: Floats, gradient: Floats, adam: Adam) -> None:
    decay, beta1, beta2, rate, correction, epsilon = adam
    one = np.float32(1)
    for i in range(w.shape[0]):
        g = gradient[i] + decay * w[i]
        first = beta1 * m[i] + (one - beta1) * g
        second = beta2 * v[i] + (one - beta2) * g * g
        m[i] = first
        v[i] = second
        w[i] -= rate * first / (np.sqrt(second) * correction + epsilon)


@compiled(fastmath=FAST, error_model="numpy")
def _add_to_input(into: Floats, weight: Floats, slope: Floats, start: int, stop: int) -> None:
    """What up to four units contribute to the gradient of the layer's input. Four at a time it is loaded once."""
    zero = np.float32(0)
    for row in range(slope.shape[0]):
        if stop - start < 4:
            for unit in range(start, stop):
                if slope[row, unit] != zero:
                    _add_one(into[row], slope[row, unit], weight[unit])
            continue
        s0, s1, s2, s3 = slope[row, start], slope[row, start + 1], slope[row, start + 2], slope[row, start + 3]
        if s0 != zero or s1 != zero or s2 != zero or s3 != zero:
            a, b, c, d = weight[start], weight[start + 1], weight[start + 2], weight[start + 3]
            _add_four(into[row], s0, a, s1, b, s2, c, s3, d)


@compiled(fastmath=FAST, error_model="numpy")
def _update_by_many(
    source: Floats,
    weight: Floats,
    weight_m: Floats,
    weight_v: Floats,
    slope: Floats,
    into: Floats,
    start: int,
    stop: int,
    first_layer: bool,
    adam: Adam,
) -> None:
    """The weights of units, by any number of rows."""
    rows, inputs, size, zero = slope.shape[0], weight.shape[1], source.shape[0], np.float32(0)
    active = np.empty(rows, dtype=np.int64)
    factor = np.empty(rows, dtype=np.float32)
    gradient = np.empty(inputs, dtype=np.float32)
    for unit in range(start, stop):
        if not first_layer and (unit - start) % 4 == 0:
            _add_to_input(into, weight, slope, unit, min(unit + 4, stop))
        for i in range(inputs):
            gradient[i] = zero
        count = 0
        for row in range(rows):  # many are 0: dropped, or not the maximiser of any node
            if slope[row, unit] != zero:
                active[count] = row % size
                factor[count] = slope[row, unit]
                count += 1
        at = 0
        while at + 4 <= count:
            a, b, c, d = source[active[at]], source[active[at + 1]], source[active[at + 2]], source[active[at + 3]]
            _add_four(gradient, factor[at], a, factor[at + 1], b, factor[at + 2], c, factor[at + 3], d)
            at += 4
        while at < count:
            _add_one(gradient, factor[at], source[active[at]])
            at += 1
        _adam_row(weight[unit], weight_m[unit], weight_v[unit], gradient, adam)


@compiled(fastmath=FAST, error_model="numpy")
def _update_by_few(
    source: Floats,
    weight: Floats,
    weight_m: Floats,
    weight_v: Floats,
    slope: Floats,
    into: Floats,
    start: int,
    stop: int,
    adam: Adam,
) -> None:
    """`_update_by_many` for up to `FEW` rows, in one pass over each row of weights. ``into`` must have so many rows.

    The rows are the same for all units, so that the compiler checks once that they do not overlap.
    """
    factors = np.zeros((FEW, stop - start), dtype=np.float32)
    factors[: slope.shape[0]] = slope[:, start:stop]
    last, size = slope.shape[0] - 1, source.shape[0]
    a, b, c, d = source[0], source[min(1, last) % size], source[min(2, last) % size], source[min(3, last) % size]
    into_a, into_b, into_c, into_d = into[0], into[1], into[2], into[3]
    decay, beta1, beta2, rate, correction, epsilon = adam
    one = np.float32(1)
    for unit in range(start, stop):
        w, m, v = weight[unit], weight_m[unit], weight_v[unit]
        s0, s1, s2, s3 = (
            factors[0, unit - start], factors[1, unit - start], factors[2, unit - start], factors[3, unit - start]
        )  # fmt: skip
        for i in range(w.shape[0]):
            before = w[i]
            into_a[i] += s0 * before
            into_b[i] += s1 * before
            into_c[i] += s2 * before
            into_d[i] += s3 * before
            g = s0 * a[i] + s1 * b[i] + s2 * c[i] + s3 * d[i] + decay * before
            first = beta1 * m[i] + (one - beta1) * g
            second = beta2 * v[i] + (one - beta2) * g * g
            m[i] = first
            v[i] = second
            w[i] = before - rate * first / (np.sqrt(second) * correction + epsilon)


@compiled(fastmath=FAST, error_model="numpy")
def backward_rows(
    source: Floats,
    weight: Floats,
    weight_m: Floats,
    weight_v: Floats,
    bias: Floats,
    bias_m: Floats,
    bias_v: Floats,
    slope: Floats,
    into: Floats,
    start: int,
    stop: int,
    first_layer: bool,
    adam: Floats,
) -> None:
    """Gradient and Adam for units ``start`` to ``stop`` of one layer of one model.

    ``slope`` (rows, out) is the gradient of the units before their activation. ``into`` receives what these units
    contribute to the gradient of the layer's input, from the weights before the update; it has at least `FEW` rows, and
    may be wider than the input. The first layer has no use for it, and leaves anything there.
    """
    rows = slope.shape[0]
    constants = adam[0], adam[1], adam[2], adam[3], adam[4], adam[5]
    for row in range(into.shape[0]):
        for i in range(weight.shape[1]):
            into[row, i] = np.float32(0)
    if rows <= FEW:
        _update_by_few(source, weight, weight_m, weight_v, slope, into, start, stop, constants)
    else:
        _update_by_many(source, weight, weight_m, weight_v, slope, into, start, stop, first_layer, constants)
    gradient = np.zeros(stop - start, dtype=np.float32)
    for row in range(rows):
        for unit in range(start, stop):
            gradient[unit - start] += slope[row, unit]
    _adam_row(bias[start:stop], bias_m[start:stop], bias_v[start:stop], gradient, constants)


@compiled(fastmath=FAST, error_model="numpy")
def through_activation(
    parts: Floats,
    activation: Floats,
    slope: Floats,
    start: int,
    stop: int,
    width: int,
    tanh: bool,
    batch: int,
    keys: NDArray[np.uint64],
    threshold: np.uint64,
    scale: np.float32,
) -> None:
    """The gradient of units ``start`` to ``stop`` of a hidden layer before their activation and dropout.

    ``parts`` (chunks, rows, width) are the contributions of the layer above.
    """
    for row in range(activation.shape[0]):
        for unit in range(start, stop):
            total = np.float32(0)
            for chunk in range(parts.shape[0]):
                total += parts[chunk, row, unit]
            h = activation[row, unit]
            if tanh:
                kept = is_kept(keys[row // batch], np.uint64((row % batch) * width + unit), threshold)
                a = h / scale
                slope[row, unit] = total * scale * (np.float32(1) - a * a) if kept else np.float32(0)
            else:
                slope[row, unit] = total * scale if h > np.float32(0) else np.float32(0)


def adam_constants(
    learning_rate: float, weight_decay: float, beta1: float, beta2: float, epsilon: float, step: int
) -> NDArray[Any]:
    """What `backward_rows` needs at a step, counted from 1."""
    rate = learning_rate / (1 - beta1**step)
    correction = 1 / np.sqrt(1 - beta2**step)
    return np.array([weight_decay, beta1, beta2, rate, correction, epsilon], dtype=np.float32)
