"""One training step of the fused engine: which thread does what, and when all must wait for each other.

It has two parts, `fused_forward` and `fused_backward`. Between them the engine may compute the ensemble's focal weight
from members that are in other processes.

Threads split models first: with enough of them a thread takes a model through all its layers, and waits only before
and after the loss, which sees all members. With fewer models than that they split the rows of every layer. Both ways
compute the same bits.

All parameters of a model lie in one row of ``parameters``, layer after layer, weights before biases, and its moments
in the same places of ``first`` and ``second``. Activations and their gradients lie in ``outputs`` and ``slopes``
likewise. Rows of each are padded; see `fused_layers`. So one compiled function serves every number of layers.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from rarenode._io.compiled import compiled
from rarenode.engines.dropout import mask_key
from rarenode.engines.fused_layers import CHUNKS, Floats, backward_rows, forward_rows, padded, through_activation
from rarenode.engines.fused_loss import FOCAL, focus_nodes, loss_row

Widths = NDArray[np.int64]
"""Features, hidden units of each layer, nodes."""


@compiled()
def weight_place(widths: Widths, layer: int) -> int:
    """Where a layer's weights begin among the parameters of a model; the biases follow them."""
    place = 0
    for before in range(layer):
        place += padded(widths[before]) * widths[before + 1] + padded(widths[before + 1])
    return place


@compiled()
def _weights(flat: Floats, widths: Widths, layer: int) -> Floats:
    place = weight_place(widths, layer)
    inputs, units = padded(widths[layer]), widths[layer + 1]
    return flat[place : place + units * inputs].reshape(units, inputs)


@compiled()
def _biases(flat: Floats, widths: Widths, layer: int) -> Floats:
    place = weight_place(widths, layer) + padded(widths[layer]) * widths[layer + 1]
    return flat[place : place + widths[layer + 1]]


@compiled()
def _units(flat: Floats, widths: Widths, layer: int, rows: int) -> Floats:
    """Activations, or their gradients, of a layer: (rows, width), padded."""
    place, width = 0, padded(widths[layer + 1])
    for before in range(layer):
        place += padded(widths[before + 1]) * rows
    return flat[place : place + width * rows].reshape(rows, width)


@compiled()
def _forward(
    X: Floats,
    parameters: Floats,
    outputs: Floats,
    widths: Widths,
    rows: int,
    layer: int,
    chunk: int,
    tanh: bool,
    keys: NDArray[np.uint64],
    threshold: np.uint64,
    scale: np.float32,
) -> None:
    """A chunk of a layer of one model."""
    units = widths[layer + 1]
    forward_rows(
        X if layer == 0 else _units(outputs, widths, layer - 1, rows),
        _weights(parameters, widths, layer),
        _biases(parameters, widths, layer),
        _units(outputs, widths, layer, rows),
        units * chunk // CHUNKS,
        units * (chunk + 1) // CHUNKS,
        layer < widths.shape[0] - 2,
        tanh,
        X.shape[0],
        keys[layer],
        threshold,
        scale,
    )


@compiled()
def _backward(
    X: Floats,
    parameters: Floats,
    first: Floats,
    second: Floats,
    outputs: Floats,
    slopes: Floats,
    parts: Floats,
    widths: Widths,
    rows: int,
    layer: int,
    chunk: int,
    adam: Floats,
    tanh: bool,
    keys: NDArray[np.uint64],
    threshold: np.uint64,
    scale: np.float32,
) -> None:
    """A chunk of a layer of one model.

    ``parts`` (2, chunks, rows or more, width or more): layers take turns in which of the two they write, so that what
    the layer above wrote can be read meanwhile.
    """
    units = widths[layer + 1]
    start, stop = units * chunk // CHUNKS, units * (chunk + 1) // CHUNKS
    slope = _units(slopes, widths, layer, rows)
    if layer < widths.shape[0] - 2:
        above, own = parts[(layer + 1) % 2], _units(outputs, widths, layer, rows)
        through_activation(above, own, slope, start, stop, units, tanh, X.shape[0], keys[layer], threshold, scale)
    backward_rows(
        X if layer == 0 else _units(outputs, widths, layer - 1, rows),
        _weights(parameters, widths, layer),
        _weights(first, widths, layer),
        _weights(second, widths, layer),
        _biases(parameters, widths, layer),
        _biases(first, widths, layer),
        _biases(second, widths, layer),
        slope,
        parts[layer % 2, chunk],
        start,
        stop,
        layer == 0,
        adam,
    )


@compiled()
def mask_keys(
    seed: np.uint64, step: np.uint64, models: int, layers: int, passes: int, first_member: int
) -> NDArray[np.uint64]:
    """The key of each model, layer and pass; a member is a pass of a model."""
    keys = np.empty((models, layers, passes), dtype=np.uint64)
    for model in range(models):
        for layer in range(layers):
            for a_pass in range(passes):
                member = np.uint64(first_member + model * passes + a_pass)
                keys[model, layer, a_pass] = mask_key(seed, step, np.uint64(layer), member)
    return keys


