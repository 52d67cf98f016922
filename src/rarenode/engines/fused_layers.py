"""The layers of the fused engine: forward, backward and Adam over each row of weights once.

At a batch of a few rows a step is limited by memory. The gradient of a weight matrix has the rank of the batch, so it
is never stored: for one row of weights at a time the gradient is formed in a buffer that stays in the cache, the
gradient of the layer's input is accumulated from the old weights, and Adam updates the row. Each parameter is read in
the forward pass, and read and written with its two moments in the backward pass: 28 bytes a step, and no more.

Every function here works on some rows of one model, so that threads can share models or rows. What a row computes
does not depend on which thread does it. The input's gradient is summed within a fixed number of chunks of rows, and
the chunks in their order, so the number of threads changes no bit.

Arrays here are those of one model and one layer: weights (out, in), activations and their gradients (rows, width),
where rows are the batch, once for each Monte-Carlo pass. Activations are stored after dropout.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarenode._io.compiled import compiled
from rarenode.engines.dropout import is_kept

CHUNKS = 8
"""Parts of a layer's rows whose contributions to the input's gradient are summed separately."""

# Sums may be reordered, which lets the compiler use vectors; NaN and infinity must stay what they are.
FAST = {"reassoc", "contract", "nsz"}

Floats = NDArray[np.float32]


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
    width = out.shape[1]
    copies = out.shape[0] // source.shape[0]
    sums = np.empty(source.shape[0], dtype=np.float32)
    for unit in range(start, stop):
        w = weight[unit]
        row = 0
        while row + 4 <= source.shape[0]:
            sums[row], sums[row + 1], sums[row + 2], sums[row + 3] = _four_dots(w, source, row)
            row += 4
        while row < source.shape[0]:
            sums[row] = _dot(w, source[row])
            row += 1
        for row in range(source.shape[0]):
            value = sums[row] + bias[unit]
            if not hidden:
                for copy in range(copies):
                    out[copy * source.shape[0] + row, unit] = value
                continue
            if tanh:
                value = np.tanh(value)
            elif value < np.float32(0):  # compared this way round, NaN stays NaN
                value = np.float32(0)
            for copy in range(copies):
                place = copy * source.shape[0] + row
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


@compiled(fastmath=FAST, error_model="numpy")
def _adam_row(
    w: Floats,
    m: Floats,
    v: Floats,
    gradient: Floats,
    decay: np.float32,
    beta1: np.float32,
    beta2: np.float32,
    rate: np.float32,
    correction: np.float32,
    epsilon: np.float32,
) -> None:
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

    ``slope`` (rows, out) is the gradient of the units before their activation. ``into`` (rows, in) receives what
    these units contribute to the gradient of the layer's input, from the weights before the update; the first layer
    has no use for it.
    """
    decay, beta1, beta2, rate, correction, epsilon = adam[0], adam[1], adam[2], adam[3], adam[4], adam[5]
    rows, inputs, size = slope.shape[0], weight.shape[1], source.shape[0]
    active = np.empty(rows, dtype=np.int64)
    factor = np.empty(rows, dtype=np.float32)
    gradient = np.empty(inputs, dtype=np.float32)
    bias_gradient = np.zeros(stop - start, dtype=np.float32)
    if not first_layer:
        for row in range(rows):
            for i in range(inputs):
                into[row, i] = np.float32(0)
    for unit in range(start, stop):
        if not first_layer and (unit - start) % 4 == 0:
            _add_to_input(into, weight, slope, unit, min(unit + 4, stop))
        w = weight[unit]
        for i in range(inputs):
            gradient[i] = np.float32(0)
        count = 0
        for row in range(rows):  # many are 0: dropped, or not the maximiser of any node
            if slope[row, unit] != np.float32(0):
                active[count] = row
                factor[count] = slope[row, unit]
                bias_gradient[unit - start] += factor[count]
                count += 1
        at = 0
        while at + 4 <= count:
            a, b = source[active[at] % size], source[active[at + 1] % size]
            c, d = source[active[at + 2] % size], source[active[at + 3] % size]
            _add_four(gradient, factor[at], a, factor[at + 1], b, factor[at + 2], c, factor[at + 3], d)
            at += 4
        while at < count:
            _add_one(gradient, factor[at], source[active[at] % size])
            at += 1
        _adam_row(w, weight_m[unit], weight_v[unit], gradient, decay, beta1, beta2, rate, correction, epsilon)
    values, m, v = bias[start:stop], bias_m[start:stop], bias_v[start:stop]
    _adam_row(values, m, v, bias_gradient, decay, beta1, beta2, rate, correction, epsilon)


@compiled(fastmath=FAST, error_model="numpy")
def through_activation(
    parts: Floats,
    activation: Floats,
    slope: Floats,
    start: int,
    stop: int,
    tanh: bool,
    batch: int,
    keys: NDArray[np.uint64],
    threshold: np.uint64,
    scale: np.float32,
) -> None:
    """The gradient of units ``start`` to ``stop`` of a hidden layer before their activation and dropout.

    ``parts`` (chunks, rows, width) are the contributions of the layer above.
    """
    width = activation.shape[1]
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
