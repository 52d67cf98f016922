from __future__ import annotations

from typing import Any

import pytest
from rarenode.training.presets import PRESETS, preset

from rarenode.errors import ArgumentError
from rarenode.training import Settings


def test_best_decides_on_rows_that_it_was_not_trained_on() -> None:
    best = preset("best")
    assert (best.decision, best.folds, best.holdout, best.needs_unseen_rows) == ("expected_f1", 3, None, True)
    assert best.trees > 0
    assert best.early_stopping is not None
    assert best.weighting == "none"


def test_paper_is_the_default() -> None:
    assert preset("paper") == Settings()
    assert preset("paper", members=10) == Settings(members=10)


@pytest.mark.parametrize("name", PRESETS)
def test_changes_come_before_the_preset(name: str) -> None:
    changes: dict[str, Any] = {"trees": 7, "hidden": 3, "decision": "prior", "folds": 2, "learning_rate": 0.5}
    changed, unchanged = preset(name, **changes), preset(name)
    for setting, value in changed.to_dict().items():
        assert value == changes.get(setting, getattr(unchanged, setting))


def test_holdout_takes_the_place_of_the_presets_folds() -> None:
    assert preset("best", holdout=0.3) == Settings(**{**PRESETS["best"], "folds": None, "holdout": 0.3})
    assert preset("best", holdout=None).folds == 3
    with pytest.raises(ArgumentError, match="holdout and folds"):
        preset("best", holdout=0.3, folds=2)


def test_zero_takes_away_what_the_preset_sets() -> None:
    plain = preset("best", folds=0, early_stopping=0, trees=0, decision="fixed")
    assert (plain.folds, plain.early_stopping, plain.trees, plain.needs_unseen_rows) == (None, None, 0, False)
    with pytest.raises(ArgumentError, match="expected_f1 is found on rows that are not trained on"):
        preset("best", folds=0)


def test_what_is_unknown_is_named() -> None:
    with pytest.raises(ArgumentError, match="unknown preset 'worst'; choose one of best, paper"):
        preset("worst")
    with pytest.raises(ArgumentError, match="unknown setting 'tree'; did you mean 'trees'"):
        preset("best", tree=3)
    for odd in (None, 3, ["best"]):
        with pytest.raises(ArgumentError, match="unknown preset"):
            preset(odd)  # type: ignore[arg-type]


def test_presets_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        PRESETS["best"] = {}  # type: ignore[index]
    with pytest.raises(TypeError):
        PRESETS["best"]["trees"] = 1  # type: ignore[index]
