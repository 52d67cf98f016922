"""Slow, obvious versions of everything, straight from the formulas, in float64. For tests only.

They ask a hierarchy for nothing but its names and its (parent, child) pairs.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Side = Literal["negatives", "positives", "both"]
Rescaling = Literal["published", "printed"]


class NamesAndEdges(Protocol):
    @property
    def nodes(self) -> tuple[str, ...]: ...
    @property
    def edges(self) -> tuple[tuple[str, str], ...]: ...


# --- who is above whom ---------------------------------------------------------------------------------------------


def ancestors(edges: Iterable[tuple[str, str]], name: str) -> set[str]:
    """The parents, and the ancestors of the parents."""
    edges = list(edges)
    parents = {parent for parent, child in edges if child == name}
    return parents.union(*(ancestors(edges, parent) for parent in parents))


def descendants(edges: Iterable[tuple[str, str]], name: str) -> set[str]:
    """The children, and the descendants of the children."""
    edges = list(edges)
    children = {child for parent, child in edges if parent == name}
    return children.union(*(descendants(edges, child) for child in children))


def depth(edges: Iterable[tuple[str, str]], name: str) -> int:
    """Edges on the longest way down from a root."""
    edges = list(edges)
    return max((1 + depth(edges, parent) for parent, child in edges if child == name), default=0)


def families(hierarchy: NamesAndEdges) -> list[list[int]]:
    """For each column, the columns of the node and of its descendants, sorted (S_i in the paper)."""
    column = {name: i for i, name in enumerate(hierarchy.nodes)}
    return [sorted(column[n] for n in {name} | descendants(hierarchy.edges, name)) for name in hierarchy.nodes]


def close(Y: NDArray[Any], hierarchy: NamesAndEdges) -> Bools:
    """A node is present if it or one of its descendants is."""
    kin = families(hierarchy)
    closed = np.zeros(Y.shape, dtype=np.bool_)
    for row in range(Y.shape[0]):
        for node, family in enumerate(kin):
            closed[row, node] = any(bool(Y[row, member]) for member in family)
    return closed


def complete_labels(
    hierarchy: NamesAndEdges, present: NDArray[Any], absent: NDArray[Any], unknown: NDArray[Any], below: bool
) -> tuple[Bools, Bools] | None:
    """Labels and which are known, row by row from the roots down; None if a node is both present and absent."""
    names, column = hierarchy.nodes, {name: place for place, name in enumerate(hierarchy.nodes)}
    parents = {name: [parent for parent, child in hierarchy.edges if child == name] for name in names}
    children = {name: [child for parent, child in hierarchy.edges if parent == name] for name in names}
    Y, known = close(present, hierarchy), np.zeros(present.shape, dtype=np.bool_)
    kin = dict(zip(names, families(hierarchy), strict=True))  # each node with its descendants, as columns
    roots = [each for each in names if not parents[each]]
    for row in range(len(present)):
        stated_absent = [one for one in names if absent[row, column[one]]]
        is_excluded = {name: any(column[name] in kin[one] for one in stated_absent) for name in names}
        if any(Y[row, column[name]] and is_excluded[name] for name in names):
            return None
        settled = {name: bool(Y[row, column[name]]) or is_excluded[name] for name in names}
        is_open = {name: bool(unknown[row, column[name]]) and not settled[name] for name in names}
        value: dict[str, str] = {}
        spreads: dict[str, bool] = {}
        for name in sorted(names, key=lambda each: depth(hierarchy.edges, each)):
            spreads[name] = is_open[name]
            if Y[row, column[name]]:
                value[name] = "present"
            elif is_excluded[name]:
                value[name] = "absent"
            elif any(is_open[one] and column[one] in kin[name] for one in names):
                value[name] = "unknown"
            elif any(value[above] == "absent" for above in parents[name]):
                value[name] = "absent"
            else:
                siblings = [child for above in parents[name] for child in children[above]] if parents[name] else roots
                labels_end_above = not any(Y[row, column[child]] for child in siblings) and all(
                    value[above] == "present" for above in parents[name]
                )
                unknown_above = any(spreads[each] or (below and value[each] == "unknown") for each in parents[name])
                spreads[name] = unknown_above or (below and labels_end_above)
                value[name] = "unknown" if spreads[name] else "absent"
        known[row] = [value[name] != "unknown" for name in names]
    return Y, known


def sum_over_descendants(values: NDArray[Any], hierarchy: NamesAndEdges) -> Floats:
    return np.array([sum(float(values[j]) for j in family) for family in families(hierarchy)])


# --- constraint ----------------------------------------------------------------------------------------------------


def constrain(scores: NDArray[Any], hierarchy: NamesAndEdges) -> Floats:
    """f_CM: the largest score among the node and its descendants."""
    kin = families(hierarchy)
    result = np.empty(scores.shape, dtype=np.float64)
    for place in np.ndindex(scores.shape[:-1]):
        for node, family in enumerate(kin):
            result[(*place, node)] = max(float(scores[(*place, j)]) for j in family)
    return result


def constrain_gradient(scores: NDArray[Any], upstream: NDArray[Any], hierarchy: NamesAndEdges) -> Floats:
    """Each node's gradient goes to its maximiser, the lowest column where several are equal."""
    kin = families(hierarchy)
    gradient = np.zeros(scores.shape, dtype=np.float64)
    for place in np.ndindex(scores.shape[:-1]):
        for node, family in enumerate(kin):
            largest = max(float(scores[(*place, j)]) for j in family)
            winner = next(j for j in family if float(scores[(*place, j)]) == largest)
            gradient[(*place, winner)] += float(upstream[(*place, node)])
    return gradient


