"""A diagnosis by loops over rows and nodes, straight from the definitions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from rarenode import Hierarchy
from rarenode.thresholds import Rule, Thresholds
from tests import oracles
from tests.oracles import NamesAndEdges
from tests.strategies import closed_labels, hierarchies, label_matrices
from tests.thresholds.oracles import ANY_PROBABILITY, EIGHTHS, add_ancestors, drop_orphans

Bools = NDArray[np.bool_]
Floats = NDArray[np.floating[Any]]


class Node(NamedTuple):
    """The expected diagnosis of one node."""

    state: str
    uncertainty: float | None = None
    reasons: tuple[str, ...] = ()
    best_rank: int = 0
    rank_chance: Fraction | None = None
    auc: Fraction | None = None
    cut_prob: float | None = None
    cut_next: float | None = None
    cut_rank: int = 0
    cut_hits: int = 0
    blocked_rows: int = 0
    blocked_by: int = -1
    confused_rows: int = 0
    confused_with: int = -1
    member_rows: int = 0
    member_all_rows: int = 0


class Case(NamedTuple):
    """The arguments of `diagnose`."""

    Y: Bools
    probs: Floats
    hierarchy: Hierarchy
    thresholds: Thresholds
    training: NDArray[np.int64]
    scored: Bools | None
    highest_member_probs: Floats | None
    uncertainty: Floats | None
    known: Bools | None = None


def predict(probs: Floats, values: NDArray[np.float64], rule: Rule | None, hierarchy: NamesAndEdges) -> Bools:
    passed = np.zeros(probs.shape, dtype=np.bool_)
    for row, node in np.ndindex(probs.shape):
        passed[row, node] = float(probs[row, node]) >= float(values[node])
    if rule is None:
        return passed
    return add_ancestors(passed, hierarchy) if rule == "add_ancestors" else drop_orphans(passed, hierarchy)


def chance(rows: int, positives: int, rank: int, hits: int) -> Fraction:
    """The hypergeometric tail, exactly."""
    others, most = rows - positives, min(positives, rank)
    ways = sum(math.comb(positives, i) * math.comb(others, rank - i) for i in range(hits, most + 1))
    return Fraction(ways, math.comb(rows, rank))


def rank_chance(p: list[float], of_positives: list[float]) -> Fraction:
    """The smallest tail at the 1st, 2nd, 4th, ... and last of the positives, times the number of these."""
    own = sorted(of_positives, reverse=True)
    places = {len(own)} | {2**power for power in range(20) if 2**power <= len(own)}
    tails = []
    for place in places:
        cut = own[place - 1]
        tails.append(chance(len(p), len(own), sum(value >= cut for value in p), sum(value >= cut for value in own)))
    return min(Fraction(1), min(tails) * len(places))


def share_of_pairs(positives: list[float], others: list[float]) -> Fraction | None:
    """The share of pairs in the right order, ties counted half."""
    if not others:
        return None
    right = sum((Fraction(int(a > b)) + Fraction(int(a == b), 2) for a in positives for b in others), Fraction(0))
    return right / (len(positives) * len(others))


def siblings(hierarchy: NamesAndEdges, column: int) -> list[int]:
    """Nodes with a parent in common, and for a root the other roots."""
    name = hierarchy.nodes[column]

    def parents(of: str) -> set[str | None]:
        return {parent for parent, child in hierarchy.edges if child == of} or {None}

    return [
        place
        for place, other in enumerate(hierarchy.nodes)
        if other != name and parents(other) & parents(name)
    ]  # fmt: skip


def most(counts: dict[int, int]) -> tuple[int, int]:
    """The largest count and its column, the lowest of equal ones; 0 and -1 where nothing was counted."""
    top = max(counts.values(), default=0)
    return (top, min(column for column, count in counts.items() if count == top)) if top else (0, -1)


def diagnose(case: Case) -> list[Node]:
    predicted = predict(case.probs, case.thresholds.values, case.thresholds.rule, case.hierarchy)
    if case.known is not None:
        predicted &= case.known
        case = case._replace(Y=case.Y & case.known)
    return [_diagnose_node(case, predicted, column) for column in range(len(case.hierarchy))]


def _diagnose_node(case: Case, predicted: Bools, column: int) -> Node:
    hierarchy = case.hierarchy
    threshold = [float(value) for value in case.thresholds.values]
    p = {
        row: float(value)
        for row, value in enumerate(case.probs[:, column])
        if case.known is None or case.known[row, column]
    }
    values = list(p.values())
    rows = [row for row in p if case.Y[row, column]]

    unsure = None
    concerned = [row for row in p if case.Y[row, column] or predicted[row, column]]
    if case.uncertainty is not None and concerned:
        unsure = math.fsum(float(case.uncertainty[row, column]) for row in concerned) / len(concerned)

    if case.scored is not None and not case.scored[column]:
        return Node("not_scored", unsure)
    if not rows:
        return Node("no_rows", unsure)
    if any(predicted[row, column] for row in rows):
        return Node("found", unsure)

    best = max(p[row] for row in rows)
    rank = sum(value >= best for value in values)
    by_chance = rank_chance(values, [p[row] for row in rows])
    auc = share_of_pairs([p[row] for row in rows], [p[row] for row in p if row not in rows])
    f1s = {}
    for cut in sorted({p[row] for row in rows}):
        claimed, hits = sum(value >= cut for value in values), sum(p[row] >= cut for row in rows)
        f1s[cut] = Fraction(2 * hits, claimed + len(rows))
    cut = max(f1s, key=lambda value: (f1s[value], value))

    blocked = [row for row in rows if p[row] >= threshold[column]]
    above = [hierarchy.nodes.index(name) for name in oracles.ancestors(hierarchy.edges, hierarchy.nodes[column])]
    blockers = {a: sum(float(case.probs[row, a]) < threshold[a] for row in blocked) for a in above}

    wrong = {
        s: sum(bool(predicted[row, s]) and not case.Y[row, s] for row in rows if not predicted[row, column])
        for s in siblings(hierarchy, column)
    }
    confused_rows, confused_with = most(wrong)

    member_hits, everywhere, member_chance = 0, 0, Fraction(1)
    if case.highest_member_probs is not None:
        reached = [row for row in p if float(case.highest_member_probs[row, column]) >= threshold[column]]
        member_hits = len(set(reached) & set(rows))
        if member_hits:
            everywhere = len(reached)
            member_chance = chance(len(p), len(rows), everywhere, member_hits)

    reasons = []
    if case.training[column] == 0:
        reasons.append("no_training_rows")
    given_up = math.isinf(threshold[column]) and ":" in case.thresholds.strategy
    if given_up:
        reasons.append("no_guarantee")
    if blocked:
        reasons.append("blocked_by_ancestor")
    if by_chance <= Fraction(1, 100) and not blocked and not given_up:
        reasons.append("hidden_by_threshold")
    if member_chance <= Fraction(1, 100):
        reasons.append("members_disagree")
    if confused_rows >= len(rows) / 2:
        reasons.append("confused_with_sibling")
    if not reasons:
        ones_first = [1.0 if row in rows else 0.0 for row in p]
        is_evidence = len(rows) == len(p) or rank_chance(ones_first, [1.0 for _ in rows]) <= Fraction(1, 100)
        reasons.append("not_separated" if is_evidence else "too_few_rows")
    return Node(
        state="missed",
        uncertainty=unsure,
        reasons=tuple(reasons),
        best_rank=rank,
        rank_chance=by_chance,
        auc=auc,
        cut_prob=cut,
        cut_next=max((value for value in values if value < cut), default=-1.0),
        cut_rank=sum(value >= cut for value in values),
        cut_hits=sum(p[row] >= cut for row in rows),
        blocked_rows=len(blocked),
        blocked_by=most(blockers)[1],
        confused_rows=confused_rows,
        confused_with=confused_with,
        member_rows=member_hits,
        member_all_rows=everywhere,
    )


STRATEGIES = ("", "midpoint", "precision:0.5", "guaranteed, recall:0.9")
THRESHOLDS = st.one_of(st.sampled_from((0.25, 0.5, 0.875, 1.0, np.inf)), ANY_PROBABILITY)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Any hierarchy; few rows, sometimes among many without labels, where ranks become significant."""
    hierarchy = draw(hierarchies(7))
    rows, nodes = draw(st.integers(0, 6)), len(hierarchy)
    elements = draw(st.sampled_from((EIGHTHS, ANY_PROBABILITY)))
    dtype = draw(st.sampled_from((np.float32, np.float64)))
    rule: Rule | None = draw(st.sampled_from(("add_ancestors", "drop_orphans", None)))

    def cells() -> Floats:
        return draw(hnp.arrays(np.float64, (rows, nodes), elements=elements)).astype(dtype)

    idle = draw(st.sampled_from((0, 0, 150)))

    def among_idle(values: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([values, np.zeros((idle, nodes), dtype=values.dtype)])

    return Case(
        Y=among_idle(draw(st.one_of(closed_labels(hierarchy, rows), label_matrices(hierarchy, rows)))),
        probs=among_idle(cells()),
        hierarchy=hierarchy,
        thresholds=Thresholds(
            draw(hnp.arrays(np.float64, nodes, elements=THRESHOLDS)), rule, draw(st.sampled_from(STRATEGIES))
        ),
        training=draw(hnp.arrays(np.int64, nodes, elements=st.integers(0, 3))),
        scored=draw(st.one_of(st.none(), hnp.arrays(np.bool_, nodes))),
        highest_member_probs=among_idle(cells()) if draw(st.booleans()) else None,
        uncertainty=among_idle(cells()) if draw(st.booleans()) else None,
        known=draw(st.one_of(st.none(), hnp.arrays(np.bool_, (rows + idle, nodes), fill=st.booleans()))),
    )


def crowded_case(seed: int) -> Case:
    """A DAG with many shortcuts, many labels in a row, and probabilities that often equal their thresholds.

    Hypothesis prefers rows without labels, in which nothing is missed.
    """
    rng = np.random.default_rng(seed)
    nodes, rows = int(rng.integers(3, 9)), int(rng.integers(1, 8))
    names = [f"n{number}" for number in rng.permutation(nodes)]
    edges = [
        (names[parent], names[child])
        for child in range(1, nodes)
        for parent in rng.choice(child, size=rng.integers(0, min(child, 3) + 1), replace=False)
    ]
    hierarchy = Hierarchy.from_edges(edges, nodes=names)
    probs = rng.integers(0, 5, (rows, nodes)) / 4
    rule: Rule = "drop_orphans" if rng.random() < 0.5 else "add_ancestors"
    values = rng.choice([0.25, 0.5, 0.75, 1.0, np.inf], nodes, p=[0.3, 0.2, 0.2, 0.1, 0.2])
    return Case(
        Y=oracles.close(rng.random((rows, nodes)) < 0.5, hierarchy),
        probs=probs,
        hierarchy=hierarchy,
        thresholds=Thresholds(values, rule),
        training=rng.integers(0, 4, nodes),
        scored=None,
        highest_member_probs=np.maximum(probs, rng.integers(0, 5, (rows, nodes)) / 4),
        uncertainty=rng.random((rows, nodes)),
        known=rng.random((rows, nodes)) < 0.8 if seed % 2 else None,
    )


def disagreeing_case(seed: int) -> Case:
    """Many rows, of which single members recognise some nodes and predict others at random; all nodes are missed.

    Only among many rows can hits of a member be significant.
    """
    rng = np.random.default_rng(seed)
    nodes, rows = 6, int(rng.integers(60, 300))
    hierarchy = Hierarchy.from_edges([], nodes=[f"n{number}" for number in range(nodes)])
    Y = rng.random((rows, nodes)) < rng.choice([0.005, 0.02, 0.1], nodes)
    at_random, recognised = rng.choice([0.0, 0.01, 0.05, 0.3], nodes), rng.choice([0.0, 0.2, 0.6, 1.0], nodes)
    reached = rng.random((rows, nodes)) < np.where(Y, recognised, at_random)
    probs = rng.integers(0, 4, (rows, nodes)) / 8
    return Case(
        Y=Y,
        probs=probs,
        hierarchy=hierarchy,
        thresholds=Thresholds(np.full(nodes, 0.5)),
        training=rng.integers(0, 4, nodes),
        scored=None,
        highest_member_probs=np.where(reached, 0.5, probs),
        uncertainty=None,
        known=rng.random((rows, nodes)) < 0.9 if seed % 2 else None,
    )
