from __future__ import annotations

import hashlib
import json
import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rarenode.training.card import to_markdown
from safetensors.numpy import load_file, save_file

from rarenode import constrain, uncertainty
from rarenode.data.preparation import Preparation
from rarenode.diagnosis import diagnose
from rarenode.engines import Adam, Objective, make_engine
from rarenode.errors import ArgumentError, DataError, FileFormatError, MissingFileError
from rarenode.hierarchy import Hierarchy
from rarenode.models import grow_forest, initial_parameters
from rarenode.objective.uncertainties import UNCERTAINTIES
from rarenode.thresholds import ExpectedF, Fixed, Thresholds
from rarenode.training import TrainedModel, inference, train
from tests import oracles
from tests.strategies import closed_labels, hierarchies
from tests.training.problem import data, rows, settings

X = data().test.X


@pytest.fixture(scope="module")
def model() -> TrainedModel:
    scored = rows().scored.copy()
    scored[0] = False
    return train(replace(rows(), scored=scored), settings(members=3), valid=data().valid)


@pytest.fixture(scope="module")
def decided() -> TrainedModel:
    """With a forest, and a threshold for each node."""
    values = np.linspace(0.01, 0.6, 20)
    values[[4, 19]] = np.inf
    model = train(rows(), settings(trees=4, engine="torch"))
    return model.with_thresholds(Thresholds(values, "drop_orphans", "by hand"))


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


@st.composite
def models_with_a_forest(draw: st.DrawFn) -> tuple[TrainedModel, Any]:
    """Any parameters, from those that say nothing to those that are sure of everything, and any rows in the leaves."""
    hierarchy: Hierarchy = draw(hierarchies())
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    features = rng.normal(size=(8, 3)).astype(np.float32)
    Y, everywhere = draw(closed_labels(hierarchy, 8)), np.ones(len(hierarchy), dtype=np.bool_)
    chosen = settings(members=draw(st.integers(1, 2)), hidden=4)
    shape, size = chosen.shape(3, len(hierarchy)), draw(st.sampled_from((0.1, 10.0, 1000.0)))
    model = TrainedModel(
        shape=shape,
        parameters={name: (size * array).astype(np.float32) for name, array in initial_parameters(shape, 0).items()},
        hierarchy=hierarchy,
        scored=everywhere,
        settings=chosen,
        engine="torch",
        history=(),
        training_positives=Y.sum(axis=0),
        versions={},
        fingerprints={},
        forest=grow_forest(features, Y, scored=everywhere, trees=draw(st.integers(1, 4)), seed=0, smallest_leaf=2),
    )
    return model, np.concatenate([features, rng.normal(size=(4, 3)).astype(np.float32)])


@given(models_with_a_forest())
def test_network_and_forest_are_joined_by_their_geometric_mean(drawn: tuple[TrainedModel, Any]) -> None:
    model, X = drawn
    assert model.forest is not None
    alone, probs = replace(model, forest=None).predict_proba(X), model.predict_proba(X)
    expected = np.sqrt(alone.astype(np.float64) * model.forest.predict_proba(X).astype(np.float64))
    np.testing.assert_allclose(probs, expected, rtol=1e-6, atol=1e-19)  # products below float32 are 0
    assert probs.dtype == np.float32
    assert probs.min() >= 0
    assert probs.max() <= 1
    assert (probs[:, model.hierarchy.edge_parents] >= probs[:, model.hierarchy.edge_children]).all()


@given(st.data())
def test_decisions_are_those_of_the_thresholds(draw: st.DataObject) -> None:
    model, X = draw.draw(models_with_a_forest())
    nodes = len(model.hierarchy)
    values = np.array(
        draw.draw(st.lists(st.sampled_from((0.0, 0.1, 0.5, 1.0, np.inf)), min_size=nodes, max_size=nodes))
    )
    probs = model.predict_proba(X)
    passed = np.array([[p >= t for p, t in zip(row, values, strict=True)] for row in probs], dtype=np.bool_)
    adding, dropping = (model.with_thresholds(Thresholds(values, rule)) for rule in ("add_ancestors", "drop_orphans"))
    assert np.array_equal(adding.predict(X), oracles.close(passed, model.hierarchy))
    assert np.array_equal(adding.decide(probs), adding.predict(X))
    assert model.hierarchy.is_closed(dropping.predict(X))
    assert not (dropping.predict(X) & ~passed).any()
    assert np.array_equal(model.predict(X), probs >= 0.5)


def test_deciding_together_finds_thresholds_on_the_rows_themselves(decided: TrainedModel) -> None:
    probs = decided.predict_proba(X)
    strategies = {"expected_f1": ExpectedF(), "expected_f2": ExpectedF(2.0), "fixed:0.3": Fixed(0.3)}
    for decision, strategy in strategies.items():
        expected = strategy.fit(probs, rule="drop_orphans").decide(probs, decided.hierarchy)
        np.testing.assert_array_equal(decided.predict_together(X, decision), expected)
    assert (decided.predict_together(X) != decided.predict(X)).any()
    assert decided.predict_together(X[:0]).shape == (0, 20)


