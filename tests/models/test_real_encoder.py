"""A real encoder on real pictures: a ResNet-50 and plankton, where they are at hand."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rarenode.data.decoding import Crop, decode
from rarenode.data.images import ImageFile, Images
from rarenode.models.encoder import Encoder
from rarenode.models.pretrained import load_encoder
from rarenode.training.embedding import embeddings, pixels
from tests.encoders import plankton, weights_folder

pytestmark = pytest.mark.real_data
CLASSES = ("chaetognath_other", "protist_other", "acantharia_protist")
OF_EACH = 50


@cache
def encoder() -> Encoder:
    pytest.importorskip("transformers")
    return load_encoder(str(weights_folder()), size=64)


@cache
def rows() -> tuple[Images, NDArray[np.int64]]:
    """As many pictures of each class."""
    table, archive = plankton()
    frame = pl.read_csv(table).with_columns(pl.col("image").str.split("/").list.first().alias("kind"))
    names, kinds = [], []
    for number, kind in enumerate(CLASSES):
        names += frame.filter(pl.col("kind") == kind)["image"].to_list()[:OF_EACH]
        kinds += [number] * OF_EACH
    return Images(ImageFile(archive, name) for name in names), np.array(kinds)


def test_it_is_what_it_should_be() -> None:
    whole = load_encoder(str(weights_folder()))
    assert (whole.crop, whole.width, whole.is_pretrained) == (Crop(256, 224), 2048, True)
    assert load_encoder(str(weights_folder()), size=64).fingerprint == encoder().fingerprint


def test_embeddings_are_the_same_alone_and_together() -> None:
    images, _ = rows()
    some = pixels(images[:11], encoder().crop)
    together = encoder().encode(some)
    assert np.isfinite(together).all()
    assert together.std(axis=0).max() > 0.01
    for row in (0, 7, 8, 10):
        assert (encoder().encode(some[row : row + 1]) == together[row]).all()
    assert (embeddings(images[:11], encoder()) == together).all()


def histograms(images: Images) -> NDArray[np.float64]:
    """How often each level of each colour is in a picture."""
    counts: list[Any] = []
    for file in images.files:
        values = np.asarray(decode(file.read()).image).reshape(-1, 3)
        counts.append([np.histogram(values[:, channel], 16, (0, 256))[0] / len(values) for channel in range(3)])
    return np.array(counts).reshape(len(images), -1)


def test_embeddings_tell_more_than_colours() -> None:
    images, kinds = rows()
    judge = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=500))
    by_shape = cross_val_score(judge, embeddings(images, encoder()), kinds, cv=5).mean()
    by_colour = cross_val_score(judge, histograms(images), kinds, cv=5).mean()
    assert by_shape > by_colour + 0.05
    assert by_shape > 0.75
