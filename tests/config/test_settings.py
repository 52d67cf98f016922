from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rarenode.config import WITHOUT_INFLUENCE, Settings, describe, setting_fields
from rarenode.config.settings import BEFORE
from rarenode.errors import ArgumentError, FileFormatError, MissingFileError

# --- declaration -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_has_a_group_and_a_description(name: str) -> None:
    groups = {field: group for field, _, group, _ in setting_fields()}
    assert groups[name] in {"Decisions", "Model", "Rare nodes", "Training", "Images", "Computation"}
    text = describe(name)
    assert text.endswith(".")
    assert "\n" not in text
    assert text[0].isupper()


@pytest.mark.parametrize("name", ["focus", "resampling"])
def test_choices_are_explained_in_the_description(name: str) -> None:
    for choice in get_args(Settings.model_fields[name].annotation):
        assert choice == "none" or re.search(rf"\b{choice}\b", describe(name)), choice


def test_settings_of_a_group_are_declared_together() -> None:
    groups = [group for _, _, group, _ in setting_fields()]
    assert sum(ours != theirs for ours, theirs in pairwise(groups)) == len(set(groups)) - 1


def test_importing_the_config_does_not_import_heavy_packages() -> None:
    script = "import sys, rarenode.config; print(sorted({n.split('.')[0] for n in sys.modules}))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(json.loads(result.stdout.replace("'", '"')))
    assert "pydantic" in loaded
    assert not loaded & {"torch", "numpy", "polars", "matplotlib", "numba", "scipy", "sklearn", "rich"}


# --- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zero", [0, np.int64(0), np.uint8(0)])
def test_zero_means_not_set(zero: Any) -> None:
    settings = Settings(patience=zero, cv=zero, thresholds="fixed")
    assert (settings.patience, settings.cv) == (None, None)
    assert settings.fingerprint == Settings(patience=None, cv=None, thresholds="fixed").fingerprint


def test_focus_may_be_none() -> None:
    assert Settings(focus=None).focus == "none"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "name"),
    [("fixed:0.50", "fixed"), ("fixed:.3", "fixed:0.3"), ("expected_f1.0", "expected_f1"), ("tuned:10", "tuned")],
)
def test_strategies_that_are_the_same_have_one_name(given: str, name: str) -> None:
    ours, theirs = (Settings(thresholds=text) for text in (given, name))
    assert ours.thresholds == name
    assert ours == theirs
    assert ours.fingerprint == theirs.fingerprint


@pytest.mark.parametrize("thresholds", ["expected_f1", "prior:1.5", "tuned", "global:micro_f1", "midpoint"])
def test_all_but_fixed_thresholds_need_held_out_rows(thresholds: str) -> None:
    assert Settings(thresholds=thresholds).needs_held_out_rows
    assert not Settings(thresholds="fixed:0.1").needs_held_out_rows