@pytest.mark.parametrize("decision", ["prior", "tuned", "global", "precision_floor:0.2", "what"])
def test_deciding_together_without_labels_has_its_limits(decided: TrainedModel, decision: str) -> None:
    with pytest.raises(ArgumentError, match=decision):
        decided.predict_together(X, decision)


def test_thresholds_of_other_nodes(model: TrainedModel) -> None:
    with pytest.raises(ArgumentError, match="3 thresholds for 20 nodes"):
        model.with_thresholds(Thresholds(np.full(3, 0.5)))
    assert model.thresholds is None


def test_a_forest_is_grown_if_asked_for(model: TrainedModel, decided: TrainedModel) -> None:
    assert model.forest is None
    expected = grow_forest(rows().X, rows().Y, scored=rows().scored, trees=4, seed=0)
    assert decided.forest is not None
    assert np.array_equal(decided.forest.predict_proba(X), expected.predict_proba(X))


@pytest.mark.parametrize("kind", UNCERTAINTIES)
def test_uncertainty_is_of_unconstrained_probabilities(model: TrainedModel, kind: str) -> None:
    probs = 1 / (1 + np.exp(-engine_logits(model, X).astype(np.float64)))
    np.testing.assert_allclose(model.uncertainty(X, kind), uncertainty(probs, kind), rtol=1e-3, atol=1e-5)


@given(models_with_a_forest(), st.booleans())
def test_highest_member_probs_are_those_of_a_member_or_the_forest(drawn: tuple[TrainedModel, Any], alone: bool) -> None:
    model, X = drawn
    if alone:
        model = replace(model, forest=None)
    every = list(model.member_probs(X))
    if model.forest is not None:
        every.append(model.forest.predict_proba(X))
    highest = model.highest_member_probs(X)
    if len(every) == 1:
        assert highest is None
        return
    assert highest is not None
    assert highest.dtype == np.float32
    for row, node in np.ndindex(highest.shape):
        highest_of_any = max(float(one[row, node]) for one in every)
        assert float(highest[row, node]) == pytest.approx(highest_of_any, rel=1e-5, abs=1e-9)
    assert (highest >= model.predict_proba(X) * (1 - 1e-5)).all()  # no mean is above all of its parts


def test_a_single_model_has_no_highest_member_probs() -> None:
    single = train(rows(), settings())
    passes = train(rows(), settings(members=3, ensemble="dropout", focus="gmu"))
    assert single.highest_member_probs(X) is None
    assert passes.highest_member_probs(X) is None


