"""Datasets of pictures for the paper's experiments on images, and the encoders that look at them.

=============  ======================================================================================================
reef           3,000 pictures of 128 pixels that `rarenode.make_reef` draws: the 13 nodes of BenthicNet-E, several
               animals in a picture. Drawn once, into the user's cache folder
larvae         the 1,049 echinoderm larvae of PlanktonSet 1.0, a branch of 10 nodes, one label for each picture
plankton       all 24,212 pictures of PlanktonSet 1.0
benthicnet_e   the paper's own pictures, which are not public in this form: ``benthicnet_e/labels.csv`` in the folder of
               the data, with the columns image, partition and nodes (a list such as ``[0, 3]``), and its pictures in
               ``benthicnet_e/images``
=============  ======================================================================================================

The roots of a hierarchy are not scored: every picture has one. All hierarchies have a single one, but for plankton's,
where what is no plankton has its own.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from platformdirs import user_cache_path

from rarenode.config import Settings
from rarenode.config.choices import UNTRAINED
from rarenode.data.catalogue import data_root
from rarenode.data.dataset import Dataset, DatasetSplits, scored_nodes
from rarenode.data.images import Images
from rarenode.data.reef import make_reef
from rarenode.data.table_options import TableOptions
from rarenode.errors import HierarchyError, MissingFileError
from rarenode.hierarchy import Hierarchy, Terms, read_hierarchy
from rarenode.models.encoder import Encoder
from rarenode.models.pixels import PixelEncoder
from rarenode.models.pretrained import load_encoder
from rarenode.training.embedding import pixels

HYPERPARAMETERS: Mapping[str, Any] = MappingProxyType(
    {
        "n_members": 20,
        "n_layers": 3,
        "dropout": 0.7,
        "hidden_size": 2048,
        "batch_size": 128,
        "learning_rate": 1e-3,
        "weight_decay": 1e-4,
        "epochs": 20,
    }
)
"""The paper's, for heads on the embedding of a ResNet-50."""
MEAN, DEVIATION = (0.359, 0.413, 0.386), (0.219, 0.215, 0.209)
"""Of the pixels of BenthicNet, as the paper normalises them."""
WEIGHTS_VARIABLE = "RARENODE_WEIGHTS"
FOLDERS = MappingProxyType({"resnet18": "resnet-18", "resnet50": "resnet-50"})
"""What the folder of an encoder's weights is called."""
STEP = " > "
"""Between the steps of a path."""
REEF_ROWS, REEF_SIZE, REEF_SEED = 3000, 128, 0
STATISTICS_ROWS, STATISTICS_BATCH = 256, 64
"""Pictures from which statistics of batch normalisation are taken, and how many at a time."""


WIDTHS = MappingProxyType({"resnet18": 512, "resnet50": 2048, "vit": 768, "dinov2": 384})
"""Of embeddings, which the paper's heads are as wide as."""


def settings_for_pictures(encoder: str = "resnet50") -> Settings:
    """The preset ``paper`` for pictures: 20 heads, as wide as the embedding of a known encoder."""
    hidden = WIDTHS.get(encoder.removeprefix(UNTRAINED), HYPERPARAMETERS["hidden_size"])
    return Settings.preset("paper", **{**HYPERPARAMETERS, "hidden_size": hidden, "encoder": encoder})


@dataclass(frozen=True)
class PictureDataset:
    """A dataset of pictures."""

    load: Callable[[Path], Dataset]
    """From the folder of the data; the result has a partition."""
    rows: int
    """For training and validation, about."""
    nodes: int


def find_weights(name: str) -> str:
    """A folder with the weights of an encoder, if there is one in ``RARENODE_WEIGHTS`` or beside the data; or its name.
    """
    folder = FOLDERS.get(name, name)
    places = [os.environ.get(WEIGHTS_VARIABLE), data_root().parent / "weights"]
    found = (Path(place) / folder for place in places if place)
    return next((str(path) for path in found if path.is_dir()), name)


def encoder_for(settings: Settings, dataset: str, factor: float | None = None, images: Images | None = None) -> Encoder:
    """The encoder of a training.

    Args:
        settings: name it, and the size of pictures.
        dataset: decides how pixels are normalised.
        factor: the paper's training factor; see `load_encoder`.
        images: training pictures, from which an encoder with a factor takes its batch statistics.
    """
    name = settings.encoder
    plain = name.removeprefix(UNTRAINED)
    known = name.removesuffix(plain) + (plain if name.startswith(UNTRAINED) else find_weights(plain))
    found = load_encoder(known, size=settings.image_size, seed=settings.seed, factor=factor)
    if dataset == "benthicnet_e":
        found = replace(found, mean=MEAN, deviation=DEVIATION)
    return found if factor is None or images is None else with_statistics_of(found, images)


