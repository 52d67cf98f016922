"""The estimator on pictures: scikit-learn's face of the same model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone

from rarenode import RareNodeClassifier
from rarenode.data.images import Images
from rarenode.data.reef import draw_reef
from rarenode.errors import ArgumentError, DataError
from rarenode.models.pretrained import load_encoder
from tests.encoders import SIZE, encoder_folder, plain_encoder, reef

__all__ = ["encoder_folder", "reef"]
SMALL: dict[str, Any] = {
    "hidden_size": 12, "n_trees": 5, "epochs": 2, "holdout": 0.3, "patience": None, "n_jobs": 1, "random_state": 0,
}  # fmt: skip


@pytest.fixture(scope="module")
def rows(reef: Path) -> tuple[list[Path], Any, Any]:
    drawn = draw_reef(rows=60, size=16, seed=1)  # the same labels at every size
    return sorted((reef / "images").iterdir()), drawn.Y, drawn.hierarchy


def test_every_form_of_pictures_and_encoders(rows: Any, encoder_folder: Path, reef: Path, tmp_path: Path) -> None:
    paths, Y, tree = rows
    named = RareNodeClassifier(tree, encoder=str(encoder_folder), image_size=SIZE, **SMALL).fit(paths, Y)
    expected = named.predict_proba(paths)
    assert expected.shape == Y.shape
    names = [str(path) for path in paths]
    for X in (Images.from_paths(paths), names, reef / "images", np.array(names), pd.Series(names)):
        assert (named.predict_proba(X) == expected).all()
    assert (clone(named).fit(pd.Series(names), Y).predict_proba(paths) == expected).all()
    assert (named.predict_proba(paths[3:4]) == expected[3]).all()
    encoder = load_encoder(str(encoder_folder), size=SIZE)
    given = RareNodeClassifier(tree, encoder=encoder, **SMALL).fit(Images.from_paths(paths), Y)
    assert (given.predict_proba(paths) == expected).all()
    assert (clone(given).fit(paths, Y).predict_proba(paths) == expected).all()
    assert given.score(paths, Y) == named.score(paths, Y)
    named.save(tmp_path / "model")
    loaded = RareNodeClassifier.load(tmp_path / "model")
    assert (loaded.predict_proba(paths) == expected).all()
    assert (loaded.predict(paths) == named.predict(paths)).all()


def test_a_torch_module(rows: Any, tmp_path: Path) -> None:
    paths, Y, tree = rows
    module = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten())
    classifier = RareNodeClassifier(tree, encoder=module, **SMALL).fit(paths, Y)
    expected = classifier.predict_proba(paths)
    classifier.save(tmp_path / "model")
    with pytest.raises(DataError, match=r"encoder=\.\.\."):
        RareNodeClassifier.load(tmp_path / "model")
    loaded = RareNodeClassifier.load(tmp_path / "model", encoder=module)
    nothing: list[Any] = [[], (), np.array([])]
    for none in nothing:
        with pytest.raises(DataError, match="X has no pictures"):
            loaded.predict(none)
    assert (loaded.predict_proba(paths) == expected).all()
    for wrong, told in ((torch.nn.Flatten, "Flatten is a class"), (torch.nn.Identity(), r"returned the shape \(1, 3,")):
        with pytest.raises(ArgumentError, match=told):
            RareNodeClassifier(tree, encoder=wrong, **SMALL).fit(paths, Y)


@pytest.mark.parametrize("train_encoder", [False, True])
def test_another_torch_module_with_the_same_weights(rows: Any, tmp_path: Path, train_encoder: bool) -> None:
    paths, Y, tree = rows

    def module(seed: int, activation: type[torch.nn.Module]) -> torch.nn.Module:
        torch.manual_seed(seed)
        convolution, normalisation = torch.nn.Conv2d(3, 5, 3, stride=2), torch.nn.BatchNorm2d(5)
        pooled = torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()
        return torch.nn.Sequential(convolution, normalisation, activation(), *pooled)

    how = SMALL | {"model": "mlp", "train_encoder": train_encoder, "image_size": 16}
    classifier = RareNodeClassifier(tree, encoder=module(0, torch.nn.ReLU), **how).fit(paths, Y)
    classifier.save(tmp_path / "model")
    same = RareNodeClassifier.load(tmp_path / "model", encoder=module(1, torch.nn.ReLU))  # a warning would be an error
    assert (same.predict_proba(paths) == classifier.predict_proba(paths)).all()
    for other in (torch.nn.Tanh, torch.nn.GELU, torch.nn.Identity):
        with pytest.warns(RuntimeWarning, match="computes other numbers than that of the fit"):
            RareNodeClassifier.load(tmp_path / "model", encoder=module(0, other))


@pytest.mark.parametrize("train_encoder", [False, True])
def test_the_module_itself_stays_as_it_is(rows: Any, train_encoder: bool) -> None:
    paths, Y, tree = rows
    parts = torch.nn.Conv2d(3, 5, 3), torch.nn.BatchNorm2d(5).eval(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()
    module = torch.nn.Sequential(*parts)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    how = SMALL | {"model": "mlp", "train_encoder": train_encoder, "image_size": 16}
    RareNodeClassifier(tree, encoder=module, **how).fit(paths, Y).predict(paths)
    assert [part.training for part in (module, *parts)] == [True, True, False, True, True]
    assert parts[0].weight.is_contiguous()
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def test_validation_pictures(rows: Any) -> None:
    paths, Y, tree = rows
    how = SMALL | {"holdout": None, "patience": 1}
    classifier = RareNodeClassifier(tree, encoder=plain_encoder(size=8), **how)
    classifier.fit(paths[:40], Y[:40], eval_set=(paths[40:], Y[40:]))
    assert all(record.valid is not None for record in classifier.history_)


def test_pictures_and_tables_are_not_mixed_up(rows: Any) -> None:
    paths, Y, tree = rows
    classifier = RareNodeClassifier(tree, encoder=plain_encoder(size=8), **SMALL).fit(paths, Y)
    with pytest.raises(ValueError, match=r"features"):
        classifier.predict(np.zeros((2, 3)))
    tables = RareNodeClassifier(tree, **SMALL).fit(np.random.default_rng(0).random((len(Y), 3)), Y)
    with pytest.raises(DataError, match="trained on tables, and cannot predict pictures"):
        tables.predict(paths)
    with pytest.raises(ValueError, match="60"):
        classifier.fit(paths[:-1], Y)
    with pytest.raises(DataError, match=r"gone\.png: there is no such file"):
        classifier.predict([*paths[:2], Path("gone.png")])
