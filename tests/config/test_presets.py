from __future__ import annotations

from typing import Any

import pytest

from rarenode.config import PRESETS, Settings
from rarenode.errors import ArgumentError


def test_best_is_the_default() -> None:
    best = Settings.preset("best")
    assert best == Settings()
    assert (best.thresholds, best.cv, best.holdout, best.needs_held_out_rows) == ("midpoint", 3, None, True)
    assert (best.model, best.blend, best.patience, best.weighting) == ("mlp+forest+neighbours", "learned", 5, "none")


def test_paper_has_the_values_behind_the_papers_tables() -> None:
    paper = Settings.preset("paper")
    assert (paper.hidden_size, paper.n_layers, paper.dropout, paper.batch_size) == (500, 3, 0.7, 4)
    assert (paper.weighting, paper.w0, paper.reduction) == ("as_published", 0.25, "auto")
    assert (paper.learning_rate, paper.weight_decay, paper.epochs, paper.patience) == (1e-4, 1e-5, 100, None)
    assert (paper.model, paper.thresholds, paper.rule) == ("mlp", "fixed", "add_ancestors")
    assert (paper.holdout, paper.cv, paper.needs_held_out_rows) == (None, None, False)


@pytest.mark.parametrize("name", PRESETS)
def test_changes_override_the_preset(name: str) -> None:
    changes: dict[str, Any] = {"n_trees": 7, "hidden_size": 3, "thresholds": "prior", "cv": 2, "learning_rate": 0.5}
    changed, unchanged = Settings.preset(name, **changes), Settings.preset(name)
    for setting, value in changed.to_dict().items():
        assert value == changes.get(setting, getattr(unchanged, setting))


def test_holdout_replaces_the_folds_of_the_preset() -> None:
    assert Settings.preset("best", holdout=0.3) == Settings(cv=None, holdout=0.3)
    assert Settings(holdout=0.3).cv is None
    assert Settings.preset("best", holdout=None).cv == 3
    with pytest.raises(ArgumentError, match="holdout and cv"):
        Settings.preset("best", holdout=0.3, cv=2)


def test_zero_removes_what_the_preset_sets() -> None:
    plain = Settings.preset("best", cv=0, patience=0, model="mlp", thresholds="fixed")
    assert (plain.cv, plain.patience, plain.models, plain.needs_held_out_rows) == (None, None, ("mlp",), False)
    with pytest.raises(ArgumentError, match="midpoint"):
        Settings.preset("best", cv=0)


def test_unknown_names() -> None:
    with pytest.raises(ArgumentError, match="unknown preset 'worst'; choose one of best, paper"):
        Settings.preset("worst")
    with pytest.raises(ArgumentError, match="unknown setting 'n_tree'; did you mean 'n_trees'"):
        Settings.preset("best", n_tree=3)
    for odd in (None, 3):
        with pytest.raises(ArgumentError, match="unknown preset"):
            Settings.preset(odd)  # type: ignore[arg-type]


def test_presets_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        PRESETS["best"] = {}  # type: ignore[index]
    with pytest.raises(TypeError):
        PRESETS["best"]["n_trees"] = 1  # type: ignore[index]
