from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from rarenode import constrain, uncertainty
from rarenode.data.preparation import Preparation
from rarenode.engines import Adam, Objective, make_engine
from rarenode.errors import ArgumentError, DataError, FileFormatError, MissingFileError
from rarenode.objective.uncertainties import UNCERTAINTIES
from rarenode.training import TrainedModel, inference, train
from tests.training.problem import data, rows, settings

X = data().test.X


@pytest.fixture(scope="module")
def model() -> TrainedModel:
    scored = rows().scored.copy()
    scored[0] = False
    return train(replace(rows(), scored=scored), settings(members=3), valid=data().valid)


def engine_logits(model: TrainedModel, X: Any) -> Any:
    objective = Objective(model.hierarchy)
    return make_engine("torch", model.shape, model.parameters, objective, Adam(), 0).logits(X)


# --- prediction ------------------------------------------------------------------------------------------------------


def test_each_member_is_constrained_and_then_averaged(model: TrainedModel) -> None:
    probs = 1 / (1 + np.exp(-engine_logits(model, X).astype(np.float64)))
    members = constrain(probs, model.hierarchy)
    np.testing.assert_allclose(model.member_probs(X), members, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(model.predict_proba(X), members.mean(axis=0), rtol=1e-5, atol=1e-7)
    assert model.member_probs(X).dtype == model.predict_proba(X).dtype == np.float32


def test_predictions_are_coherent_to_the_last_bit(model: TrainedModel) -> None:
    probs = model.predict_proba(X)
    assert (probs[:, model.hierarchy.edge_parents] >= probs[:, model.hierarchy.edge_children]).all()


@pytest.mark.parametrize("kind", UNCERTAINTIES)
def test_uncertainty_is_of_unconstrained_probabilities(model: TrainedModel, kind: str) -> None:
    probs = 1 / (1 + np.exp(-engine_logits(model, X).astype(np.float64)))
    np.testing.assert_allclose(model.uncertainty(X, kind), uncertainty(probs, kind), rtol=1e-3, atol=1e-5)


def test_blocks_of_rows_change_nothing(model: TrainedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [model.predict_proba(X), model.member_probs(X), model.uncertainty(X)]
    monkeypatch.setattr(inference, "CELLS_AT_A_TIME", 7 * 3 * 20)
    in_blocks = [model.predict_proba(X), model.member_probs(X), model.uncertainty(X)]
    for ours, theirs in zip(in_blocks, whole, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7)


def test_no_rows(model: TrainedModel) -> None:
    assert model.predict_proba(X[:0]).shape == (0, 20)
    assert model.member_probs(X[:0]).shape == (3, 0, 20)
    assert model.uncertainty(X[:0]).shape == (0, 20)


def test_monte_carlo_dropout_is_one_model_at_inference() -> None:
    model = train(rows(), settings(members=4, ensemble="dropout", focus="gmu"))
    assert model.member_probs(X).shape == (1, 50, 20)
    assert not model.uncertainty(X, "epistemic_js").any()
    np.testing.assert_array_equal(model.uncertainty(X, "gmu"), model.uncertainty(X, "bbma"))


def test_raw_features_are_prepared(model: TrainedModel) -> None:
    raw = X.astype(np.float64) * 3 + 5
    preparation = Preparation(np.full(8, 5.0), np.full(8, 5.0), np.full(8, 3.0))
    knowing = model.with_source("somewhere", preparation, data().feature_names)
    np.testing.assert_allclose(knowing.predict_proba(raw), model.predict_proba(X), rtol=1e-4, atol=1e-6)
    raw[0, 0] = np.nan
    assert np.isfinite(knowing.predict_proba(raw)).all()


def test_features_that_do_not_fit(model: TrainedModel) -> None:
    with pytest.raises(DataError, match="shape"):
        model.predict_proba(X[:, 1:])
    with pytest.raises(DataError, match="nan"):
        model.predict_proba(np.full((1, 8), np.nan))
    with pytest.raises(DataError, match="2 features"):
        model.with_source("", feature_names=("a", "b"))
    with pytest.raises(ArgumentError, match="unknown uncertainty"):
        model.uncertainty(X[:0], "doubt")


# --- the folder ------------------------------------------------------------------------------------------------------


def equal(ours: TrainedModel, theirs: TrainedModel) -> bool:
    plain = ("shape", "hierarchy", "settings", "engine", "history", "versions", "feature_names", "source")
    arrays = ("scored", "training_positives")
    return (
        all(getattr(ours, name) == getattr(theirs, name) for name in plain)
        and all(np.array_equal(getattr(ours, name), getattr(theirs, name)) for name in arrays)
        and all(np.array_equal(array, theirs.parameters[name]) for name, array in ours.parameters.items())
    )


def test_there_and_back(model: TrainedModel, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    preparation = Preparation(rng.normal(size=8), rng.normal(size=8) * 1e-20, np.exp(rng.normal(size=8)))
    knowing = model.with_source("synthetic | `x`\n# no", preparation, data().feature_names)
    knowing.save(tmp_path / "a" / "b")
    loaded = TrainedModel.load(tmp_path / "a" / "b")
    assert equal(loaded, knowing)
    assert loaded.preparation is not None
    for part in ("fill", "mean", "deviation"):
        assert np.array_equal(getattr(loaded.preparation, part), getattr(preparation, part))
    assert np.array_equal(loaded.predict_proba(X), knowing.predict_proba(X))
    assert sorted(path.name for path in (tmp_path / "a" / "b").iterdir()) == [
        "README.md",
        "model.json",
        "model.safetensors",
    ]
    card = (tmp_path / "a" / "b" / "README.md").read_text(encoding="utf-8")
    assert card.startswith("# A rarenode model of synthetic    x  # no\n")
    assert "| members | `3` |" in card


def test_models_pickle(model: TrainedModel) -> None:
    assert equal(pickle.loads(pickle.dumps(model)), model)


def test_saving_again_replaces_and_leaves_other_files_alone(model: TrainedModel, tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text("mine")
    model.save(tmp_path)
    other = train(rows(), settings(seed=1))
    other.save(tmp_path)
    assert equal(TrainedModel.load(tmp_path), other)
    assert (tmp_path / "settings.toml").read_text() == "mine"


@pytest.mark.parametrize("fails_at", range(1, 4))
def test_a_full_disk_leaves_the_earlier_model(
    model: TrainedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    model.save(tmp_path)
    fsync, calls = os.fsync, [0]

    def refuse(descriptor: int) -> None:
        calls[0] += 1
        if calls[0] == fails_at:
            raise OSError("full")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="full"):
        train(rows(), settings(seed=1)).save(tmp_path)
    assert equal(TrainedModel.load(tmp_path), model)
    assert len(list(tmp_path.iterdir())) == 3


def edit(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        record = json.loads((folder / "model.json").read_text())
        change(record)
        (folder / "model.json").write_text(json.dumps(record))

    return damage


def rewrite(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        arrays = load_file(folder / "model.safetensors")
        change(arrays)
        save_file(arrays, folder / "model.safetensors")

    return damage


def flip_a_bit(folder: Path) -> None:
    content = bytearray((folder / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (folder / "model.safetensors").write_bytes(content)


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "newer": (edit(lambda r: r.update(version=2, wonders=[])), r"newer rarenode wrote it \(format 2"),
    "foreign": (edit(lambda r: r.update(format="other")), "does not describe a rarenode model"),
    "no JSON": (lambda f: (f / "model.json").write_text("{"), "does not describe a rarenode model"),
    "nested": (lambda f: (f / "model.json").write_text("[" * 100_000), "does not describe a rarenode model"),
    "not text": (lambda f: (f / "model.json").write_bytes(b"\xff\xfe"), "does not describe a rarenode model"),
    "extra": (edit(lambda r: r.update(code="import os")), "code"),
    "absent": (edit(lambda r: r.pop("engine")), "engine: Field required"),
    "setting": (edit(lambda r: r["settings"].update(hidden=0)), "hidden"),
    "huge": (edit(lambda r: r["settings"].update(hidden=10**12)), "bytes, where its arrays need"),
    "other width": (edit(lambda r: r["settings"].update(hidden=15)), "array 'layer0.bias' is F32"),
    "other model": (edit(lambda r: r["fingerprints"].update(parameters="0" * 64)), "sha256"),
    "no fingerprint": (edit(lambda r: r["fingerprints"].clear()), "hierarchy"),
    "features": (edit(lambda r: r.update(features=9)), "training|array|bytes"),
    "names": (edit(lambda r: r.update(feature_names=["a"])), "feature_names has 1 values; 8 were expected"),
    "positives": (edit(lambda r: r["training_positives"].pop()), "training_positives has 19 values"),
    "column": (edit(lambda r: r["hierarchy"]["edges"].append([0, 99])), "column"),
    "cycle": (edit(lambda r: r["hierarchy"]["edges"].append(r["hierarchy"]["edges"][0][::-1])), "hierarchy is none"),
    "edges": (edit(lambda r: r["hierarchy"]["edges"].pop()), "not the one that the model was trained with"),
    "order": (edit(lambda r: r["hierarchy"]["nodes"].reverse()), "hierarchy"),
    "unscored": (edit(lambda r: r.update(unscored=["nobody"])), "unscored node 'nobody'"),
    "infinite": (edit(lambda r: r["history"][0].update(loss=float("inf"))), "finite|JSON"),
    "bit": (flip_a_bit, "sha256 is not the one"),
    "missing array": (rewrite(lambda a: a.pop("layer0.bias")), "layer0.bias' is missing|bytes"),
    "more arrays": (rewrite(lambda a: a.update(more=np.zeros(2))), "'more' should not be there"),
    "dtype": (rewrite(lambda a: a.update({"layer0.bias": a["layer0.bias"].view(np.int32)})), "I32"),
    "shape": (rewrite(lambda a: a.update({"layer0.bias": a["layer0.bias"].T.copy()})), "F32 .16, 3."),
    "truncated": (lambda f: os.truncate(f / "model.safetensors", 500), "500 bytes"),
    "cut": (
        lambda f: os.truncate(f / "model.safetensors", (f / "model.safetensors").stat().st_size - 1),
        "damaged|bytes",
    ),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_or_foreign_folder_is_refused(model: TrainedModel, tmp_path: Path, what: str) -> None:
    damage, says = DAMAGE[what]
    model.save(tmp_path)
    damage(tmp_path)
    with pytest.raises(FileFormatError, match=says):
        TrainedModel.load(tmp_path)


@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
def test_a_missing_file_is_named(model: TrainedModel, tmp_path: Path, name: str) -> None:
    model.save(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(MissingFileError, match=f"{name} is not there"):
        TrainedModel.load(tmp_path)


def test_a_record_beyond_all_measure_is_not_read(
    model: TrainedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.save(tmp_path)
    monkeypatch.setattr("rarenode.training.model_folder.MOST_RECORD_BYTES", 1000)
    with pytest.raises(FileFormatError, match="more than 1,000 bytes"):
        TrainedModel.load(tmp_path)
