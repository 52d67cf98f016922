"""How much a fit takes: what the estimate counts, and how it is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rarenode import Dataset, Settings, make_hierarchical
from rarenode.data.images import Images
from rarenode.training.embedding import embed
from rarenode.training.estimate import EncodingEstimate, FitEstimate, estimate_encoding, estimate_fit
from tests.encoders import cache, plain_encoder, reef

__all__ = ["cache", "reef"]


@pytest.fixture(scope="module")
def data() -> Dataset:
    return make_hierarchical(rows=200, nodes=12, depth=3, features=4).train


def test_trainings(data: Dataset) -> None:
    small: dict[str, Any] = {"hidden_size": 8, "n_trees": 2, "epochs": 1}
    assert estimate_fit(data, Settings(**small)).trainings == 4
    assert estimate_fit(data, Settings(**small, cv=2)).trainings == 3
    assert estimate_fit(data, Settings(**small, holdout=0.3)).trainings == 1
    assert estimate_fit(data, Settings(**small)).seconds is None
    assert estimate_fit(data, Settings(**small), has_validation_rows=True).trainings == 1


def test_memory_grows_with_what_takes_it(data: Dataset) -> None:
    base = Settings(hidden_size=8, n_trees=2, epochs=1)
    least = estimate_fit(data, base).bytes
    assert least > 400 << 20
    for changed in (
        estimate_fit(data, base.changed(hidden_size=900)),
        estimate_fit(data, base.changed(n_members=50)),
        estimate_fit(data, base.changed(n_trees=900)),
        estimate_fit(replace(data, known=data.Y | (np.arange(len(data)) % 2 == 0)[:, None]), base),
        estimate_fit(replace(data, X=np.zeros((len(data), 400)), feature_names=None), base),
    ):
        assert changed.bytes > least
    assert estimate_fit(data.take(np.arange(50)), base).bytes < least
    known = np.ones(data.Y.shape, dtype=np.bool_)
    known[50:] = False
    some = replace(data, known=known, Y=data.Y & known)
    assert estimate_fit(some, base).bytes == estimate_fit(data.take(np.arange(50)), base).bytes


def test_time_with_pictures(reef: Path) -> None:
    """Nothing is encoded for it."""
    pictures = Dataset.read(reef / "labels.csv", images=reef, labels="taxa", ignore=["partition"])
    quick = Settings(hidden_size=8, n_trees=2, epochs=1, holdout=0.3, engine="torch")
    found = estimate_fit(pictures, quick, try_it=True, encoder=plain_encoder())
    assert found.seconds is not None
    assert found.seconds > 0
    assert "one training, at most about 1 minute after pictures are encoded, about" in str(found)
    assert estimate_fit(pictures, quick, try_it=True, encoder=plain_encoder()).bytes == found.bytes
    assert estimate_fit(pictures, quick.changed(train_encoder=True), try_it=True).seconds is None
    assert "encoded" not in str(estimate_fit(pictures, quick))


def test_time_is_that_of_every_training(data: Dataset) -> None:
    quick = Settings(hidden_size=8, n_trees=2, epochs=1, holdout=0.3, engine="torch")
    found = estimate_fit(data, quick, try_it=True)
    assert found.seconds is not None
    assert found.seconds > 0
    longer = estimate_fit(data, quick.changed(epochs=10_000), try_it=True).seconds
    assert longer is not None
    assert longer > 100 * found.seconds


@pytest.mark.parametrize(
    ("estimate", "said"),
    [
        (FitEstimate(5_000_000, 1), "one training, about 0.1 GB of memory"),
        (FitEstimate(2_340_000_000, 4), "4 trainings, about 2.3 GB of memory"),
        (FitEstimate(10**9, 4, 5.0), "4 trainings, at most about 1 minute, about 1.0 GB of memory"),
        (FitEstimate(10**9, 1, 600.0), "one training, at most about 10 minutes, about 1.0 GB of memory"),
        (FitEstimate(10**9, 1, 9000.0), "one training, at most about 2.5 hours, about 1.0 GB of memory"),
    ],
)
def test_how_it_is_said(estimate: FitEstimate, said: str) -> None:
    assert str(estimate) == said


@pytest.mark.parametrize(
    ("estimate", "said"),
    [
        (EncodingEstimate(1200, 20), "20 of 1,200 pictures are in the cache"),
        (EncodingEstimate(60, 60, 0.0), "60 of 60 pictures are in the cache"),
        (EncodingEstimate(9, 0, 3.0), "0 of 9 pictures are in the cache, encoding the others takes less than a minute"),
        (EncodingEstimate(9, 1, 190.0), "1 of 9 pictures are in the cache, encoding the others takes about 3 minutes"),
        (EncodingEstimate(9, 1, 9e3), "1 of 9 pictures are in the cache, encoding the others takes about 2.5 hours"),
    ],
)
def test_encoding_in_words(estimate: EncodingEstimate, said: str) -> None:
    assert str(estimate) == said


def test_encoding_takes_longer_for_more_pictures(reef: Path, cache: Path) -> None:
    images, encoder = Images.below(reef / "images"), plain_encoder()
    before = estimate_encoding([images[:20], images[20:]], encoder, try_it=True)
    assert (before.pictures, before.in_cache) == (60, 0)
    assert before.seconds is not None
    assert before.seconds > 0
    known = estimate_encoding([images], encoder)
    assert 0 < known.in_cache < 60
    assert known.seconds is None
    embed(images, encoder)
    assert estimate_encoding([images], encoder, try_it=True) == EncodingEstimate(60, 60)
