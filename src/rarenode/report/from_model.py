"""From a model and labelled rows to a `RunReport`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from rarenode._io.text import counted
from rarenode.diagnosis import NodeDiagnosis, diagnose
from rarenode.hierarchy.labels import dense_rows
from rarenode.metrics import cafa_scores, hierarchical_scores_by_aspect, node_scores, summary
from rarenode.metrics.average_precision import average_precision, precision_at_recalls
from rarenode.metrics.bootstrap import deviations_over_rows
from rarenode.models import Output
from rarenode.report.pictures import Pictures, collect_pictures
from rarenode.report.run_report import BandCurve, GuaranteedSets, RunReport, UnsureNode, UnsureRow, rarity_bands
from rarenode.thresholds import GuaranteedRecall, depends_on_rows
from rarenode.thresholds.calibration_error import BINS, Reliability, reliability
from rarenode.thresholds.thresholds import Thresholds
from rarenode.training import TrainedModel

DRAWS = 200
MOST_UNSURE_ROWS, MOST_UNSURE_NODES = 20, 4
ROWS_AT_A_TIME = 256
Bools = NDArray[np.bool_]


def report_on_model(
    model: TrainedModel,
    X: Any,
    Y: Bools,
    *,
    name: str,
    rows: str,
    thresholds: str | None = None,
    known: Bools | None = None,
    ids: Sequence[str] | None = None,
    pictures: Pictures | None = None,
) -> RunReport:
    """Evaluate a model on labelled rows that it was not trained on.

    Args:
        model: the model.
        X: features (rows, features).
        Y: labels (rows, nodes).
        name: the name of the run.
        rows: which rows these are, in a few words.
        thresholds: a strategy that needs no labels, such as ``fixed:0.3`` or ``expected_f1``, or ``guaranteed``,
            instead of the model's thresholds; see `TrainedModel.thresholds_for`.
        known: (rows, nodes), where labels are known; None: everywhere. Other cells count nowhere.
        ids: the names of the rows.
        pictures: of the rows, if they are pictures: that of the row ``Y[i]`` is number i.

    Raises:
        ArgumentError: there are not as many pictures as rows.
    """
    output = model.compute(X, highest=True, uncertainty="gmu")
    return report_on_predictions(
        model,
        Y,
        output,
        name=name,
        rows=rows,
        thresholds=model.thresholds_for(output.probs, thresholds),
        fitted_here=depends_on_rows(thresholds),
        known=known,
        ids=ids,
        pictures=pictures,
    )


def report_on_predictions(
    model: TrainedModel,
    Y: Bools,
    output: Output,
    *,
    name: str,
    rows: str,
    thresholds: Thresholds,
    training_rows: NDArray[np.int64] | None = None,
    row_numbers: NDArray[np.int64] | None = None,
    fitted_here: bool = False,
    known: Bools | None = None,
    ids: Sequence[str] | None = None,
    pictures: Pictures | None = None,
) -> RunReport:
    """Evaluate predictions, which may be those of other models, such as out-of-fold predictions.

    Args:
        model: the model of the card.
        Y: labels (rows, nodes), dense or sparse.
        output: the probabilities of these rows and, where known, the highest probability of any member and the
            uncertainty.
        name: the name of the run.
        rows: which rows these are, in a few words.
        thresholds: the thresholds of the decisions.
        training_rows: (nodes,), the number of training rows of each node for the models that predicted; by default
            those of ``model``.
        row_numbers: the number of each row; by default its position, from 0.
        fitted_here: whether the thresholds were fitted to these very rows.
        known: (rows, nodes), where labels are known; None: everywhere. Other cells count nowhere.
        ids: the names of the rows.
        pictures: of the rows, if they are pictures: that of the row ``Y[i]`` is number i, whatever its number in
            ``row_numbers``. For held-out rows these are pictures of the held-out rows alone.

    Raises:
        ArgumentError: there are not as many pictures as rows.
    """
    probs, Y = output.probs, dense_rows(Y)
    decided = thresholds.decide(probs, model.hierarchy)
    scored, rule = model.scored, (thresholds.rule or "each node by its own threshold").replace("_", " ")
    nodes = diagnose(
        Y,
        probs,
        model.hierarchy,
        thresholds,
        model.training_positives if training_rows is None else training_rows,
        scored=scored,
        highest_member_probs=output.highest,
        uncertainty=output.uncertainty,
        known=known,
    )
    unsure_rows = find_unsure_rows(Y, probs, decided, scored, row_numbers, known=known, ids=ids)
    y, p, d = Y[:, scored], probs[:, scored], decided[:, scored]
    k = _columns(known, scored)
    return RunReport(
        name=name,
        about=f"{rows}: {counted(len(Y), 'row')}; thresholds: {thresholds.in_words(fitted_here)}; {rule}",
        # The summary of the decisions, as 0 and 1; only AP is that of the probabilities.
        summary=replace(summary(y, d, known=k), ap=average_precision(y, p, k)),
        deviations=deviations_over_rows(y, p, d, draws=DRAWS, known=k),
        deviations_of=f"{DRAWS} draws of these rows, with replacement",
        nodes=nodes,
        card=model.card(),
        curves=_curves(Y, probs, nodes, known),
        reliability=_reliability(Y, probs, nodes, known),
        history=model.history,
        unsure_rows=unsure_rows,
        hierarchical=hierarchical_scores_by_aspect(Y, decided, model.hierarchy, scored=scored, known=known),
        cafa=cafa_scores(Y, probs, model.hierarchy, model.information_accretion, scored=scored, known=known),
        pictures=None
        if pictures is None
        else collect_pictures(
            pictures,
            Y,
            probs,
            decided,
            nodes,
            unsure=_positions(unsure_rows, row_numbers),
            row_numbers=row_numbers,
            known=known,
            ids=ids,
        ),
        guaranteed=None if model.guaranteed is None else _guaranteed(model, model.guaranteed, Y, probs, known),
    )


def _guaranteed(
    model: TrainedModel, promise: GuaranteedRecall, Y: Bools, probs: NDArray[Any], known: Bools | None
) -> GuaranteedSets:
    sets = promise.thresholds.decide(probs, model.hierarchy)
    scores = node_scores(Y, sets, known)
    has = promise.is_guaranteed
    return GuaranteedSets(
        promise,
        size=np.where(has, np.count_nonzero(sets, axis=0) / max(1, len(sets)), np.nan),
        recall=np.where(has & (scores.support > 0), scores.recall, np.nan),
    )


def _positions(rows: Sequence[UnsureRow], row_numbers: NDArray[np.int64] | None) -> list[int]:
    if row_numbers is None:
        return [row.row for row in rows]
    positions = {number: position for position, number in enumerate(row_numbers.tolist())}
    return [positions[row.row] for row in rows]


def _columns(known: Bools | None, nodes: Bools) -> Bools | None:
    return None if known is None else known[:, nodes]


def _curves(Y: Bools, probs: NDArray[Any], nodes: NodeDiagnosis, known: Bools | None) -> dict[str, BandCurve]:
    curves = {}
    for band, mask in rarity_bands(nodes):
        best = precision_at_recalls(Y[:, mask], probs[:, mask], _columns(known, mask))
        hits, claims, positives = (
            int(values[mask].sum())
            for values in (nodes.scores.true_positives, nodes.scores.predicted, nodes.scores.support)
        )
        point = (hits / positives, hits / claims) if positives and claims else None
        curves[band] = BandCurve(() if best is None else tuple(best.tolist()), point)
    return curves


def _reliability(Y: Bools, probs: NDArray[Any], nodes: NodeDiagnosis, known: Bools | None) -> dict[str, Reliability]:
    masks = {"all": nodes.scored} | dict(rarity_bands(nodes))
    return {
        band: reliability(probs[:, mask], Y[:, mask], BINS, known=_columns(known, mask))
        for band, mask in masks.items()
        if len(Y)
    }


def find_unsure_rows(
    Y: Bools,
    probs: NDArray[Any],
    decided: Bools,
    scored: Bools,
    row_numbers: NDArray[np.int64] | None = None,
    most: int = MOST_UNSURE_ROWS,
    known: Bools | None = None,
    ids: Sequence[str] | None = None,
) -> tuple[UnsureRow, ...]:
    """The rows with the largest entropy, which are worth a second look or another annotation.

    The entropy of a node with the probability p is -p log2 p - (1 - p) log2(1 - p), in bits: 1 at one half, 0 at 0 and
    1. That of a row is the sum over its scored nodes whose label is known. Thresholds do not matter. Of equal rows the
    earlier comes first.
    """
    counted = np.broadcast_to(scored, Y.shape) if known is None else known & scored
    bits = np.empty(len(probs))
    for first in range(0, len(probs), ROWS_AT_A_TIME):
        some = slice(first, first + ROWS_AT_A_TIME)
        bits[some] = _entropy(probs[some], counted[some]).sum(axis=1)
    chosen = np.argsort(-bits, kind="stable")[:most]
    return tuple(
        UnsureRow(
            row=row if row_numbers is None else int(row_numbers[row]),
            bits=float(bits[row]),
            wrong=int(np.count_nonzero((Y[row] != decided[row]) & counted[row])),
            nodes=_unsure_nodes(Y[row], probs[row], decided[row], counted[row]),
            id=None if ids is None else ids[row],
        )
        for row in chosen.tolist()
    )


def _unsure_nodes(y: Bools, p: NDArray[Any], decided: Bools, counted: Bools) -> tuple[UnsureNode, ...]:
    bits = _entropy(p, counted)
    columns = np.argsort(-bits, kind="stable")[:MOST_UNSURE_NODES]
    return tuple(
        UnsureNode(column, float(p[column]), bool(decided[column]), bool(y[column]))
        for column in columns.tolist()
        if bits[column] > 0
    )


def _entropy(probs: NDArray[Any], counted: Bools) -> NDArray[np.float64]:
    """The entropy of each node in bits; 0 for nodes that do not count."""
    p = probs.astype(np.float64)
    return np.asarray(np.where(counted, (entr(p) + entr(1 - p)) / np.log(2), 0.0))
