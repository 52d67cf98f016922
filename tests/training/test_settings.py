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
        ({"early_stopping": 0}, "early_stopping"),
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
    assert Settings(seed=1).fingerprint != base.fingerprint


def test_the_papers_hyperparameters() -> None:
    settings = Settings.from_paper(find_entry("diatoms").hyperparameters, members=10, epochs=2)
    assert (settings.hidden, settings.learning_rate, settings.epochs, settings.members) == (2000, 1e-5, 2, 10)


def test_there_and_back() -> None:
    settings = Settings(members=3, focus="gmu", schedule_towards="w0", early_stopping=4, checkpoint_minutes=None)
    assert Settings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_toml(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    for settings in (Settings(), Settings(focus="focal", schedule_towards="w0", learning_rate=1e-30, early_stopping=2)):
        path.write_text(settings.to_toml(), encoding="utf-8")
        assert Settings.from_toml(path) == settings


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("members = ", "not TOML"),
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
