"""From a model and labelled rows to a `RunReport`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarenode.diagnosis import NodeDiagnosis, diagnose
from rarenode.metrics import summary
from rarenode.metrics.average_precision import average_precision, precision_at_recalls
from rarenode.metrics.bootstrap import deviations_over_rows
from rarenode.report.groups import rarity_bands
from rarenode.report.run_report import BandCurve, RunReport
from rarenode.report.unsure_rows import find_unsure_rows
from rarenode.thresholds.calibration_error import BINS, Reliability, reliability
from rarenode.thresholds.thresholds import Thresholds
from rarenode.training import TrainedModel

DRAWS = 200
Bools = NDArray[np.bool_]


def report_on_model(
    model: TrainedModel,
    X: Any,
    Y: Bools,
    *,
    name: str,
    rows: str,
    decision: str | None = None,
    prepared: bool = False,
) -> RunReport:
    """What a model does on labelled rows that it has not seen.

    Args:
        model: the model.
        X: features (rows, features).
        Y: labels (rows, nodes).
        name: what the run is called.
        rows: which rows these are, in a few words.
        decision: ``fixed:0.3``, ``expected_f1``, ... instead of the model's own; see `TrainedModel.thresholds_for`.
        prepared: whether ``X`` is what the network is fed, even if the model could prepare raw features.
    """
    asked = replace(model, preparation=None) if prepared else model
    probs = asked.predict_proba(X)
    thresholds = model.decides_with if decision is None else model.thresholds_for(probs, decision)
    return report_on_probabilities(
        model,
        Y,
        probs,
        name=name,
        rows=rows,
        thresholds=thresholds,
        highest_member_probs=asked.highest_member_probs(X),
        uncertainty=asked.uncertainty(X),
        decided_here=decision is not None,
    )


def report_on_probabilities(
    model: TrainedModel,
    Y: Bools,
    probs: NDArray[np.float32],
    *,
    name: str,
    rows: str,
    thresholds: Thresholds,
    training_rows: NDArray[np.int64] | None = None,
    row_numbers: NDArray[np.int64] | None = None,
    highest_member_probs: NDArray[np.float32] | None = None,
    uncertainty: NDArray[np.float32] | None = None,
    decided_here: bool = False,
) -> RunReport:
    """The same from probabilities, which may be those of models that were trained without the rows.

    Args:
        model: what the card is about.
        Y: labels (rows, nodes).
        probs: probabilities (rows, nodes).
        name: what the run is called.
        rows: which rows these are, in a few words.
        thresholds: what decides.
        training_rows: how many rows with each node the models had that gave the probabilities; by default those of
            ``model``.
        row_numbers: what each row is called; by default its place, counted from 0.
        highest_member_probs: see `TrainedModel.highest_member_probs`; None where it is not known.
        uncertainty: see `TrainedModel.uncertainty`; None where it is not known.
        decided_here: whether the thresholds were found on these very rows.
    """
    decided = thresholds.decide(probs, model.hierarchy)
    scored, rule = model.scored, thresholds.rule.replace("_", " ")
    nodes = diagnose(
        Y,
        probs,
        model.hierarchy,
        thresholds,
        model.training_positives if training_rows is None else training_rows,
        scored=scored,
        highest_member_probs=highest_member_probs,
        uncertainty=uncertainty,
    )
    y, p, d = Y[:, scored], probs[:, scored], decided[:, scored]
    return RunReport(
        name=name,
        about=f"{rows}: {len(Y):,} rows; nodes decided by {thresholds.in_words(decided_here)}; {rule}",
        # 0 and 1 are probabilities too: a summary of them is that of the decisions.
        summary=replace(summary(y, d), ap=average_precision(y, p)),
        deviations=deviations_over_rows(y, p, d, draws=DRAWS),
        deviations_of=f"{DRAWS} draws of these rows, with replacement",
        nodes=nodes,
        card=model.card(),
        curves=_curves(Y, probs, nodes),
        reliability=_reliability(Y, probs, nodes),
        history=model.history,
        unsure_rows=find_unsure_rows(Y, probs, decided, scored, row_numbers),
    )


def _curves(Y: Bools, probs: NDArray[Any], nodes: NodeDiagnosis) -> dict[str, BandCurve]:
    curves = {}
    for band, mask in rarity_bands(nodes):
        best = precision_at_recalls(Y[:, mask], probs[:, mask])
        hits, claims, positives = (
            int(values[mask].sum())
            for values in (nodes.scores.true_positives, nodes.scores.predicted, nodes.scores.support)
        )
        point = (hits / positives, hits / claims) if positives and claims else None
        curves[band] = BandCurve(() if best is None else tuple(best.tolist()), point)
    return curves


def _reliability(Y: Bools, probs: NDArray[Any], nodes: NodeDiagnosis) -> dict[str, Reliability]:
    masks = {"all": nodes.scored} | dict(rarity_bands(nodes))
    return {band: reliability(probs[:, mask], Y[:, mask], BINS) for band, mask in masks.items() if len(Y)}