# --- loss ----------------------------------------------------------------------------------------------------------


def sigmoid(x: NDArray[Any]) -> Floats:
    """Without overflow on either side."""
    x = np.asarray(x, dtype=np.float64)
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1.0, small) / (1.0 + small))


def max_constraint_loss(logits: NDArray[Any], labels: NDArray[Any], hierarchy: NamesAndEdges) -> Floats:
    """The paper's four equations, in probabilities; for logits (members, rows, nodes)."""
    Y = labels.astype(np.float64)
    probs = sigmoid(logits)
    Y_A = constrain(probs, hierarchy)
    Y_B = constrain(Y * probs, hierarchy)
    Y_tilde = (1 - Y) * Y_A + Y_B
    loss = np.empty(probs.shape)
    for member, row, node in np.ndindex(probs.shape):
        p = Y_tilde[member, row, node]
        loss[member, row, node] = -np.log(p) if labels[row, node] else -np.log(1 - p)
    return loss


def max_constraint_loss_of_logits(logits: NDArray[Any], labels: NDArray[Any], hierarchy: NamesAndEdges) -> Floats:
    """The same by log(1 + e^z), which keeps its digits where a probability is 0 or 1 to machine precision."""
    kin = families(hierarchy)
    loss = np.empty(logits.shape)
    for member, row in np.ndindex(logits.shape[:2]):
        for node, family in enumerate(kin):
            if labels[row, node]:
                z = max(float(logits[member, row, j]) for j in family if labels[row, j])
                loss[member, row, node] = np.logaddexp(0.0, -z)
            else:
                z = max(float(logits[member, row, j]) for j in family)
                loss[member, row, node] = np.logaddexp(0.0, z)
    return loss


def loss_gradient(logits: NDArray[Any], labels: NDArray[Any], hierarchy: NamesAndEdges, factor: NDArray[Any]) -> Floats:
    """Of the sum of factor x max-constraint loss: factor x (p - y), at the node that set the maximum."""
    kin = families(hierarchy)
    gradient = np.zeros(logits.shape)
    for member, row in np.ndindex(logits.shape[:2]):
        for node, family in enumerate(kin):
            y = bool(labels[row, node])
            rivals = [j for j in family if labels[row, j]] if y else family
            winner = max(rivals, key=lambda j: float(logits[member, row, j]))
            slope = float(sigmoid(logits[member, row, winner])) - float(y)
            if y:  # 1 - p as the mirrored sigmoid, so that it does not round to 0
                slope = -float(sigmoid(-logits[member, row, winner]))
            gradient[member, row, winner] += float(factor[member, row, node]) * slope
    return gradient


def weight_of_each_cell(labels: NDArray[Any], positive: NDArray[Any], negative: NDArray[Any]) -> Floats:
    weights = np.empty(labels.shape)
    for row, node in np.ndindex(labels.shape):
        weights[row, node] = positive[node] if labels[row, node] else negative[node]
    return weights


