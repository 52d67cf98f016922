from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from rarenode.data.catalogue import find_entry
from rarenode.errors import ArgumentError, FileFormatError, MissingFileError
from rarenode.training import Settings


def test_defaults_are_the_papers() -> None:
    settings = Settings()
    assert (settings.hidden, settings.layers, settings.dropout, settings.batch_size) == (500, 3, 0.7, 4)
    assert (settings.weighting, settings.w0, settings.reduction) == ("as_published", 0.25, "auto")
    assert settings.early_stopping is None
    assert (settings.trees, settings.decision, settings.rule) == (0, "fixed", "add_ancestors")
    assert (settings.holdout, settings.folds, settings.needs_unseen_rows) == (None, None, False)


@pytest.mark.parametrize("zero", [0, np.int64(0), np.uint8(0)])
def test_zero_is_none_where_none_cannot_be_said(zero: Any) -> None:
    settings = Settings(early_stopping=zero, folds=zero)
    assert (settings.early_stopping, settings.folds) == (None, None)
    assert settings.fingerprint == Settings().fingerprint


@pytest.mark.parametrize(
    ("given", "name"), [("fixed:0.50", "fixed"), ("fixed:.3", "fixed:0.3"), ("expected_f1.0", "expected_f1")]
)
def test_decisions_that_are_one_have_one_name(given: str, name: str) -> None:
    ours, theirs = (Settings(decision=text, folds=2) for text in (given, name))
    assert ours.decision == name
    assert ours == theirs
    assert ours.fingerprint == theirs.fingerprint


@pytest.mark.parametrize("decision", ["expected_f1", "prior:1.5", "tuned", "global:micro_f1", "precision_floor:0.2"])
def test_all_but_fixed_thresholds_need_rows_that_are_not_trained_on(decision: str) -> None:
    assert Settings(decision=decision, holdout=0.2).needs_unseen_rows
    assert not Settings(decision="fixed:0.1", holdout=0.2).needs_unseen_rows


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"hidden": 0}, "hidden: .* got 0"),
        ({"hidden": True}, "hidden"),
        ({"hidden": "500"}, "hidden"),
        ({"dropout": 1.0}, "dropout"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"learning_rate": float("nan")}, "learning_rate: .*finite"),
        ({"weighting": "as_printed"}, "weighting: .*as_published"),
        ({"focus": "entropy"}, "focus: choose None, focal, bbma.* got 'entropy'"),
        ({"schedule_towards": 2}, "schedule_towards"),
        ({"seed": -1}, "seed"),
        ({"early_stopping": -1}, "early_stopping"),
        ({"early_stopping": False}, "early_stopping"),
        ({"early_stopping": 0.0}, "early_stopping"),
        ({"trees": -1}, "trees"),
        ({"trees": 2.5}, "trees"),
        ({"rule": "add"}, "rule: .*'add_ancestors' or 'drop_orphans'"),
        ({"decision": "guess"}, "decision: unknown threshold strategy 'guess'; .*expected_f1"),
        ({"decision": "fixed:7"}, "decision: threshold must be a number of at least 0 and at most 1"),
        ({"decision": 0.3}, "decision"),
        ({"holdout": 0}, "holdout: .* greater than 0"),
        ({"holdout": 1.0}, "holdout: .* less than 1"),
        ({"folds": 1}, "folds: .* greater than or equal to 2; got 1"),
        ({"folds": True}, "folds"),
        ({"folds": -3}, "folds"),
        ({"holdout": 0.2, "folds": 3}, "holdout and folds are two ways to the same rows"),
        ({"decision": "prior"}, "decision prior is found on rows that are not trained on; set holdout or folds"),
        ({"decision": "expected_f1", "folds": 0}, "decision expected_f1 is found on rows that are not trained on"),
        ({"checkpoint_minutes": -1.0}, "checkpoint_minutes"),
        ({"epoch": 5}, "unknown setting 'epoch'; did you mean 'epochs'"),
        ({"focus": "x" * 1000}, r"\.\.\.$"),
    ],
)
def test_what_means_nothing_is_refused_in_a_sentence(values: dict[str, Any], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        Settings(**values)


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError):
        Settings().hidden = 3


def test_every_setting_is_described() -> None:
    assert all(field.description for field in Settings.model_fields.values())


def test_numpy_numbers_are_numbers() -> None:
    settings = Settings(hidden=np.int64(7), learning_rate=np.float32(0.5), seed=np.uint8(3))  # type: ignore[arg-type]
    assert json.dumps([settings.hidden, settings.learning_rate, settings.seed]) == "[7, 0.5, 3]"


@pytest.mark.parametrize("one", [1, 1.0, True])
def test_equal_settings_have_equal_fingerprints(one: Any) -> None:
    assert Settings(schedule_towards=one).fingerprint == Settings().fingerprint
    assert Settings(w0=one).fingerprint == Settings(w0=1.0).fingerprint if one is not True else True


def test_the_fingerprint_is_of_what_decides() -> None:
    base = Settings()
    assert Settings(checkpoint_epochs=3, checkpoint_minutes=None).fingerprint == base.fingerprint
    for changes in ({"seed": 1}, {"trees": 1}, {"decision": "fixed:0.3"}, {"rule": "drop_orphans"}, {"folds": 2}):
        assert Settings(**changes).fingerprint != base.fingerprint


def test_the_papers_hyperparameters() -> None:
    settings = Settings.from_paper(find_entry("diatoms").hyperparameters, members=10, epochs=2)
    assert (settings.hidden, settings.learning_rate, settings.epochs, settings.members) == (2000, 1e-5, 2, 10)


def test_there_and_back() -> None:
    settings = Settings(members=3, focus="gmu", schedule_towards="w0", early_stopping=4, checkpoint_minutes=None)
    assert Settings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_toml(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    for settings in (
        Settings(),
        Settings(focus="focal", schedule_towards="w0", learning_rate=1e-30, early_stopping=2),
        Settings(trees=5, decision="expected_f2", rule="drop_orphans", folds=3),
        Settings(decision="prior:1.5", holdout=0.25),
    ):
        path.write_text(settings.to_toml(), encoding="utf-8")
        assert Settings.from_toml(path) == settings


def test_toml_can_say_none(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("early_stopping = 0\nfolds = 0\nfocus = 'none'\n", encoding="utf-8")
    assert Settings.from_toml(path) == Settings()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("members = ", "not TOML"),
        ("decision = 'tuned'", "settings.toml.*set holdout or folds"),
        ("members = 0", "members"),
        ("[a]\nb = 1", "unknown setting 'a'"),
        ("\xff", "not TOML"),
    ],
)
def test_toml_that_is_wrong(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(FileFormatError, match=says):
        Settings.from_toml(path)


def test_toml_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="nowhere"):
        Settings.from_toml(tmp_path / "nowhere")
