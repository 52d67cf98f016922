"""One training step of the fused engine: which thread does what, and when all must wait for each other.

Threads split models first: with enough of them a thread takes a model through all its layers, and waits only before and after the
loss, which sees all members. With fewer models than that they split the rows of every layer. Both ways compute the same bits.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from rarenode.engines.dropout import mask_key
from rarenode.engines.fused_layers import CHUNKS, Floats, Layers, backward_rows, forward_rows, through_activation
from rarenode.engines.fused_loss import FOCAL, focus_nodes, loss_row


@numba.njit(cache=True, nogil=True)
def _forward(
    X: Floats,
    weights: Layers,
    biases: Layers,
    outputs: Layers,
    model: int,
    layer: int,
    chunk: int,
    tanh: bool,
    keys: NDArray[np.uint64],
    threshold: np.uint64,
    scale: np.float32,
) -> None:
    source = X if layer == 0 else outputs[layer - 1][model]
    out = outputs[layer][model]
    units = out.shape[1]
    last = layer == len(weights) - 1
    forward_rows(
        source,
        weights[layer][model],
        biases[layer][model],
        out,
        units * chunk // CHUNKS,
        units * (chunk + 1) // CHUNKS,
        not last,
        tanh,
        X.shape[0],
        keys[layer, model],
        threshold,
        scale,
    )


@numba.njit(cache=True, nogil=True)
def _backward(
    X: Floats,
    weights: Layers,
    weights_m: Layers,
    weights_v: Layers,
    biases: Layers,
    biases_m: Layers,
    biases_v: Layers,
    outputs: Layers,
    slopes: Layers,
    parts: Floats,
    model: int,
    layer: int,
    chunk: int,
    adam: Floats,
) -> None:
    source = X if layer == 0 else outputs[layer - 1][model]
    units = outputs[layer].shape[2]
    backward_rows(
        source,
        weights[layer][model],
        weights_m[layer][model],
        weights_v[layer][model],
        biases[layer][model],
        biases_m[layer][model],
        biases_v[layer][model],
        slopes[layer][model],
        parts[model, chunk],
        units * chunk // CHUNKS,
        units * (chunk + 1) // CHUNKS,
        layer == 0,
        adam,
    )


@numba.njit(parallel=True, cache=True, nogil=True)
def fused_step(
    X: Floats,
    Y: NDArray[np.bool_],
    weights: Layers,
    weights_m: Layers,
    weights_v: Layers,
    biases: Layers,
    biases_m: Layers,
    biases_v: Layers,
    outputs: Layers,
    slopes: Layers,
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
    seed: np.uint64,
    step: np.uint64,
    threshold: np.uint64,
    scale: np.float32,
    by_model: bool,
) -> float:
    """Forward, loss, backward and Adam on one batch; returns the loss, or NaN and changes nothing if it is not finite."""
    layers = len(weights)
    models = weights[0].shape[0]
    batch = X.shape[0]
    rows = outputs[0].shape[1]
    passes = rows // batch
    members = models * passes
    nodes = outputs[layers - 1].shape[2]

    keys = np.empty((layers, models, passes), dtype=np.uint64)
    for layer in range(layers):
        for model in range(models):
            for a_pass in range(passes):
                keys[layer, model, a_pass] = mask_key(
                    seed, step, np.uint64(layer), np.uint64(model * passes + a_pass)
                )

    if by_model:
        for model in numba.prange(models):
            for layer in range(layers):
                for chunk in range(CHUNKS):
                    _forward(X, weights, biases, outputs, model, layer, chunk, tanh, keys, threshold, scale)
    else:
        for layer in range(layers):
            for task in numba.prange(models * CHUNKS):
                model, chunk = task // CHUNKS, task % CHUNKS
                _forward(X, weights, biases, outputs, model, layer, chunk, tanh, keys, threshold, scale)

    # Members are the passes of each model in turn, so members x batch and models x rows are the same memory.
    logits = outputs[layers - 1].reshape(members, batch, nodes)
    slope = slopes[layers - 1].reshape(members, batch, nodes)
    if kind > FOCAL:
        for task in numba.prange(batch * CHUNKS):
            row, chunk = task // CHUNKS, task % CHUNKS
            focus_nodes(
                logits, row, nodes * chunk // CHUNKS, nodes * (chunk + 1) // CHUNKS, kind, u0, k, focus
            )
    losses = np.empty(members * batch, dtype=np.float64)
    for task in numba.prange(members * batch):
        member, row = task // batch, task % batch
        losses[task] = loss_row(
            logits[member, row],
            Y[row],
            positive,
            negative,
            focus[row],
            kind,
            u0,
            k,
            divisor,
            parents,
            starts,
            children,
            best[task],
            slope[member, row],
        )
    loss = 0.0
    for task in range(members * batch):
        loss += losses[task]
    if not np.isfinite(loss):
        return loss

    if by_model:
        for model in numba.prange(models):
            for back in range(layers):
                layer = layers - 1 - back
                for chunk in range(CHUNKS):
                    _backward(
                        X, weights, weights_m, weights_v, biases, biases_m, biases_v, outputs, slopes, parts, model,
                        layer, chunk, adam,
                    )  # fmt: skip
                if layer > 0:
                    for row in range(rows):
                        through_activation(
                            parts[model], outputs[layer - 1][model], slopes[layer - 1][model], row, tanh, batch,
                            keys[layer - 1, model], threshold, scale,
                        )  # fmt: skip
    else:
        for back in range(layers):
            layer = layers - 1 - back
            for task in numba.prange(models * CHUNKS):
                _backward(
                    X, weights, weights_m, weights_v, biases, biases_m, biases_v, outputs, slopes, parts,
                    task // CHUNKS, layer, task % CHUNKS, adam,
                )  # fmt: skip
            if layer > 0:
                for task in numba.prange(models * rows):
                    model, row = task // rows, task % rows
                    through_activation(
                        parts[model], outputs[layer - 1][model], slopes[layer - 1][model], row, tanh, batch,
                        keys[layer - 1, model], threshold, scale,
                    )  # fmt: skip
    return loss