def test_highest_member_probs_in_blocks_of_rows(decided: TrainedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = decided.highest_member_probs(X)
    monkeypatch.setattr(inference, "CELLS_AT_A_TIME", 7 * 20)
    in_blocks = decided.highest_member_probs(X)
    assert whole is not None
    assert in_blocks is not None
    np.testing.assert_allclose(in_blocks, whole, rtol=1e-5, atol=1e-7)
    nothing = decided.highest_member_probs(X[:0])
    assert nothing is not None
    assert nothing.shape == (0, 20)


def test_it_diagnoses_its_nodes_with_all_it_knows(model: TrainedModel, decided: TrainedModel) -> None:
    Y = data().test.Y
    for each in (model, decided):
        found = each.diagnose(X, Y)
        expected = diagnose(
            Y,
            each.predict_proba(X),
            each.hierarchy,
            each.decides_with,
            each.training_positives,
            scored=each.scored,
            highest_member_probs=each.highest_member_probs(X),
            uncertainty=each.uncertainty(X),
        )
        assert found.to_frame().equals(expected.to_frame())
        assert found.scores.predicted.tolist() == each.predict(X).sum(axis=0).tolist()
    assert model.diagnose(X, Y).state[0] == "not_scored"
    assert decided.diagnose(X, Y).rule == "drop_orphans"
    assert np.isfinite(decided.diagnose(X, Y).uncertainty).any()


def test_it_decides_with_its_thresholds_or_at_one_half(model: TrainedModel, decided: TrainedModel) -> None:
    assert decided.decides_with is decided.thresholds
    assert model.thresholds is None
    assert model.decides_with == Thresholds(np.full(20, 0.5), strategy="fixed")


def test_its_card_is_what_is_saved_beside_it(decided: TrainedModel, tmp_path: Path) -> None:
    knowing = decided.with_source("somewhere")
    knowing.save(tmp_path)
    saved = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert saved == to_markdown("A rarenode model of somewhere", knowing.card())


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
    plain = ("shape", "hierarchy", "settings", "engine", "history", "versions", "feature_names", "source", "thresholds")
    arrays = ("scored", "training_positives")
    return (
        all(getattr(ours, name) == getattr(theirs, name) for name in plain)
        and all(np.array_equal(getattr(ours, name), getattr(theirs, name)) for name in arrays)
        and all(np.array_equal(array, theirs.parameters[name]) for name, array in ours.parameters.items())
        and same_forest(ours, theirs)
    )


def same_forest(ours: TrainedModel, theirs: TrainedModel) -> bool:
    if ours.forest is None or theirs.forest is None:
        return ours.forest is theirs.forest
    arrays = theirs.forest.arrays()
    return ours.forest.sizes == theirs.forest.sizes and all(
        array.dtype == arrays[name].dtype and np.array_equal(array, arrays[name])
        for name, array in ours.forest.arrays().items()
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


def test_forest_and_thresholds_there_and_back(decided: TrainedModel, tmp_path: Path) -> None:
    decided.save(tmp_path)
    loaded = TrainedModel.load(tmp_path)
    assert equal(loaded, decided)
    assert loaded.thresholds is not None
    assert np.isinf(loaded.thresholds.values).sum() == 2
    assert np.array_equal(loaded.predict_proba(X), decided.predict_proba(X))
    assert np.array_equal(loaded.predict(X), decided.predict(X))
    assert json.loads((tmp_path / "model.json").read_text())["version"] == 2


def test_a_model_of_the_first_format(model: TrainedModel, tmp_path: Path) -> None:
    """It knew neither forests nor decisions: a network alone, at 0.5."""
    model.save(tmp_path)
    record = json.loads((tmp_path / "model.json").read_text())
    record["version"] = 1
    for name in ("forest", "thresholds"):
        del record[name]
    for name in ("trees", "decision", "rule", "holdout", "folds"):
        del record["settings"][name]
    (tmp_path / "model.json").write_text(json.dumps(record))
    loaded = TrainedModel.load(tmp_path)
    assert equal(loaded, model)
    assert (loaded.forest, loaded.thresholds) == (None, None)
    assert np.array_equal(loaded.predict(X), model.predict_proba(X) >= 0.5)


def test_models_pickle(model: TrainedModel, decided: TrainedModel) -> None:
    assert equal(pickle.loads(pickle.dumps(model)), model)
    assert equal(pickle.loads(pickle.dumps(decided)), decided)


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
    "newer": (edit(lambda r: r.update(version=3, wonders=[])), r"newer rarenode wrote it \(format 3"),
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


def forge(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    """As `rewrite`, by someone who also writes the new sha256 into the record."""

    def damage(folder: Path) -> None:
        rewrite(change)(folder)
        sha256 = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
        edit(lambda r: r["fingerprints"].update(parameters=sha256))(folder)

    return damage


def put(name: str, place: int, value: float) -> Callable[[Path], None]:
    return forge(lambda arrays: arrays[name].__setitem__(place, value))


def resize(**sizes: Any) -> Callable[[Path], None]:
    return edit(lambda r: r["forest"].update(sizes))


def set_thresholds(**changes: Any) -> Callable[[Path], None]:
    return edit(lambda r: r["thresholds"].update(changes))


RECORD, ARRAYS = r"model\.json: ", r"model\.safetensors: "
HALVES = [0.5] * 20
DECISIONS_DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "too few": (edit(lambda r: r["thresholds"]["values"].pop()), RECORD + "thresholds has 19 values; 20 were expected"),
    "too many": (set_thresholds(values=[*HALVES, 0.5]), RECORD + "thresholds has 21 values"),
    "none": (set_thresholds(values=[]), RECORD + "thresholds has 0 values"),
    "negative": (
        set_thresholds(values=[-0.1, *HALVES[1:]]),
        RECORD + "thresholds.values.0.*greater than or equal to 0",
    ),
    "NaN": (set_thresholds(values=[float("nan"), *HALVES[1:]]), RECORD),
    "infinite": (set_thresholds(values=[float("inf"), *HALVES[1:]]), RECORD),
    "text": (set_thresholds(values=["0.5", *HALVES[1:]]), RECORD + "thresholds.values.0"),
    "truth": (set_thresholds(values=[True, *HALVES[1:]]), RECORD + "thresholds.values.0"),
    "beyond a float": (set_thresholds(values=[10**400, *HALVES[1:]]), RECORD),
    "rule": (set_thresholds(rule="none"), RECORD + "thresholds.rule"),
    "long strategy": (set_thresholds(strategy="x" * 1000), RECORD + "thresholds.strategy"),
    "strategy of two lines": (set_thresholds(strategy="a\nb"), RECORD + ".*printable"),
    "more thresholds": (set_thresholds(code="import os"), RECORD + ".*code"),
    "no thresholds": (edit(lambda r: r["thresholds"].clear()), RECORD + "thresholds"),
    "decision": (edit(lambda r: r["settings"].update(decision="guess")), RECORD + ".*unknown .*strategy 'guess'"),
    "no forest": (edit(lambda r: r.update(forest=None)), ARRAYS + ".*'forest.* should not be there"),
    "fewer trees": (resize(trees=3), ARRAYS + "the array 'forest.roots'"),
    "more trees": (resize(trees=5), ARRAYS + "the array 'forest.roots'"),
    "fewer places": (resize(places=1), ARRAYS + "the array 'forest.feature'"),
    "no trees": (resize(trees=0), RECORD + ".*trees must be a whole number from 1"),
    "negative rows": (resize(training_rows=-1), RECORD + ".*training_rows must be a whole number"),
    "half a tree": (resize(trees=2.5), RECORD + "forest.trees"),
    "trees in words": (resize(trees="4"), RECORD + "forest.trees"),
    "a memory full of labels": (resize(labels=2**31 - 1), ARRAYS + ".*bytes, where its arrays need"),
    "beyond an index": (resize(labels=2**31), RECORD + ".*labels must be a whole number"),
    "size missing": (edit(lambda r: r["forest"].pop("labels")), RECORD + "forest.labels: Field required"),
    "forest in words": (edit(lambda r: r.update(forest="oak")), RECORD + "forest"),
    "forest bit": (rewrite(lambda a: a["forest.threshold"].__setitem__(0, 7.0)), ARRAYS + "its sha256 is not the one"),
    "circle": (put("forest.left", 0, 0), ARRAYS + "its forest cannot be used: .*'left' has 0 at 0"),
    "out of bounds": (put("forest.right", 0, 2**31 - 1), ARRAYS + "its forest cannot be used: .*'right'"),
    "no such feature": (put("forest.feature", 0, 8), ARRAYS + "its forest cannot be used: .*'feature' has 8 at 0"),
    "NaN in the forest": (put("forest.threshold", 0, np.nan), ARRAYS + "its forest cannot be used: .*'threshold'"),
    "no such root": (put("forest.roots", 1, -1), ARRAYS + "its forest cannot be used: .*'roots'"),
    "no such row": (put("forest.leaf_rows", 0, 150), ARRAYS + "its forest cannot be used: .*'leaf_rows'"),
    "rows from nowhere": (put("forest.leaf_starts", -1, 2**30), ARRAYS + "its forest cannot be used: .*'leaf_starts'"),
    "labels from nowhere": (put("forest.label_starts", 0, 1), ARRAYS + "its forest cannot be used: .*'label_starts'"),
    "no such node": (put("forest.label_columns", -1, 20), ARRAYS + "its forest cannot be used: .*'label_columns'"),
    "forest array missing": (forge(lambda a: a.pop("forest.roots")), ARRAYS + ".*'forest.roots' is missing|bytes"),
    "forest array more": (forge(lambda a: a.update({"forest.sap": np.zeros(2)})), ARRAYS + ".*'forest.sap' should not"),
    "forest dtype": (
        forge(lambda a: a.update({"forest.roots": a["forest.roots"].view(np.float32)})),
        ARRAYS + "the array 'forest.roots' is F32",
    ),
}


@pytest.mark.parametrize("what", DECISIONS_DAMAGE)
def test_a_damaged_forest_or_threshold_is_refused(decided: TrainedModel, tmp_path: Path, what: str) -> None:
    damage, says = DECISIONS_DAMAGE[what]
    decided.save(tmp_path)
    damage(tmp_path)
    with pytest.raises(FileFormatError, match=says):
        TrainedModel.load(tmp_path)


def test_a_forest_whose_labels_are_not_closed_is_refused(decided: TrainedModel, tmp_path: Path) -> None:
    """It would be incoherent."""
    assert decided.forest is not None
    starts, columns = decided.forest.label_starts, decided.forest.label_columns
    parent, child = int(decided.hierarchy.edge_parents[0]), int(decided.hierarchy.edge_children[0])
    row = int(rows().Y[:, child].argmax())
    place = int(starts[row] + np.flatnonzero(columns[starts[row] : starts[row + 1]] == parent)[0])

    def leave_out_the_parent(arrays: dict[str, Any]) -> None:
        arrays["forest.label_columns"] = np.delete(columns, place)
        arrays["forest.label_starts"] = (starts - (np.arange(len(starts)) > row)).astype(np.int32)

    decided.save(tmp_path)
    forge(leave_out_the_parent)(tmp_path)
    resize(labels=len(columns) - 1)(tmp_path)
    says = ARRAYS + f".*row {row} carries .* but not its parent {decided.hierarchy.nodes[parent]!r}"
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