def test_the_parts_of_a_model_have_a_fixed_order() -> None:
    assert Settings(model="forest + mlp") == Settings(model="mlp+forest")
    assert Settings(model="forest+mlp").models == ("mlp", "forest")
    assert Settings(model="forest").models == ("forest",)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"hidden_size": 0}, "hidden_size: .* got 0"),
        ({"hidden_size": True}, "hidden_size"),
        ({"hidden_size": "500"}, "hidden_size"),
        ({"n_layers": 101}, "n_layers: .* less than or equal to 100"),
        ({"dropout": 1.0}, "dropout"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"learning_rate": float("nan")}, "learning_rate: .*finite"),
        ({"weighting": "as_printed"}, "weighting: .*as_published"),
        ({"focus": "entropy"}, "focus: .*'none', 'focal', 'bbma'.* got 'entropy'"),
        ({"resampling": "smote"}, "resampling: .*'none', 'lpros', 'lpros-textbook', 'hros-pd'"),
        ({"schedule_towards": 2}, "schedule_towards"),
        ({"seed": -1}, "seed"),
        ({"patience": -1}, "patience"),
        ({"patience": False}, "patience"),
        ({"patience": 0.0}, "patience"),
        ({"n_trees": 0}, "n_trees"),
        ({"n_trees": 2.5}, "n_trees"),
        ({"n_jobs": 0}, "n_jobs: it should be at least 1, or -1 for all cores; got 0"),
        ({"n_jobs": -2}, "n_jobs"),
        ({"model": "forests"}, "model: unknown model 'forests'; did you mean 'forest'\\?$"),
        ({"model": "svm"}, r"model: unknown model 'svm'; choose from mlp, forest, neighbours, or join them with \+"),
        ({"model": "mlp+mlp"}, r"model: model 'mlp\+mlp' names a model twice"),
        ({"model": ""}, "model: unknown model ''"),
        ({"rule": "add"}, "rule: .*'add_ancestors' or 'drop_orphans'"),
        ({"thresholds": "guess"}, "thresholds: unknown threshold strategy 'guess'; .*expected_f1"),
        ({"thresholds": "fixed:7"}, "thresholds: threshold must be a number of at least 0 and at most 1"),
        ({"thresholds": 0.3}, "thresholds"),
        ({"holdout": 0}, "holdout: .* greater than 0"),
        ({"holdout": 1.0}, "holdout: .* less than 1"),
        ({"cv": 1}, "cv: .* greater than or equal to 2, or 0; got 1"),
        ({"cv": True}, "cv"),
        ({"cv": -3}, "cv"),
        ({"holdout": 0.2, "cv": 3}, "holdout and cv are two ways to hold out rows; set one of them"),
        ({"thresholds": "prior", "cv": None}, "prior"),
        ({"cv": 0}, "midpoint"),
        ({"thresholds": "recall:0.9", "rule": "drop_orphans"}, "^rule=drop_orphans drops decisions that .*recall:0.9"),
        ({"checkpoint_minutes": -1.0}, "checkpoint_minutes"),
        ({"encoder": ""}, "encoder"),
        ({"encoder": object()}, r"encoder: .*a name or a folder.*Run\.fit\(\.\.\., encoder=module\)"),
        ({"image_size": 0}, "image_size"),
        ({"train_encoder": 1}, "train_encoder"),
        ({"train_encoder": "yes"}, "train_encoder"),
        ({"encoder_learning_rate": 0.0}, "encoder_learning_rate"),
        ({"encoder_batchnorm": "eval"}, "encoder_batchnorm: .*'frozen' or 'trained'"),
        ({"augmentation": "flip,blur"}, "augmentation: unknown augmentation 'blur'; choose from flip, crop, colour,"),
        ({"augmentation": "none,flip"}, "augmentation: unknown augmentation 'none'"),
        ({"augmentation": ""}, "augmentation: unknown augmentation ''"),
        ({"precision": "float16"}, "precision: .*'float32' or 'bfloat16'"),
        ({"focus": "x" * 1000}, r"\.\.\.$"),
    ],
)
def test_invalid_values_are_refused_in_a_sentence(values: dict[str, Any], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        Settings(**values)


@pytest.mark.parametrize(
    ("unknown", "near"),
    [("epoch", "epochs"), ("members", "n_members"), ("hidden_sizes", "hidden_size"), ("treshold", "thresholds")],
)
def test_unknown_names_suggest_the_nearest(unknown: str, near: str) -> None:
    with pytest.raises(ArgumentError, match=f"unknown setting '{unknown}'; did you mean '{near}'"):
        Settings(**{unknown: cast(Any, 1)})


def test_an_unknown_name_that_resembles_none() -> None:
    with pytest.raises(ArgumentError, match=r"unknown setting 'qqq'$"):
        Settings(qqq=1)  # type: ignore[call-arg]


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError):
        Settings().hidden_size = 3


def test_numpy_numbers_are_numbers() -> None:
    settings = Settings(hidden_size=np.int64(7), learning_rate=np.float32(0.5), seed=np.uint8(3))  # type: ignore[arg-type]
    assert json.dumps([settings.hidden_size, settings.learning_rate, settings.seed]) == "[7, 0.5, 3]"


@pytest.mark.parametrize("one", [1, 1.0, True])
def test_equal_settings_have_equal_fingerprints(one: Any) -> None:
    assert Settings(schedule_towards=one).fingerprint == Settings().fingerprint


def test_whole_numbers_are_the_same_as_floats() -> None:
    assert Settings(w0=1).fingerprint == Settings(w0=1.0).fingerprint


def test_augmentations_that_are_the_same_have_one_name() -> None:
    ours = Settings(augmentation=" crop, flip,crop")
    assert (ours.augmentation, ours.augmentations) == ("flip,crop", ("flip", "crop"))
    assert Settings(augmentation=" none ").augmentations == ()