@compiled()
def _split_by_model(models: int, threads: int) -> bool:
    return models >= 2 * threads or models == threads


@compiled(parallel=True)
def fused_forward(
    X: Floats,
    parameters: Floats,
    widths: Widths,
    outputs: Floats,
    focus: Floats,
    kind: int,
    u0: float,
    k: float,
    tanh: bool,
    keys: NDArray[np.uint64],
    threshold: np.uint64,
    scale: np.float32,
    threads: int,
) -> Floats:
    """Logits (members, rows, nodes) of one batch; if ``kind`` is an uncertainty, its weight is in ``focus`` then.

    ``threads`` is the number that numba is set to; it decides how the work is divided.
    """
    layers = widths.shape[0] - 1
    models, passes = keys.shape[0], keys.shape[2]
    batch = X.shape[0]
    nodes = widths[layers]
    rows = passes * batch
    # All layers in one go, or a barrier after each.
    goes, pieces = (1, 1) if _split_by_model(models, threads) else (layers, CHUNKS)
    for go in range(goes):
        for task in numba.prange(models * pieces):
            model, piece = task // pieces, task % pieces
            for layer in range(layers * go // goes, layers * (go + 1) // goes):
                for chunk in range(CHUNKS * piece // pieces, CHUNKS * (piece + 1) // pieces):
                    _forward(
                        X, parameters[model], outputs[model], widths, rows, layer, chunk, tanh, keys[model],
                        threshold, scale,
                    )  # fmt: skip

    # The rows of a pass follow those of the pass before.
    logits = np.empty((models * passes, batch, nodes), dtype=np.float32)
    for model in range(models):
        logits.reshape(models, rows, nodes)[model] = _units(outputs[model], widths, layers - 1, rows)[:, :nodes]
    if kind > FOCAL:
        for task in numba.prange(batch * CHUNKS):
            chunk = task % CHUNKS
            begin, end = nodes * chunk // CHUNKS, nodes * (chunk + 1) // CHUNKS
            focus_nodes(logits, task // CHUNKS, begin, end, kind, u0, k, focus)
    return logits


@compiled(parallel=True)
def fused_backward(
    X: Floats,
    Y: NDArray[np.bool_],
    known: NDArray[np.bool_],
    row_weights: Floats,
    logits: Floats,
    parameters: Floats,
    first: Floats,
    second: Floats,
    widths: Widths,
    outputs: Floats,
    slopes: Floats,
    parts: Floats,
    best: NDArray[np.int64],
    focus: Floats,
    positive: Floats,
    negative: Floats,
    kind: int,
    u0: float,
    k: float,
    divisor: float,
    parents: NDArray[np.int64],
    starts: NDArray[np.int64],
    children: NDArray[np.int64],
    adam: Floats,
    tanh: bool,
    keys: NDArray[np.uint64],
    threshold: np.uint64,
    scale: np.float32,
    threads: int,
) -> float:
    """Loss, backward and Adam after `fused_forward`; returns the loss. If it is not finite, no parameter changes.

    ``known`` is (rows, nodes), or (1, 0) where all labels are known.
    """
    layers = widths.shape[0] - 1
    models = parameters.shape[0]
    batch = X.shape[0]
    rows = keys.shape[2] * batch
    losses = np.empty(models * rows, dtype=np.float64)
    for task in numba.prange(models * rows):
        model, row = task // rows, task % rows
        losses[task] = loss_row(
            logits[task // batch, task % batch], Y[task % batch], known[task % batch % known.shape[0]], positive,
            negative, focus[task % batch], kind, u0, k, row_weights[task % batch], divisor, parents, starts, children,
            best[task], _units(slopes[model], widths, layers - 1, rows)[row, : positive.shape[0]],
        )  # fmt: skip
    loss = 0.0
    for task in range(models * rows):
        loss += losses[task]
    if not np.isfinite(loss):
        return loss

    goes, pieces = (1, 1) if _split_by_model(models, threads) else (layers, CHUNKS)
    for go in range(goes):
        for task in numba.prange(models * pieces):
            model, piece = task // pieces, task % pieces
            for back in range(layers * go // goes, layers * (go + 1) // goes):
                for chunk in range(CHUNKS * piece // pieces, CHUNKS * (piece + 1) // pieces):
                    _backward(
                        X, parameters[model], first[model], second[model], outputs[model], slopes[model], parts[model],
                        widths, rows, layers - 1 - back, chunk, adam, tanh, keys[model], threshold, scale,
                    )  # fmt: skip
    return loss
