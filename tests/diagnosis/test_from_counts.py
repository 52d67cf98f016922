"""A diagnosis from counts alone, against the one that knows the rows."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from rarenode.diagnosis import diagnose, diagnose_counts
from rarenode.metrics import node_scores
from tests.diagnosis.oracles import Case, cases


@given(cases())
def test_states_and_scores_are_those_of_the_rows_and_one_reason_is_known(case: Case) -> None:
    scored = np.ones(len(case.hierarchy), dtype=np.bool_) if case.scored is None else case.scored
    known = diagnose(case.Y, case.probs, case.hierarchy, case.thresholds, case.training, scored=scored)
    scores = node_scores(case.Y, case.thresholds.decide(case.probs, case.hierarchy))
    counted = diagnose_counts(case.hierarchy, scores, case.thresholds, case.training, scored)
    assert counted.state.tolist() == known.state.tolist()
    assert counted.scores is scores
    assert counted.hierarchy is case.hierarchy
    assert counted.rule == case.thresholds.rule
    for name in ("scored", "training_rows", "thresholds"):
        assert getattr(counted, name).tolist() == getattr(known, name).tolist()
    only = [some[:1] if some[:1] == ("no_training_rows",) else () for some in known.reasons]
    assert list(counted.reasons) == only
    for column in range(len(case.hierarchy)):
        assert counted.explain(column) == (known.explain(column) if only[column] else "")


@given(cases())
def test_what_cannot_be_known_is_empty(case: Case) -> None:
    scores = node_scores(case.Y, case.thresholds.decide(case.probs, case.hierarchy))
    everywhere = np.ones(len(case.hierarchy), dtype=np.bool_)
    counted = diagnose_counts(case.hierarchy, scores, case.thresholds, case.training, everywhere)
    for name in ("uncertainty", "rank_chance", "auc", "cut_prob", "cut_next"):
        assert np.isnan(getattr(counted, name)).all()
    for name in (
        *("best_rank", "cut_rank", "cut_hits", "blocked_rows", "confused_rows"),
        *("member_rows", "member_all_rows"),
    ):
        assert not getattr(counted, name).any()
    for name in ("blocked_by", "confused_with"):
        assert set(getattr(counted, name).tolist()) <= {-1}
    frame = counted.to_frame()
    assert frame["node"].to_list() == list(case.hierarchy.nodes)
    for name in ("uncertainty", "auc", "cut", "blocked_by", "confused_with"):
        assert frame[name].null_count() == len(case.hierarchy)