@pytest.mark.parametrize(
    ("encoder", "batchnorm", "freezes"),
    [
        ("resnet50", "auto", True),
        ("random:resnet50", "auto", False),
        ("resnet50", "trained", False),
        ("random:resnet50", "frozen", True),
    ],
)
def test_batch_normalisation(encoder: str, batchnorm: Any, freezes: bool) -> None:
    assert Settings(encoder=encoder, encoder_batchnorm=batchnorm).freezes_batchnorm == freezes


def test_yes_and_no_of_numpy() -> None:
    assert Settings(train_encoder=cast(bool, np.bool_(True))).train_encoder is True


OTHER: dict[str, Any] = {
    "thresholds": "fixed:0.3", "rule": "drop_orphans", "cv": 5, "holdout": 0.2, "model": "mlp", "n_members": 2,
    "ensemble": "dropout", "hidden_size": 7, "n_layers": 2, "dropout": 0.1, "activation": "tanh", "n_trees": 3,
    "resampling": "lpros", "weighting": "as_described", "w0": 0.5, "side": "both", "classes": "binary",
    "focus": "gmu", "u0": 0.5, "k": 2.0, "schedule": "linear", "schedule_by": "epoch", "schedule_towards": "w0",
    "mix": 0.5, "epochs": 3, "patience": 2, "batch_size": 8, "learning_rate": 0.1, "weight_decay": 0.1,
    "reduction": "sum", "seed": 1, "engine": "torch", "device": "cuda", "n_jobs": 2, "checkpoint_epochs": 3,
    "checkpoint_minutes": 1.0, "encoder": "random:resnet18", "image_size": 64, "train_encoder": True,
    "encoder_learning_rate": 0.1, "encoder_batchnorm": "trained", "augmentation": "none", "precision": "bfloat16",
    "blend": "geometric", "guaranteed_recall": 0.8, "compile": True, "output_bias": "random", "n_components": 7,
}  # fmt: skip
"""For each setting a value that is not its default; a new setting needs a line."""


@pytest.mark.parametrize("name", Settings.model_fields)
def test_the_fingerprint_changes_with_every_setting_that_influences_the_result(name: str) -> None:
    changed = Settings(**{name: OTHER[name]})
    assert getattr(changed, name) != getattr(Settings(), name)
    assert (changed.fingerprint != Settings().fingerprint) == (name not in WITHOUT_INFLUENCE)


def test_settings_that_came_later_leave_the_fingerprints_in_older_files_valid() -> None:
    """As they were written before there were encoders, and learned blends."""
    best = Settings(
        thresholds="expected_f1", model="mlp+forest", blend="geometric", n_trees=500, output_bias="random",
        n_components=None,
    )  # fmt: skip
    assert best.fingerprint == "6bed94d697042b76ed34cbfb5a5275d44dfb8685ea3e56df7e5db2e3740b0b26"
    paper = Settings.preset("paper", n_members=10, n_trees=500, n_components=None).fingerprint
    assert paper == "70f25038ea75b6225e4f285a6c5eba318bdaecdf64bcd4dddd1a4f77b8fa15e1"


# --- changes ---------------------------------------------------------------------------------------------------------


def test_a_change_replaces_one_setting() -> None:
    before = Settings(n_members=3, cv=4)
    after = before.changed(epochs=7)
    assert after == Settings(n_members=3, cv=4, epochs=7)
    assert before.epochs == 100


def test_a_new_holdout_replaces_cv_and_a_new_cv_replaces_holdout() -> None:
    held_out = Settings().changed(holdout=0.3)
    assert (held_out.holdout, held_out.cv) == (0.3, None)
    folds = held_out.changed(cv=4)
    assert (folds.holdout, folds.cv) == (None, 4)
    assert held_out.changed(epochs=2).holdout == 0.3
    assert held_out.changed(cv=None) == held_out
    assert held_out.changed(cv=0) == held_out
    assert folds.changed(holdout=None) == folds
    with pytest.raises(ArgumentError, match="holdout and cv"):
        folds.changed(holdout=0.2, cv=2)
    with pytest.raises(ArgumentError, match="midpoint"):
        folds.changed(cv=0)


def test_a_change_is_checked() -> None:
    with pytest.raises(ArgumentError, match="epochs"):
        Settings().changed(epochs=0)
    with pytest.raises(ArgumentError, match="unknown setting 'epoch'"):
        Settings().changed(epoch=1)


# --- files -----------------------------------------------------------------------------------------------------------