def focal_weight(
    logits: NDArray[Any], labels: NDArray[Any], focus: str | None, u0: float, k: float, eps: float
) -> Floats:
    """U0 + U^k for each (member, row, node); 1 without a focus."""
    if focus is None:
        return np.ones(logits.shape)
    probs = sigmoid(logits)
    if focus == "focal":
        U = np.where(labels, sigmoid(-logits), probs)
    else:
        # Rounding takes a divergence of nearly equal members below 0, which has no root.
        U = np.broadcast_to(np.maximum(uncertainty(probs, focus, eps), 0.0), logits.shape)
    return np.asarray(u0 + U**k, dtype=np.float64)


def reduce(
    loss: NDArray[Any], scored: NDArray[Any] | None, reduction: str, known: NDArray[Any] | None = None
) -> Any:
    """By explicit loops over (members, rows, nodes)."""
    members, _, nodes = loss.shape
    counts = [True] * nodes if scored is None else [bool(s) for s in scored]
    kept = np.zeros(loss.shape)
    total, cells = 0.0, 0
    for member, row, node in np.ndindex(loss.shape):
        if counts[node] and (known is None or known[row, node]):
            kept[member, row, node] = loss[member, row, node]
            total += float(loss[member, row, node])
            cells += 1
    if reduction == "none":
        return kept
    return total if reduction == "sum" else total / max(1, cells // members)


# --- node weights --------------------------------------------------------------------------------------------------


def multi_count(Y: NDArray[Any], hierarchy: NamesAndEdges) -> list[int]:
    """n_i: the column sums of the node and of each descendant, added up."""
    sums = [sum(int(Y[row, node]) for row in range(Y.shape[0])) for node in range(Y.shape[1])]
    return [sum(sums[j] for j in family) for family in families(hierarchy)]


def sum_of_shares(Y: NDArray[Any], known: NDArray[Any], hierarchy: NamesAndEdges) -> list[Fraction]:
    """For the node and each descendant, how many of the rows where it is known have it; added up."""
    shares = []
    for node in range(Y.shape[1]):
        rows = [row for row in range(Y.shape[0]) if known[row, node]]
        shares.append(Fraction(sum(bool(Y[row, node]) for row in rows), max(1, len(rows))))
    return [sum((shares[j] for j in family), Fraction(0)) for family in families(hierarchy)]


class TwoSides(NamedTuple):
    positive: Floats
    negative: Floats


def node_weights(
    Y: NDArray[Any],
    hierarchy: NamesAndEdges,
    w0: float,
    side: Side,
    rescaling: Rescaling,
    classes: int,
    known: NDArray[Any] | None = None,
) -> TwoSides:
    rows = Y.shape[0]
    raw = [1.0 if n in (0, rows) else rows / (classes * n) for n in multi_count(Y, hierarchy)]
    if known is not None:
        shares = sum_of_shares(Y, known, hierarchy)
        raw = [1.0 if share in (0, 1) else float(1 / (classes * share)) for share in shares]
    low, high = min(raw), max(raw)
    scaled = []
    for w in raw:
        fraction = 0.0 if high == low else (w - low) / (high - low)
        scaled.append(w0 + (high if rescaling == "published" else w) * fraction)
    ones = np.ones(len(raw))
    return TwoSides(
        positive=np.array(scaled) if side in ("positives", "both") else ones,
        negative=np.array(scaled) if side in ("negatives", "both") else ones,
    )


# --- uncertainty ---------------------------------------------------------------------------------------------------


def entropy(p: float) -> float:
    return -sum(q * float(np.log2(q)) for q in (p, 1 - p) if q > 0)


def kl(p: float, q: float) -> float:
    """D_KL between two coins, in bits; q must not be 0 where p is not."""
    return sum(a * float(np.log2(a / b)) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0)


def js(p: float, q: float) -> float:
    middle = (p + q) / 2
    return (kl(p, middle) + kl(q, middle)) / 2


def one_uncertainty(ps: list[float], kind: str, eps: float) -> float:
    """The uncertainty of the members' probabilities of one (row, node)."""
    members = len(ps)
    mean = sum(ps) / members
    sure = 2 * (max(mean, 1 - mean) - 0.5)
    if kind == "bbma":
        return 1 - sure
    if kind == "gmu":
        sigma = (sum((p - mean) ** 2 for p in ps) / (members - 1)) ** 0.5 if members > 1 else 0.0
        snr = (max(mean, 1 - mean) - min(mean, 1 - mean)) / (sigma + sigma + 1e-10)
        return 1 - sure * (1 - float(np.exp(-snr)))
    if kind == "predictive":
        return entropy(mean)
    if kind == "aleatoric":
        return sum(entropy(p) for p in ps) / members
    if members == 1:
        return 0.0
    if kind == "epistemic_kl":
        clipped = [min(max(p, eps), 1 - eps) for p in ps]
        return sum(kl(p, q) for p in clipped for q in clipped) / (members * (members - 1))
    if kind == "epistemic_js":
        return sum(js(p, q) for p in ps for q in ps) / (members * (members - 1))
    raise ValueError(kind)


def uncertainty(probs: NDArray[Any], kind: str, eps: float) -> Floats:
    result = np.empty(probs.shape[1:])
    for place in np.ndindex(result.shape):
        result[place] = one_uncertainty([float(p[place]) for p in probs], kind, eps)
    return result


# --- schedules -----------------------------------------------------------------------------------------------------


def share(shape: str, t: int, T: int) -> float:
    if shape == "alternating":
        return float(t % 2)
    if shape == "constant" or T == 1:
        return 0.0
    return (t / (T - 1)) ** {"linear": 1, "exponential": 3}[shape]


# --- metrics -------------------------------------------------------------------------------------------------------


class Scores(NamedTuple):
    precision: float
    recall: float
    f1: float
    predicted: bool
    found: bool


def scores_of_node(y: NDArray[Any], predicted: NDArray[Any]) -> Scores:
    """By counting, with 0 where a fraction is undefined."""
    hits = sum(1 for a, b in zip(y, predicted, strict=True) if a and b)
    false_alarms = sum(1 for a, b in zip(y, predicted, strict=True) if not a and b)
    misses = sum(1 for a, b in zip(y, predicted, strict=True) if a and not b)
    precision = hits / (hits + false_alarms) if hits + false_alarms else 0.0
    recall = hits / (hits + misses) if hits + misses else 0.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return Scores(precision, recall, f1, predicted=hits + false_alarms > 0, found=hits > 0)


def average_precision(y: NDArray[Any], scores: NDArray[Any], known: NDArray[Any] | None = None) -> float:
    """Sum over thresholds, from high to low, of precision x gain in recall."""
    cells = [place for place in np.ndindex(y.shape) if known is None or known[place]]
    truth = [bool(y[place]) for place in cells]
    values = [float(scores[place]) for place in cells]
    positives = sum(truth)
    if not positives:
        return 0.0
    total, recall_before = 0.0, 0.0
    for threshold in sorted(set(values), reverse=True):
        chosen = [t for t, v in zip(truth, values, strict=True) if v >= threshold]
        recall = sum(chosen) / positives
        total += sum(chosen) / len(chosen) * (recall - recall_before)
        recall_before = recall
    return total


class Summary(NamedTuple):
    f1: float
    precision: float
    recall: float
    bin_ap: float
    ap: float
    nodes: int
    nodes_predicted: int
    nodes_found: int


def summary(
    Y: NDArray[Any],
    probs: NDArray[Any],
    threshold: float,
    columns: Iterable[int],
    known: NDArray[np.bool_] | None = None,
) -> Summary:
    """Over the given columns only, and of each over the rows where it is known."""
    chosen = list(columns)
    seen = np.ones(Y.shape, dtype=np.bool_) if known is None else known
    if not chosen:
        return Summary(0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0)
    predicted = np.array([[bool(p >= threshold) for p in row] for row in probs], dtype=np.bool_).reshape(probs.shape)
    nodes = [scores_of_node(Y[seen[:, j], j], predicted[seen[:, j], j]) for j in chosen]
    return Summary(
        f1=sum(s.f1 for s in nodes) / len(chosen),
        precision=sum(s.precision for s in nodes) / len(chosen),
        recall=sum(s.recall for s in nodes) / len(chosen),
        bin_ap=average_precision(Y[:, chosen], predicted[:, chosen], seen[:, chosen]),
        ap=average_precision(Y[:, chosen], probs[:, chosen], seen[:, chosen]),
        nodes=len(chosen),
        nodes_predicted=sum(s.predicted for s in nodes),
        nodes_found=sum(s.found for s in nodes),
    )
