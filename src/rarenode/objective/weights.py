"""Imbalance weights: how much an annotation of each node counts, by the node's rarity.

From the closed labels of the training rows (N_obs rows, column sums c_j):

    n_i = sum of c_j over the node i and its descendants j      (a row counts once for each labelled descendant)
    w_i = N_obs / (N_classes n_i)                               (1 where n_i is 0 or N_obs)

    rescaling "published":  w~_i = w0 + w_max (w_i - w_min) / (w_max - w_min)
    rescaling "printed":    w~_i = w0 + w_i   (w_i - w_min) / (w_max - w_min)

w~_i applies to the labels of one side: a node that is absent from a row (``negatives``), present (``positives``), or
both.

Where labels are unknown, the sum over j is one of shares, each among the rows where that node is known: with N_j of
these, w_i = 1 / (N_classes sum of c_j / N_j). If all labels are known this is the same.

The paper prints positives with the printed rescaling (``as_described``); its tables come from *negatives* with the
published one (``as_published``). The difference decides whether the method works: a small weight on the negatives of
a common node makes a false positive there cheap, so the node and those below it come to be predicted at all; a small
weight on the positives makes them quieter still. Both are here under their names; the default is the one that works.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rarenode.errors import ArgumentError
from rarenode.hierarchy import Hierarchy
from rarenode.hierarchy.labels import Labels, as_known, count_labels

Form = Literal["as_published", "as_described"]
Side = Literal["negatives", "positives", "both"]
Rescaling = Literal["published", "printed"]
Classes = Literal["nodes", "binary"]

FORMS: dict[Form, tuple[Side, Rescaling]] = {
    "as_published": ("negatives", "published"),
    "as_described": ("positives", "printed"),
}


@dataclass(frozen=True, eq=False)
class NodeWeights:
    """What each kind of annotation weighs, in the hierarchy's node order."""

    positive: NDArray[np.float64]
    """(nodes,): the weight of a node's presence in a row."""
    negative: NDArray[np.float64]
    """(nodes,): the weight of a node's absence from a row."""
    w0: float = 1.0
    """The gate: what a `WeightSchedule` towards ``w0`` moves to."""
    side: Side = "both"
    """Which side is weighted, and so changed by a `WeightSchedule`."""


def node_weights(
    Y: Any,
    hierarchy: Hierarchy,
    w0: float = 0.25,
    form: Form = "as_published",
    classes: Classes = "nodes",
    *,
    side: Side | None = None,
    rescaling: Rescaling | None = None,
    known: Any = None,
) -> NodeWeights:
    """Weights of every node's annotations from the labels of the training rows.

    Args:
        Y: closed labels of the *training* rows, (rows, nodes).
        hierarchy: its node order is the order of the columns.
        w0: the gate, the least weight.
        form: ``as_published`` (what produced the paper's tables) or ``as_described`` (what the paper prints).
        classes: N_classes is the number of ``nodes``, or 2 (``binary``).
        side: overrides the form's side: ``negatives``, ``positives`` or ``both``.
        rescaling: overrides the form's rescaling: ``published`` or ``printed``.
        known: (rows, nodes), where labels are known; None: everywhere.

    >>> hierarchy = Hierarchy.from_edges([("animal", "cat"), ("animal", "dog")])
    >>> Y = hierarchy.close(hierarchy.encode([["cat"], ["cat"], ["cat"], ["dog"]]))
    >>> node_weights(Y, hierarchy).negative.round(3)
    array([0.25 , 0.567, 1.583])
    """
    if form not in FORMS:
        raise ArgumentError(f"unknown form {form!r}; choose one of {', '.join(FORMS)}")
    form_side, form_rescaling = FORMS[form]
    side = form_side if side is None else side
    rescaling = form_rescaling if rescaling is None else rescaling
    for given, allowed, what in (
        (side, Side, "side"),
        (rescaling, Rescaling, "rescaling"),
        (classes, Classes, "classes"),
    ):
        if given not in get_args(allowed):
            raise ArgumentError(f"unknown {what} {given!r}; choose one of {', '.join(get_args(allowed))}")
    if not (isinstance(w0, Real) and 0 <= w0 < np.inf):
        raise ArgumentError(f"w0 must be a number of at least 0, got {w0!r}")
    labels = hierarchy.require_closed(Y)
    if not all(labels.shape):
        raise ArgumentError("weights need at least one node and one training row")

    w = rarity(labels, hierarchy, classes, as_known(known, labels.shape))
    spread = w.max() - w.min()
    fraction = (w - w.min()) / spread if spread > 0 else np.zeros_like(w)
    scaled = w0 + (w.max() if rescaling == "published" else w) * fraction
    ones = np.ones_like(scaled)
    return NodeWeights(
        positive=ones if side == "negatives" else scaled,
        negative=ones if side == "positives" else scaled,
        w0=float(w0),
        side=side,
    )


def rarity(
    labels: Labels, hierarchy: Hierarchy, classes: Classes, known: NDArray[np.bool_] | None = None
) -> NDArray[np.float64]:
    """w_i before rescaling."""
    rows, counts = labels.shape[0], count_labels(labels)
    n_classes = len(hierarchy) if classes == "nodes" else 2
    w = np.ones(len(hierarchy))
    if known is not None:
        share = hierarchy.sum_over_descendants(counts / np.maximum(np.count_nonzero(known, axis=0), 1))
        informative = (share > 0) & ~np.isclose(share, 1, rtol=0, atol=1e-9)  # sums of shares round
        w[informative] = 1 / (n_classes * share[informative])
        return w
    n = hierarchy.sum_over_descendants(counts)
    informative = (n > 0) & (n != rows)
    w[informative] = rows / (n_classes * n[informative])
    return w