def valid_settings() -> st.SearchStrategy[Settings]:
    """Any combination of values from `OTHER` and None."""

    def build(chosen: dict[str, Any]) -> Settings:
        if chosen.get("cv") and chosen.get("holdout"):
            del chosen["cv"]
        if not chosen.get("cv", 1) and not chosen.get("holdout"):
            chosen["thresholds"] = "fixed"
        return Settings(**chosen)

    optional = ("cv", "holdout", "patience", "n_jobs", "checkpoint_epochs", "checkpoint_minutes", "image_size")
    nothing = dict.fromkeys(optional)
    values = {name: st.sampled_from([OTHER[name], *([None] if name in nothing else [])]) for name in OTHER}
    return st.fixed_dictionaries({}, optional=values).map(build)


@given(settings=valid_settings())
def test_dictionaries_json_and_toml_are_inverses(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert Settings(**json.loads(json.dumps(settings.to_dict()))) == settings
    assert pickle.loads(pickle.dumps(settings)) == settings
    path = tmp_path_factory.getbasetemp() / "settings.toml"
    path.write_text(settings.to_toml(), encoding="utf-8")
    assert Settings.from_toml(path) == settings


def test_numbers_that_float32_cannot_compute_with() -> None:
    values: dict[str, Any] = dict.fromkeys(
        ("learning_rate", "weight_decay", "w0", "u0", "k", "encoder_learning_rate"), 1e39
    )
    for name, value in values.items():
        with pytest.raises(ArgumentError, match=f"{name}: it should be at most 1e\\+30; got 1e\\+39"):
            Settings(**{name: value})


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings.preset("paper"),
        Settings(focus="focal", schedule_towards="w0", learning_rate=1e-30, patience=2),
        Settings(thresholds="prior:1.5", holdout=0.25),
        Settings(thresholds="fixed", cv=0, patience=0),
        Settings(device='a "quoted" \\ name'),
    ],
)
def test_toml(tmp_path: Path, settings: Settings) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(settings.to_toml(), encoding="utf-8")
    assert Settings.from_toml(path) == settings


def test_toml_describes_every_setting() -> None:
    text = Settings.preset("paper").to_toml()
    for name in Settings.model_fields:
        assert f"# {describe(name)}\n" in text
    assert "\npatience = 0\n" in text
    assert "\n# holdout is not set\n" in text


def test_toml_can_say_none(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("patience = 0\ncv = 0\nfocus = 'none'\nthresholds = 'fixed'\n", encoding="utf-8")
    assert Settings.from_toml(path) == Settings(patience=None, cv=None, thresholds="fixed")


def test_read_toml_returns_what_the_file_contains(tmp_path: Path) -> None:
    """So that a preset and options of the command line can be combined with it."""
    path = tmp_path / "settings.toml"
    path.write_text("\ufeffepochs = 3\ncv = 0\n", encoding="utf-8")
    assert Settings.read_toml(path) == {"epochs": 3, "cv": 0}
    with pytest.raises(FileFormatError, match=r"settings\.toml.*midpoint"):
        Settings.from_toml(path)
    path.write_text("", encoding="utf-8")
    assert Settings.read_toml(path) == {}
    assert Settings.from_toml(path) == Settings()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("n_members = ", "not TOML"),
        ("thresholds = 'tuned'\ncv = 0", r"settings\.toml.*tuned"),
        ("n_members = 0", "n_members"),
        ("members = 3", "unknown setting 'members'; did you mean 'n_members'"),
        ("[a]\nb = 1", "unknown setting 'a'"),
        ("\xff", "not TOML"),
        ("holdout = 0.2\ncv = 2", "holdout and cv"),
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
    with pytest.raises(FileFormatError, match="cannot be read"):
        Settings.from_toml(tmp_path)


def test_what_a_file_of_an_older_rarenode_does_not_mention(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text('model = "mlp+forest"\n', encoding="utf-8")
    before = Settings.from_toml(path, absent=BEFORE)
    assert (before.blend, before.output_bias, before.n_components) == ("geometric", "random", None)
    path.write_text('model = "mlp+forest"\nblend = "learned"\n', encoding="utf-8")
    assert Settings.from_toml(path, absent=BEFORE).blend == "learned"


@pytest.mark.parametrize("name", ["n_components", "patience", "cv"])
def test_a_number_below_0_where_0_is_allowed(name: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{name}: Input should be greater than or equal to [12], or 0; got -1$"):
        Settings().changed(**{name: -1})
