"""`Evaluation`: how well a model finds the nodes of labelled rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rarenode._io.text import counted
from rarenode.config import Settings
from rarenode.data.dataset import Dataset
from rarenode.metrics import (
    CafaScores,
    GroupedSummary,
    HierarchicalScores,
    Summary,
    cafa_scores,
    hierarchical_scores_by_aspect,
    macro_average_precision,
    summarize_groups,
    summary,
)
from rarenode.run.unseen import Unseen
from rarenode.thresholds import depends_on_rows
from rarenode.training import TrainedModel

TRAINED_ON = "the model was trained on these rows; scores on new rows will be lower"
Use = Literal["", "training", "validation"]
"""What a model is known to have used rows for; empty: for nothing."""


def note_on_use(use: Use, settings: Settings) -> str:
    """What to know about rows that a model has used; empty if their scores are as good as those of any rows.

    >>> note_on_use("validation", Settings(patience=None))
    'thresholds used these rows; scores on new rows may be a little lower'
    """
    if use == "training":
        return TRAINED_ON
    by = []
    if use == "validation" and settings.patience is not None and "mlp" in settings.models:
        by.append("early stopping")
    if use == "validation" and settings.needs_held_out_rows:
        by.append("thresholds")
    return f"{' and '.join(by)} used these rows; scores on new rows may be a little lower" if by else ""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How well a model finds the nodes of labelled rows."""

    scores: GroupedSummary
    """Over all scored nodes, and by rarity and depth."""
    data: str
    """Where the rows come from."""
    rows: int
    left_out: int
    """Further rows, which have no labels."""
    nodes_with_rows: int
    """Scored nodes that some of the rows have; the scores of others are 0."""
    over_nodes_with_rows: Summary
    """The scores over these nodes alone."""
    macro_ap: float
    """The mean of the AP of each of these nodes; the AP of the scores is over all cells (row, node) together."""
    thresholds: str
    """How the thresholds were chosen, in words."""
    trained_on: bool
    """Whether the model is known to have been trained on these rows."""
    note: str
    """What to know about these rows: that the model was trained on them, or that early stopping or thresholds used
    them; empty if neither is known."""
    hierarchical: dict[str, HierarchicalScores]
    """By aspect, hierarchical precision, recall and F1 of the decisions; without namespaces the only aspect is all."""
    cafa: dict[str, CafaScores]
    """By aspect, F-max and S-min of the probabilities. S-min is None if an older rarenode trained the model."""

    def __repr__(self) -> str:
        s = self.scores.all
        return (
            f"<Evaluation on {self.data or 'data'}: {counted(self.rows, 'row')}, F1 {s.f1:.3f}, "
            f"precision {s.precision:.3f}, recall {s.recall:.3f}, AP {s.ap:.3f}, "
            f"{s.nodes_found:,} of {counted(s.nodes, 'node')} found, thresholds {self.thresholds}"
            f"{f'; {self.note}' if self.note else ''}>"
        )


def evaluate_model(
    model: TrainedModel, rows: Dataset, thresholds: str | None, *, use: Use, left_out: int
) -> Evaluation:
    """Compare the decisions of a model with the labels of rows; the arguments are those of `Run.evaluate`."""
    return _evaluate(model, rows, model.predict_proba(rows.X), thresholds, use=use, left_out=left_out)


def evaluate_unseen(model: TrainedModel, unseen: Unseen, thresholds: str | None) -> Evaluation:
    """The same of rows that the model, or each model of a fold, was not trained on."""
    rows = replace(unseen.rows, name=unseen.about)
    probs = model.predict_proba(rows.X) if unseen.probs is None else unseen.probs
    return _evaluate(model, rows, probs, thresholds, left_out=unseen.left_out, fitted_here=unseen.fitted_here)


def _evaluate(
    model: TrainedModel,
    rows: Dataset,
    probs: NDArray[np.float32],
    thresholds: str | None,
    *,
    left_out: int,
    use: Use = "",
    fitted_here: bool = False,
) -> Evaluation:
    chosen = model.thresholds_for(probs, thresholds)
    decided = chosen.decide(probs, model.hierarchy)
    with_rows = rows.Y.any(axis=0) & model.scored
    over = (summary(rows.Y, values, scored=with_rows, known=rows.known) for values in (decided, probs))
    of_decisions, of_probs = over  # decisions of 0 and 1 at a threshold of 0.5 are themselves
    return Evaluation(
        scores=summarize_groups(
            rows.Y, probs, decided, model.hierarchy, model.training_positives, model.scored, rows.known
        ),
        data=rows.name,
        rows=len(rows),
        left_out=left_out,
        nodes_with_rows=int(np.count_nonzero(with_rows)),
        over_nodes_with_rows=replace(of_decisions, ap=of_probs.ap),
        macro_ap=macro_average_precision(
            rows.Y[:, model.scored],
            probs[:, model.scored],
            None if rows.known is None else rows.known[:, model.scored],
        ),
        thresholds=chosen.in_words(fitted_here=fitted_here or depends_on_rows(thresholds)),
        trained_on=use == "training",
        note=note_on_use(use, model.settings),
        hierarchical=hierarchical_scores_by_aspect(
            rows.Y, decided, model.hierarchy, scored=model.scored, known=rows.known
        ),
        cafa=cafa_scores(
            rows.Y, probs, model.hierarchy, model.information_accretion, scored=model.scored, known=rows.known
        ),
    )
