"""A trained model: predictions, decisions, diagnosis, and its folder."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from scipy.sparse import csc_array, csr_array

from rarenode import Hierarchy, constrain, make_hierarchical, uncertainty
from rarenode.config import Settings
from rarenode.data.preparation import Preparation
from rarenode.diagnosis import diagnose
from rarenode.engines import Adam, Objective, make_engine
from rarenode.errors import ArgumentError, DataError, FileFormatError, MissingFileError
from rarenode.metrics import information_accretion
from rarenode.models import Blend, Forest, Mlp, grow_forest
from rarenode.objective.uncertainties import UNCERTAINTIES
from rarenode.thresholds import ExpectedF, Fixed, Thresholds, make_strategy
from rarenode.training import TrainedModel, fit_model, train_model
from rarenode.training.model_card import to_markdown
from tests import oracles
from tests.training.problem import data, prepared, rows, settings, validation

X = data().test.X
FEATURES = tuple(f"feature {column}" for column in range(8))


@pytest.fixture(scope="module")
def model() -> TrainedModel:
    """Three networks; the first node is not scored."""
    scored = rows().scored.copy()
    scored[0] = False
    return train_model(replace(rows(), scored=scored), settings(n_members=3), valid=validation())


@pytest.fixture(scope="module")
def decided() -> TrainedModel:
    """A network and a forest, and a threshold for each node."""
    values = np.linspace(0.01, 0.6, 20)
    values[[4, 19]] = np.inf
    model = train_model(rows(), settings(model="mlp+forest", n_trees=4, engine="torch"))
    return model.with_thresholds(Thresholds(values, "drop_orphans", "by hand"))


@pytest.fixture(scope="module")
def forest() -> TrainedModel:
    return train_model(rows(), settings(model="forest", n_trees=4))


def network(model: TrainedModel) -> Mlp:
    part = model.model.models[0] if isinstance(model.model, Blend) else model.model
    assert isinstance(part, Mlp)
    return part


def engine_logits(model: TrainedModel, X: Any) -> Any:
    """By an engine, from features that are standardised here."""
    mean, deviation = rows().X.mean(axis=0), rows().X.std(axis=0)
    mlp = network(model)
    engine = make_engine("torch", mlp.shape, mlp.parameters, Objective(model.hierarchy), Adam(), 0)
    return engine.logits(((X - mean) / deviation).astype(np.float32))


# --- prediction ------------------------------------------------------------------------------------------------------


def test_predictions_stay_within_n_jobs(decided: TrainedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    if vars(numba.config)["NUMBA_NUM_THREADS"] < 2:
        pytest.skip("numba has one thread here")
    seen = []
    predict = Forest.predict_proba

    def noting(self: Forest, X: Any) -> Any:
        seen.append(numba.get_num_threads())
        return predict(self, X)

    monkeypatch.setattr(Forest, "predict_proba", noting)
    before = numba.get_num_threads()
    numba.set_num_threads(2)
    try:
        free, alone = (
            replace(decided, settings=settings(model="mlp+forest", n_jobs=n)).predict_proba(X) for n in (None, 1)
        )
        assert numba.get_num_threads() == 2
    finally:
        numba.set_num_threads(before)
    assert seen == [2, 1]
    np.testing.assert_array_equal(free, alone)


def test_each_member_is_constrained_and_then_averaged(model: TrainedModel) -> None:
    probs = 1 / (1 + np.exp(-engine_logits(model, X).astype(np.float64)))
    members = constrain(probs, model.hierarchy)
    np.testing.assert_allclose(model.member_probs(X), members, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X), members.mean(axis=0), rtol=1e-4, atol=1e-6)
    assert model.member_probs(X).dtype == model.predict_proba(X).dtype == np.float32


def test_a_network_and_a_forest_are_trained_on_the_same_prepared_rows(decided: TrainedModel) -> None:
    assert isinstance(decided.model, Blend)
    mlp, forest = decided.model.models
    assert isinstance(mlp, Mlp)
    assert isinstance(forest, Forest)
    expected = grow_forest(prepared().X, rows().Y, scored=rows().scored, trees=4, seed=0)
    features = decided.prepare(X)
    assert np.array_equal(forest.predict_proba(features), expected.predict_proba(features))
    alone = train_model(rows(), settings(engine="torch"))
    both = alone.predict_proba(X).astype(np.float64) * forest.predict_proba(features)
    np.testing.assert_allclose(decided.predict_proba(X), np.sqrt(both), rtol=1e-6, atol=1e-19)


def test_a_forest_alone(forest: TrainedModel, tmp_path: Path) -> None:
    assert isinstance(forest.model, Forest)
    assert (forest.engine, forest.history) == ("", ())
    expected = grow_forest(prepared().X, rows().Y, scored=rows().scored, trees=4, seed=0)
    assert np.array_equal(forest.predict_proba(X), expected.predict_proba(forest.prepare(X)))
    assert np.array_equal(forest.predict(X), forest.predict_proba(X) >= 0.5)
    np.testing.assert_array_equal(forest.uncertainty(X), uncertainty(forest.predict_proba(X)[None], "gmu"))
    assert forest.diagnose(X, data().test.Y).scores.predicted.tolist() == forest.predict(X).sum(axis=0).tolist()
    with pytest.raises(ArgumentError, match="a forest has no members; train model='mlp'"):
        forest.member_probs(X)
    forest.save(tmp_path)
    loaded = TrainedModel.load(tmp_path)
    assert equal(loaded, forest)
    assert np.array_equal(loaded.predict_proba(X), forest.predict_proba(X))


def test_a_row_has_the_same_prediction_alone_and_in_a_batch(
    model: TrainedModel, decided: TrainedModel, forest: TrainedModel
) -> None:
    for each in (model, decided, forest):
        together = each.compute(X, uncertainty="gmu")
        assert together.uncertainty is not None
        for chosen in ([0], [31], [5, 2], list(range(17)), list(range(49, -1, -1))):
            some = each.compute(X[chosen], uncertainty="gmu")
            assert some.uncertainty is not None
            np.testing.assert_array_equal(some.probs, together.probs[chosen])
            np.testing.assert_array_equal(some.uncertainty, together.uncertainty[chosen])


def test_sparse_features_give_the_same_predictions(decided: TrainedModel) -> None:
    many_zeros = np.where(np.abs(X) < 1, 0, X)
    many_zeros[3, 2] = np.nan
    expected = decided.predict_proba(many_zeros)
    for kind in (csr_array, csc_array):
        np.testing.assert_array_equal(decided.predict_proba(kind(many_zeros)), expected)


def test_the_network_is_built_once(model: TrainedModel, decided: TrainedModel) -> None:
    for each in (model, decided):
        each.predict_proba(X)
        first = network(each)._layers
        each.predict(X[:1])
        assert network(each)._layers is first
        moved = each.with_thresholds(each.decides_with)
        assert network(moved)._layers is first


def test_decisions_are_those_of_the_thresholds(model: TrainedModel) -> None:
    @given(st.lists(st.sampled_from((0.0, 0.1, 0.3, 0.5, 1.0, np.inf)), min_size=20, max_size=20))
    def check(values: list[float]) -> None:
        passed = np.array([[p >= t for p, t in zip(row, values, strict=True)] for row in probs], dtype=np.bool_)
        adding, dropping = (
            model.with_thresholds(Thresholds(np.array(values), rule)) for rule in ("add_ancestors", "drop_orphans")
        )
        assert np.array_equal(adding.decide(probs), oracles.close(passed, model.hierarchy))
        assert model.hierarchy.is_closed(dropping.decide(probs))
        assert not (dropping.decide(probs) & ~passed).any()

    probs = model.predict_proba(X)
    check()
    assert np.array_equal(model.predict(X), probs >= 0.5)


def test_thresholds_may_be_fitted_to_the_rows_themselves(decided: TrainedModel) -> None:
    probs = decided.predict_proba(X)
    strategies = {"expected_f1": ExpectedF(), "expected_f2": ExpectedF(2.0), "fixed:0.3": Fixed(0.3)}
    for name, strategy in strategies.items():
        expected = strategy.fit(probs, rule="drop_orphans").decide(probs, decided.hierarchy)
        np.testing.assert_array_equal(decided.predict_together(X, name), expected)
    assert (decided.predict_together(X) != decided.predict(X)).any()
    assert decided.predict_together(X[:0]).shape == (0, 20)


@pytest.mark.parametrize("thresholds", ["tuned", "global", "precision:0.2", "what"])
def test_strategies_that_need_labels_cannot_be_fitted_to_rows_without(decided: TrainedModel, thresholds: str) -> None:
    with pytest.raises(ArgumentError, match=thresholds):
        decided.predict_together(X, thresholds)


def test_thresholds_of_other_nodes(model: TrainedModel) -> None:
    with pytest.raises(ArgumentError, match="3 thresholds for 20 nodes"):
        model.with_thresholds(Thresholds(np.full(3, 0.5)))
    assert model.thresholds is None


@pytest.mark.parametrize("kind", UNCERTAINTIES)
def test_uncertainty_is_of_unconstrained_probabilities(model: TrainedModel, decided: TrainedModel, kind: str) -> None:
    for each in (model, decided):
        probs = 1 / (1 + np.exp(-engine_logits(each, X).astype(np.float64)))
        np.testing.assert_allclose(each.uncertainty(X, kind), uncertainty(probs, kind), rtol=1e-3, atol=1e-5)


def test_the_highest_probability_of_any_member(model: TrainedModel, decided: TrainedModel) -> None:
    highest = model.compute(X, highest=True).highest
    assert highest is not None
    np.testing.assert_array_equal(highest, model.member_probs(X).max(axis=0))
    assert isinstance(decided.model, Blend)
    both = [part.compute(decided.prepare(X)).probs for part in decided.model.models]
    highest = decided.compute(X, highest=True).highest
    assert highest is not None
    np.testing.assert_array_equal(highest, np.maximum(*both))
    assert model.compute(X).highest is None


def test_one_member_has_no_highest() -> None:
    single = train_model(rows(), settings())
    passes = train_model(rows(), settings(n_members=3, ensemble="dropout", focus="gmu"))
    assert single.compute(X, highest=True).highest is None
    assert passes.compute(X, highest=True).highest is None


def test_it_diagnoses_its_nodes(model: TrainedModel, decided: TrainedModel) -> None:
    Y = data().test.Y
    for each in (model, decided):
        found = each.diagnose(X, Y)
        output = each.compute(X, highest=True, uncertainty="gmu")
        expected = diagnose(
            Y,
            output.probs,
            each.hierarchy,
            each.decides_with,
            each.training_positives,
            scored=each.scored,
            highest_member_probs=output.highest,
            uncertainty=output.uncertainty,
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


def test_no_rows(model: TrainedModel, decided: TrainedModel) -> None:
    for each, members in ((model, 3), (decided, 1)):
        assert each.predict_proba(X[:0]).shape == each.predict(X[:0]).shape == (0, 20)
        assert each.member_probs(X[:0]).shape == (members, 0, 20)
        assert each.uncertainty(X[:0]).shape == (0, 20)


def test_monte_carlo_dropout_is_one_network_at_inference() -> None:
    model = train_model(rows(), settings(n_members=4, ensemble="dropout", focus="gmu"))
    assert model.member_probs(X).shape == (1, 50, 20)
    assert not model.uncertainty(X, "epistemic_js").any()
    np.testing.assert_array_equal(model.uncertainty(X, "gmu"), model.uncertainty(X, "bbma"))


def test_raw_features_are_prepared_by_the_model() -> None:
    """Other units make hardly any difference, and a missing value is one at the mean."""
    units = np.array([1e-6, 1.0, 3.0, 1e6, 1.0, 1.0, 1.0, 0.1])
    moved = replace(rows(), X=rows().X * units + 5)
    ours, theirs = train_model(rows(), settings()), train_model(moved, settings())
    np.testing.assert_allclose(theirs.predict_proba(X * units + 5), ours.predict_proba(X), rtol=1e-3, atol=1e-5)
    missing, mean = X.copy(), X.copy()
    missing[:, 2], mean[:, 2] = np.nan, rows().X[:, 2].mean()
    np.testing.assert_allclose(ours.predict_proba(missing), ours.predict_proba(mean), rtol=1e-5, atol=1e-6)


def test_without_a_preparation_features_are_used_as_they_are() -> None:
    plain = train_model(prepared(), settings(), prepare=False)
    model = train_model(rows(), settings())
    assert plain.preparation is None
    assert np.array_equal(plain.predict_proba(model.prepare(X)), model.predict_proba(X))
    with pytest.raises(DataError, match="nan"):
        plain.predict_proba(np.full((1, 8), np.nan))
    with pytest.raises(DataError, match="too large"):
        plain.predict_proba(np.full((1, 8), 1e300))
    with pytest.raises(DataError, match="shape"):
        plain.predict_proba(X[:, 1:])


def test_arguments_that_do_not_fit(model: TrainedModel) -> None:
    with pytest.raises(DataError, match=r"\(rows, 8\); got \(50, 7\)"):
        model.predict_proba(X[:, 1:])
    with pytest.raises(DataError, match="row 1, feature 0"):
        model.predict_proba(np.array([[0.0] * 8, [np.inf] * 8]))
    with pytest.raises(ArgumentError, match="unknown uncertainty"):
        model.uncertainty(X[:0], "doubt")


def test_other_features_and_nodes_are_noticed(model: TrainedModel) -> None:
    named = replace(model, feature_names=FEATURES)
    fitting = replace(data().test, feature_names=FEATURES, name="some.csv")
    named.check_match(fitting, labels=True)
    other = replace(fitting, feature_names=(*FEATURES[:-1], "weight"))
    with pytest.raises(DataError, match=r"some\.csv does not fit the model: it has features .*'weight'; it lacks"):
        named.check_match(other, labels=False)
    replace(model, feature_names=None).check_match(other, labels=True)
    flat = replace(fitting, hierarchy=Hierarchy.from_edges([], model.hierarchy.nodes))
    named.check_match(flat, labels=False)
    with pytest.raises(DataError, match="its nodes have another order"):
        named.check_match(flat, labels=True)


# --- the folder ------------------------------------------------------------------------------------------------------


def equal(ours: TrainedModel, theirs: TrainedModel) -> bool:
    plain = ("hierarchy", "settings", "engine", "history", "versions", "feature_names", "source", "thresholds")
    arrays = ("scored", "training_positives", "parents_together", "prior")
    there = theirs.model.arrays()
    return (
        all(getattr(ours, name) == getattr(theirs, name) for name in plain)
        and all(np.array_equal(getattr(ours, name), getattr(theirs, name)) for name in arrays)
        and (ours.model.kind, ours.model.describe()) == (theirs.model.kind, theirs.model.describe())
        and all(
            array.dtype == there[name].dtype and np.array_equal(array, there[name])
            for name, array in ours.model.arrays().items()
        )
    )


def test_saving_and_loading(model: TrainedModel, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    preparation = Preparation(rng.normal(size=8), rng.normal(size=8) * 1e-20, np.exp(rng.normal(size=8)))
    saved = replace(model, source="synthetic | `x`\n# no", preparation=preparation, feature_names=FEATURES)
    saved.save(tmp_path / "a" / "b")
    loaded = TrainedModel.load(tmp_path / "a" / "b")
    assert equal(loaded, saved)
    assert loaded.preparation is not None
    for part in ("fill", "mean", "deviation"):
        assert np.array_equal(getattr(loaded.preparation, part), getattr(preparation, part))
    assert np.array_equal(loaded.predict_proba(X), saved.predict_proba(X))
    assert sorted(path.name for path in (tmp_path / "a" / "b").iterdir()) == [
        "README.md",
        "model.json",
        "model.safetensors",
    ]
    card = (tmp_path / "a" / "b" / "README.md").read_text(encoding="utf-8")
    assert card.startswith("# A rarenode model of synthetic    x  # no\n")
    assert "| n_members | `3` |" in card


def test_it_keeps_the_counts_for_information_accretion(model: TrainedModel, tmp_path: Path) -> None:
    found = model.information_accretion
    assert found is not None
    np.testing.assert_array_equal(found, information_accretion(rows().Y, model.hierarchy))
    model.save(tmp_path)
    edit(lambda r: r.pop("parents_together"))(tmp_path)  # as an older rarenode wrote it
    assert TrainedModel.load(tmp_path).information_accretion is None


def test_only_known_labels_count_for_information_accretion() -> None:
    partly = rows()
    known = partly.Y | (np.random.default_rng(0).random(partly.Y.shape) < 0.5)
    found = train_model(replace(partly, known=known), settings(epochs=1)).information_accretion
    np.testing.assert_array_equal(found, information_accretion(partly.Y, partly.hierarchy, known=known))


def test_a_blend_and_thresholds_are_saved_and_loaded(decided: TrainedModel, tmp_path: Path) -> None:
    decided.save(tmp_path)
    loaded = TrainedModel.load(tmp_path)
    assert equal(loaded, decided)
    assert loaded.thresholds is not None
    assert np.isinf(loaded.thresholds.values).sum() == 2
    for ours, theirs in (
        (loaded.predict_proba(X), decided.predict_proba(X)),
        (loaded.predict(X), decided.predict(X)),
        (loaded.uncertainty(X), decided.uncertainty(X)),
    ):
        assert np.array_equal(ours, theirs)
    assert json.loads((tmp_path / "model.json").read_text())["version"] == 3


def test_weights_of_a_blend_have_names_in_its_folder(decided: TrainedModel, tmp_path: Path) -> None:
    shares = np.full(len(decided.hierarchy), 0.5)
    model = replace(decided, model=Blend(decided.parts, (0.25, 0.75), shares))
    model.save(tmp_path)
    kinds = [part.kind for part in decided.parts]
    described = json.loads((tmp_path / "model.json").read_text())["model"]
    assert described["weights"] == dict(zip(kinds, (0.25, 0.75), strict=True))
    edit(lambda r: r["model"].update(weights=dict(reversed(r["model"]["weights"].items()))))(tmp_path)
    assert TrainedModel.load(tmp_path).model.weights == (0.25, 0.75)  # type: ignore[attr-defined]
    edit(lambda r: r["model"].update(weights=[0.25, 0.75]))(tmp_path)  # as an older rarenode wrote them
    assert TrainedModel.load(tmp_path).model.weights == (0.25, 0.75)  # type: ignore[attr-defined]
    for wrong in ([0.25], [], {"mlp": 0.25}, {"mlp": 0.25, "forest": 0.75, "neighbours": 1.0}):
        edit(lambda r, wrong=wrong: r["model"].update(weights=wrong))(tmp_path)  # type: ignore[misc]
        with pytest.raises(FileFormatError, match="by the weights of its models, by their kinds"):
            TrainedModel.load(tmp_path)


def test_its_card_is_what_is_saved_beside_it(decided: TrainedModel, tmp_path: Path) -> None:
    named = replace(decided, source="somewhere")
    named.save(tmp_path)
    saved = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert saved == to_markdown("A rarenode model of somewhere", named.card())


def test_models_pickle_without_a_second_copy_of_their_parameters(model: TrainedModel, decided: TrainedModel) -> None:
    for each in (model, decided):
        new: TrainedModel = pickle.loads(pickle.dumps(each))
        assert equal(new, each)
        before = len(pickle.dumps(new))
        assert np.array_equal(new.predict_proba(X), each.predict_proba(X))
        assert len(pickle.dumps(new)) == before


def test_saving_again_replaces_and_leaves_other_files_alone(model: TrainedModel, tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text("mine")
    model.save(tmp_path)
    other = train_model(rows(), settings(seed=1))
    other.save(tmp_path)
    assert equal(TrainedModel.load(tmp_path), other)
    assert (tmp_path / "settings.toml").read_text() == "mine"


@pytest.mark.parametrize("fails_at", range(1, 4))
def test_a_full_disk_leaves_the_earlier_model(
    model: TrainedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    other = train_model(rows(), settings(seed=1))
    model.save(tmp_path)
    fsync, calls = os.fsync, [0]

    def refuse(descriptor: int) -> None:
        calls[0] += 1
        if calls[0] == fails_at:
            raise OSError("full")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="full"):
        other.save(tmp_path)
    assert equal(TrainedModel.load(tmp_path), model)
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("survives", range(5))
def test_a_kill_leaves_the_earlier_model_or_the_new_one(
    model: TrainedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, survives: int
) -> None:
    other = train_model(rows(), settings(seed=1))
    model.save(tmp_path)
    renamed, rename = [0], Path.replace

    def killed(self: Path, target: Path) -> Path:
        if renamed[0] == survives:
            raise KeyboardInterrupt
        renamed[0] += 1
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            other.save(tmp_path)
    assert equal(TrainedModel.load(tmp_path), other if survives >= 3 else model)
    model.save(tmp_path)
    assert equal(TrainedModel.load(tmp_path), model)
    assert {path.name for path in tmp_path.iterdir()} == {"model.json", "model.safetensors", "README.md"}


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
    "newer": (
        edit(lambda r: r.update(version=4, wonders=[])),
        r"newer rarenode wrote it, in format 4; this .* reads format 3.* update rarenode",
    ),
    "older": (
        edit(lambda r: (r.update(version=1), r.pop("source"))),
        r"older rarenode wrote it, in format 1; this .* reads format 3.* train the model again",
    ),
    "foreign": (edit(lambda r: r.update(format="other")), "does not describe a rarenode model"),
    "no JSON": (lambda f: (f / "model.json").write_text("{"), "does not describe a rarenode model"),
    "nested": (lambda f: (f / "model.json").write_text("[" * 100_000), "does not describe a rarenode model"),
    "not text": (lambda f: (f / "model.json").write_bytes(b"\xff\xfe"), "does not describe a rarenode model"),
    "extra": (edit(lambda r: r.update(code="import os")), "code"),
    "absent": (edit(lambda r: r.pop("engine")), "engine: Field required"),
    "setting": (edit(lambda r: r["settings"].update(hidden_size=0)), "hidden_size"),
    "huge": (edit(lambda r: r["model"].update(hidden=2**31)), "bytes, where its arrays need"),
    "other width": (edit(lambda r: r["model"].update(hidden=15)), "array 'layer0.bias' is F32"),
    "other model": (edit(lambda r: r["fingerprints"].update(parameters="0" * 64)), "sha256"),
    "no fingerprint": (edit(lambda r: r["fingerprints"].clear()), "hierarchy"),
    "features": (edit(lambda r: r["model"].update(features=9)), "array 'layer0.weight' is F32"),
    "nodes": (edit(lambda r: r["model"].update(nodes=21)), "array 'layer2.bias' is F32"),
    "kind": (edit(lambda r: r["model"].update(kind="svm")), "model: unknown kind 'svm'; this rarenode has mlp, forest"),
    "no kind": (edit(lambda r: r["model"].pop("kind")), "model: unknown kind None"),
    "other kind": (edit(lambda r: r["model"].update(kind="forest")), "model: its description must"),
    "kind that is no text": (edit(lambda r: r["model"].update(kind=["mlp"])), "model: unknown kind"),
    "endless layers": (edit(lambda r: r["model"].update(layers=2**31)), "model: layers"),
    "layers in words": (edit(lambda r: r["model"].update(layers="3")), "model: layers"),
    "no model": (edit(lambda r: r.update(model={})), "model: unknown kind None"),
    "preparation": (edit(lambda r: r["preparation"]["mean"].pop()), "preparation.mean has 7 values; 8 were expected"),
    "deviation": (edit(lambda r: r["preparation"]["deviation"].__setitem__(2, 0.0)), "preparation.deviation.2"),
    "names": (edit(lambda r: r.update(feature_names=["a"])), "feature_names has 1 value; 8 were expected"),
    "positives": (edit(lambda r: r["training_positives"].pop()), "training_positives has 19 values"),
    "parents": (edit(lambda r: r["parents_together"].pop()), "parents_together has 19 values"),
    "fewer parents": (edit(lambda r: r.update(parents_together=[0] * 20)), "parents_together: a node has more rows"),
    "prior": (edit(lambda r: r["prior"].pop()), "prior has 19 values"),
    "prior above 1": (edit(lambda r: r["prior"].__setitem__(3, 1.5)), "prior.3: .* less than or equal to 1"),
    "column": (edit(lambda r: r["hierarchy"]["edges"].append([0, 99])), "column"),
    "cycle": (edit(lambda r: r["hierarchy"]["edges"].append(r["hierarchy"]["edges"][0][::-1])), "hierarchy is invalid"),
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
    return edit(lambda r: r["model"]["models"][1].update(sizes))


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
    "strategy": (edit(lambda r: r["settings"].update(thresholds="guess")), RECORD + ".*unknown .*strategy 'guess'"),
    "no forest": (edit(lambda r: r["model"]["models"].pop()), RECORD + "model: a blend must be described by a list"),
    "two forests": (
        edit(lambda r: r["model"]["models"].__setitem__(0, r["model"]["models"][1])),
        RECORD + "model: a blend of 'forest' is not possible",
    ),
    "a blend in a blend": (
        edit(lambda r: r["model"]["models"].append({"kind": "blend", "models": [*r["model"]["models"]]})),
        RECORD + "model: a blend of 'blend' is not possible",
    ),
    "no list": (edit(lambda r: r["model"].update(models="mlp")), RECORD + "model: a blend must be described by a list"),
    "a network of other features": (edit(lambda r: r["model"]["models"][0].update(features=9)), ARRAYS + ".*layer0"),
    "a forest of other features": (
        resize(features=9),
        ARRAYS + "its model cannot be used: the models of a blend must have the same features",
    ),
    "a forest of other nodes": (resize(nodes=21), ARRAYS + "its model cannot be used: the model has 21 nodes"),
    "a network with NaN": (
        forge(lambda a: a["mlp.layer0.bias"].fill(np.nan)),
        ARRAYS + "its model cannot be used: layer0.bias has values that are not finite",
    ),
    "fewer trees": (resize(trees=3), ARRAYS + "the array 'forest.roots'"),
    "more trees": (resize(trees=5), ARRAYS + "the array 'forest.roots'"),
    "fewer places": (resize(places=1), ARRAYS + "the array 'forest.feature'"),
    "no trees": (resize(trees=0), RECORD + ".*trees must be a whole number from 1"),
    "negative rows": (resize(training_rows=-1), RECORD + ".*training_rows must be a whole number"),
    "half a tree": (resize(trees=2.5), RECORD + "model: .*trees must be a whole number"),
    "trees in words": (resize(trees="4"), RECORD + "model: .*trees must be a whole number"),
    "a memory full of labels": (resize(labels=2**31 - 1), ARRAYS + ".*bytes, where its arrays need"),
    "beyond an index": (resize(labels=2**31), RECORD + ".*labels must be a whole number"),
    "size missing": (edit(lambda r: r["model"]["models"][1].pop("labels")), RECORD + "model: .* must contain 'labels'"),
    "forest in words": (edit(lambda r: r["model"]["models"].__setitem__(1, "oak")), RECORD + "model: a blend of None"),
    "forest bit": (rewrite(lambda a: a["forest.threshold"].__setitem__(0, 7.0)), ARRAYS + "its sha256 is not the one"),
    "circle": (put("forest.left", 0, 0), ARRAYS + "its model cannot be used: .*'left' has 0 at 0"),
    "out of bounds": (put("forest.right", 0, 2**31 - 1), ARRAYS + "its model cannot be used: .*'right'"),
    "no such feature": (put("forest.feature", 0, 8), ARRAYS + "its model cannot be used: .*'feature' has 8 at 0"),
    "NaN in the forest": (put("forest.threshold", 0, np.nan), ARRAYS + "its model cannot be used: .*'threshold'"),
    "no such root": (put("forest.roots", 1, -1), ARRAYS + "its model cannot be used: .*'roots'"),
    "no such row": (put("forest.leaf_rows", 0, 150), ARRAYS + "its model cannot be used: .*'leaf_rows'"),
    "rows from nowhere": (put("forest.leaf_starts", -1, 2**30), ARRAYS + "its model cannot be used: .*'leaf_starts'"),
    "labels from nowhere": (put("forest.label_starts", 0, 1), ARRAYS + "its model cannot be used: .*'label_starts'"),
    "no such node": (put("forest.label_columns", -1, 20), ARRAYS + "its model cannot be used: .*'label_columns'"),
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
    assert isinstance(decided.model, Blend)
    forest = decided.model.models[1]
    assert isinstance(forest, Forest)
    starts, columns = forest.label_starts, forest.label_columns
    parent, child = int(decided.hierarchy.edge_parents[0]), int(decided.hierarchy.edge_children[0])
    row = int(rows().Y[:, child].argmax())
    place = int(starts[row] + np.flatnonzero(columns[starts[row] : starts[row + 1]] == parent)[0])

    def leave_out_the_parent(arrays: dict[str, Any]) -> None:
        arrays["forest.label_columns"] = np.delete(columns, place)
        arrays["forest.label_starts"] = (starts - (np.arange(len(starts)) > row)).astype(np.int32)

    decided.save(tmp_path)
    forge(leave_out_the_parent)(tmp_path)
    resize(labels=len(columns) - 1)(tmp_path)
    says = ARRAYS + f".*row {row} has .* but not its parent {decided.hierarchy.nodes[parent]!r}"
    with pytest.raises(FileFormatError, match=says):
        TrainedModel.load(tmp_path)


@pytest.fixture(scope="module")
def projected() -> TrainedModel:
    """A model of sparse features, projected."""
    sparse = replace(rows(), X=csr_array(np.abs(rows().X) * (np.abs(rows().X) > 1)), feature_names=None)
    return train_model(sparse, settings(epochs=1, n_components=3))


def test_a_model_of_projected_features_is_saved_and_loaded(projected: TrainedModel, tmp_path: Path) -> None:
    projected.save(tmp_path)
    again = TrainedModel.load(tmp_path)
    X = np.abs(rows().X)
    assert again.model.n_features == 3
    assert again.predict_proba(X).tobytes() == projected.predict_proba(csr_array(X)).tobytes()
    assert "projected on 3 directions" in (tmp_path / "README.md").read_text()


PROJECTION_DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "not finite": (put("preparation.directions", 0, float("nan")), ARRAYS + "its preparation.directions"),
    "no directions": (forge(lambda arrays: arrays.pop("preparation.directions")), ARRAYS),
    "more components": (edit(lambda r: r["preparation"]["projection"].update(components=4)), ARRAYS),
    "many components": (edit(lambda r: r["preparation"]["projection"].update(components=2**31 - 1)), ARRAYS),
    "no component": (edit(lambda r: r["preparation"]["projection"].update(components=0)), RECORD + ".*components"),
    "a column of 0": (edit(lambda r: r["preparation"]["projection"]["largest"].__setitem__(0, 0)), RECORD),
    "a tiny column": (edit(lambda r: r["preparation"]["projection"]["largest"].__setitem__(0, 1e-320)), RECORD),
    "a column less": (edit(lambda r: r["preparation"]["projection"]["largest"].pop()), ARRAYS),
    "a fill less": (edit(lambda r: r["preparation"]["fill"].pop()), RECORD + "preparation.fill has 7 values"),
    "a mean more": (edit(lambda r: r["preparation"]["mean"].append(0.0)), RECORD + "preparation.mean has 4 values"),
    "categories": (edit(lambda r: r["preparation"].update(categories=[None] * 8)), RECORD + ".*categories"),
}


@pytest.mark.parametrize("what", PROJECTION_DAMAGE)
def test_a_damaged_projection_is_refused(projected: TrainedModel, tmp_path: Path, what: str) -> None:
    damage, says = PROJECTION_DAMAGE[what]
    projected.save(tmp_path)
    damage(tmp_path)
    with pytest.raises(FileFormatError, match=says):
        TrainedModel.load(tmp_path)


@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
def test_a_missing_file_is_named(model: TrainedModel, tmp_path: Path, name: str) -> None:
    model.save(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(MissingFileError, match=f"does not contain a complete model: {name} is missing"):
        TrainedModel.load(tmp_path)


def test_a_record_beyond_all_measure_is_not_read(
    model: TrainedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.save(tmp_path)
    monkeypatch.setattr("rarenode.training.model_folder.MOST_RECORD_BYTES", 1000)
    with pytest.raises(FileFormatError, match="more than 1,000 bytes"):
        TrainedModel.load(tmp_path)


def test_the_weights_of_a_blend_name_what_was_left_out() -> None:
    ours = make_hierarchical(rows=200, nodes=12, depth=3, features=4).train
    how: dict[str, Any] = {"hidden_size": 8, "n_trees": 3, "epochs": 1, "holdout": 0.3, "n_jobs": 1}
    learned = fit_model(ours, Settings(**how)).model
    assert list(learned.blend_weights) == ["mlp", "forest", "neighbours"]
    parts = [part.kind for part in learned.parts]
    assert [kind for kind, weight in learned.blend_weights.items() if weight > 0] == parts
    assert fit_model(ours, Settings(**how, blend="geometric")).model.blend_weights == {}
    assert fit_model(ours, Settings(**how, model="forest")).model.blend_weights == {}


@pytest.mark.parametrize("thresholds", ["prior", "midpoint"])
def test_together_by_the_prior_of_the_training_rows(thresholds: str) -> None:
    drawn = make_hierarchical(rows=200, nodes=12, depth=3, features=4)
    model = train_model(drawn.train, Settings(model="forest", n_trees=3))
    probs = model.predict_proba(drawn.test.X)
    prior = drawn.train.Y.mean(axis=0)
    expected = make_strategy(thresholds).fit(probs, prior=prior).decide(probs, drawn.hierarchy)
    np.testing.assert_array_equal(model.predict_together(drawn.test.X, thresholds), expected)


def test_the_prior_is_a_share_of_the_rows_where_a_node_is_known(tmp_path: Path) -> None:
    """As in the fit, so the thresholds fitted to the same probabilities are the same."""
    drawn = make_hierarchical(rows=300, nodes=12, depth=2, features=4)
    some = np.random.default_rng(0).random(drawn.train.Y.shape) < np.linspace(0.05, 1, len(drawn.hierarchy))
    partly = replace(drawn.train, known=drawn.train.Y | some)
    model = train_model(partly, Settings(model="forest", n_trees=3))
    model.save(tmp_path)
    probs = model.predict_proba(drawn.test.X)
    prior = partly.Y.sum(axis=0) / partly.known.sum(axis=0)  # type: ignore[union-attr]
    expected = make_strategy("prior").fit(probs, prior=prior)
    for each in (model, TrainedModel.load(tmp_path)):
        np.testing.assert_array_equal(each.thresholds_for(probs, "prior").values, expected.values)
    edit(lambda r: r.pop("prior"))(tmp_path)  # as an older rarenode wrote it
    older = make_strategy("prior").fit(probs, prior=model.training_positives / model.n_training_rows)
    np.testing.assert_array_equal(TrainedModel.load(tmp_path).thresholds_for(probs, "prior").values, older.values)
    assert (older.values != expected.values).any()