@torch.no_grad()
def with_statistics_of(encoder: Encoder, images: Images) -> Encoder:
    """The encoder with means and variances of its batch normalisation taken anew, from some of the pictures.

    Statistics that are mixed as the weights are belong to neither network: between the ends nearly all units are then 0
    for every picture, and there is nothing left to learn from. The paper does not say what it did about them.
    """
    chosen = np.random.default_rng(0).permutation(len(images))[:STATISTICS_ROWS]
    values = pixels(images[chosen], encoder.crop)
    network = PixelEncoder(copy.deepcopy(encoder.module), encoder.input).eval()
    norms = [part for part in network.modules() if isinstance(part, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the mean over all batches
        norm.train()
    for first in range(0, len(values), STATISTICS_BATCH):
        network(torch.from_numpy(values[first : first + STATISTICS_BATCH]))
    arrays = {name: value.numpy() for name, value in network.module.state_dict().items()}
    return encoder.with_arrays(arrays)


@lru_cache(maxsize=2)
def load_pictures(name: str, root: Path | None = None) -> DatasetSplits:
    """A dataset of pictures, in its parts.

    Raises:
        MissingFileError: its files are not there.
    """
    data = PICTURES[name].load(data_root(root))
    hierarchy = data.hierarchy
    return replace(data, scored=scored_nodes(hierarchy, hierarchy.roots), name=name).splits()


def fraction_of(splits: DatasetSplits, fraction: float) -> Dataset:
    """A part of the training and validation rows, the same for every method and seed; each contains the smaller ones.
    """
    rows = splits.train_and_valid
    order = np.random.default_rng(0).permutation(len(rows))
    chosen = order[: max(1, round(fraction * len(rows)))]
    return replace(rows, n_counted=None).take(chosen)


def _reef(root: Path) -> Dataset:
    folder = user_cache_path("rarenode", appauthor=False) / f"reef-{REEF_ROWS}-{REEF_SIZE}-{REEF_SEED}"
    labels = folder / "labels.csv"
    if not labels.exists():
        make_reef(folder, rows=REEF_ROWS, size=REEF_SIZE, seed=REEF_SEED)
    return _table(labels, folder, labels="taxa")


def _plankton(root: Path) -> Dataset:
    return _table(root / "plankton" / "labels.csv", root / "plankton" / "images.zip", labels="path")


def _larvae(root: Path) -> Dataset:
    """The branch below ECHINODERMS."""
    everything = _plankton(root)
    whole = everything.hierarchy
    top = next(node for node in whole.nodes if node.rpartition(STEP)[2] == "ECHINODERMS")
    branch = Hierarchy.from_edges(
        [(parent, child) for parent, child in whole.edges if parent == top or parent.startswith(f"{top}{STEP}")]
    )
    columns = [whole.index[node] for node in branch.nodes]
    rows = everything.take(np.flatnonzero(everything.Y[:, whole.index[top]]))
    return replace(rows, Y=rows.Y[:, columns], hierarchy=branch, scored=np.ones(len(branch), dtype=np.bool_))


@cache
def benthicnet_e_hierarchy() -> Hierarchy:
    """The 13 nodes of BenthicNet-E, named by their numbers."""
    with resources.as_file(resources.files("rarenode.paper") / "benthicnet_e.csv") as path:
        return read_hierarchy(path)


def hierarchy_from_names(names: Sequence[str], fingerprint: str) -> Hierarchy | None:
    """The hierarchy that has these nodes and this fingerprint; None if the names do not tell.

    Names that are paths do, and those of BenthicNet-E. Records keep names and the fingerprint, but not the edges.

    >>> tree = Hierarchy.from_paths(["a > b"])
    >>> hierarchy_from_names(tree.nodes, tree.fingerprint).titles
    ('a', 'b')
    """
    above = {name: name.rpartition(STEP)[0] for name in names}
    try:
        tree = Hierarchy.from_edges([(above[name], name) for name in names if above[name] in above], names)
    except HierarchyError:
        return None
    known = tree.with_terms(Terms(tuple(name.rpartition(STEP)[2] for name in tree.nodes))), benthicnet_e_hierarchy()
    return next((each for each in known if (each.nodes, each.fingerprint) == (tuple(names), fingerprint)), None)


def _benthicnet_e(root: Path) -> Dataset:
    folder = root / "benthicnet_e"
    return _table(folder / "labels.csv", folder / "images", labels="nodes", hierarchy=benthicnet_e_hierarchy())


def _table(table: Path, images: Path, *, hierarchy: Hierarchy | None = None, **options: Any) -> Dataset:
    if not table.exists():
        raise MissingFileError(f"{table} is not there; RARENODE_DATA names the folder that holds the data")
    from rarenode.data.readers import read  # noqa: PLC0415

    how = TableOptions(image="image", images=str(images), partition="partition", **options)
    return read(table, options=how, hierarchy=hierarchy)


PICTURES: Mapping[str, PictureDataset] = MappingProxyType(
    {
        "reef": PictureDataset(_reef, 2250, 13),
        "larvae": PictureDataset(_larvae, 800, 10),
        "plankton": PictureDataset(_plankton, 18_082, 149),
        "benthicnet_e": PictureDataset(_benthicnet_e, 5077, 13),
    }
)
"""By name."""
