"""The 18 datasets, counted a second time by a reader that shares nothing with ours, against the paper and pinned."""

from __future__ import annotations

import os
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from rarenode import Dataset, DatasetSplits, Hierarchy, load_dataset
from rarenode.paper import load_as_published

GENES = ("cellcycle", "derisi", "eisen", "expr", "gasch1", "gasch2", "seq", "spo")
NAMES = (
    *(f"{gene}_{kind}{'_rebuilt' if gene == 'expr' else ''}" for kind in ("FUN", "GO") for gene in GENES),
    "enron",
    "diatoms",
)
UNSCORED = {"root", "GO0003674", "GO0005575", "GO0008150"}


class Counts(NamedTuple):
    """Each of rows and positives: train, validation (None where there is none), test. Positives count closed labels."""

    rows: tuple[int, int | None, int]
    features: int
    nodes: int
    edges: int
    scored: int
    positives: tuple[int, int | None, int]


PINNED: dict[str, Counts] = {
    "cellcycle_FUN": Counts((1628, 848, 1281), 77, 500, 499, 499, (15826, 8132, 12702)),
    "derisi_FUN": Counts((1608, 842, 1275), 63, 500, 499, 499, (15702, 8094, 12662)),
    "eisen_FUN": Counts((1058, 529, 837), 79, 462, 461, 461, (10797, 5320, 8609)),
    "expr_FUN_rebuilt": Counts((1639, 849, 1291), 561, 500, 499, 499, (15890, 8139, 12764)),
    "gasch1_FUN": Counts((1634, 846, 1284), 173, 500, 499, 499, (15853, 8112, 12700)),
    "gasch2_FUN": Counts((1639, 849, 1291), 52, 500, 499, 499, (15890, 8139, 12764)),
    "seq_FUN": Counts((1701, 879, 1339), 529, 500, 499, 499, (16225, 8241, 12965)),
    "spo_FUN": Counts((1600, 837, 1266), 86, 500, 499, 499, (15592, 8041, 12575)),
    "cellcycle_GO": Counts((1625, 848, 1278), 77, 4126, 5827, 4122, (57979, 29437, 47281)),
    "derisi_GO": Counts((1605, 842, 1272), 63, 4120, 5821, 4116, (57400, 29344, 47130)),
    "eisen_GO": Counts((1055, 528, 835), 79, 3574, 5037, 3570, (41067, 20085, 33251)),
    "expr_GO_rebuilt": Counts((1636, 849, 1288), 561, 4132, 5837, 4128, (58262, 29471, 47601)),
    "gasch1_GO": Counts((1631, 846, 1281), 173, 4126, 5827, 4122, (58121, 29356, 47361)),
    "gasch2_GO": Counts((1636, 849, 1288), 52, 4132, 5837, 4128, (58262, 29471, 47601)),
    "seq_GO": Counts((1692, 876, 1332), 529, 4134, 5839, 4130, (59904, 30120, 48744)),
    "spo_GO": Counts((1597, 837, 1263), 86, 4120, 5821, 4116, (57071, 29143, 46763)),
    "enron": Counts((988, None, 660), 1001, 57, 56, 56, (6041, None, 4342)),
    "diatoms": Counts((2065, None, 1054), 371, 399, 398, 398, (6085, None, 3110)),
}

# The paper's tables: input size, output size for FunCat and for GO; and its sentence on the other two.
PAPER_GENES = {
    "cellcycle": (77, 499, 4122),
    "derisi": (63, 499, 4116),
    "eisen": (79, 461, 3570),
    "expr": (561, 499, 4128),
    "gasch1": (173, 499, 4122),
    "gasch2": (52, 499, 4128),
    "seq": (529, 499, 4130),
    "spo": (86, 499, 4116),
}
PAPER_OTHERS = {"enron": (1000, 56), "diatoms": (371, 398)}


# --- the other reader ----------------------------------------------------------------------------------------------


class Raw(NamedTuple):
    names: list[str]
    choices: list[list[str] | None]  # the values of a nominal attribute, None for a number
    classes: list[str]
    rows: list[list[str]]
    labels: list[list[str]]

    def feature_names(self) -> list[str]:
        return [
            f"{name}={value}" if value is not None else name
            for name, values in zip(self.names, self.choices, strict=True)
            for value in (values or [None])  # type: ignore[list-item]
        ]

    def matrix(self) -> NDArray[np.float64]:
        columns: list[list[float]] = []
        for j, values in enumerate(self.choices):
            cells = [row[j] for row in self.rows]
            if values is None:
                columns.append([np.nan if cell == "?" else float(cell) for cell in cells])
            else:
                columns.extend([float(cell == value) for cell in cells] for value in values)
        return np.array(columns).T


def read(path: Path) -> Raw:
    raw = Raw([], [], [], [], [])
    in_data = False
    for line in path.read_text(encoding="utf-8").splitlines():
        if in_data and line.strip():
            *cells, labels = line.strip().split(",")
            raw.rows.append(cells)
            raw.labels.append(labels.split("@"))
        elif line.upper().startswith("@DATA"):
            in_data = True
        elif line.upper().startswith("@ATTRIBUTE"):
            _, name, kind = line.split(maxsplit=2)
            if kind.startswith("hierarchical"):
                raw.classes.extend(kind.split(maxsplit=1)[1].strip().split(","))
            else:
                raw.names.append(name)
                raw.choices.append(kind.strip(" {}").split(",") if kind.startswith("{") else None)
    return raw


def files_of(name: str) -> tuple[Path, Path | None, Path]:
    root = Path(os.environ["RARENODE_DATA"])
    if name == "enron":
        return root / "HMC_data/others/Enron_corr_trainvalid.arff", None, root / "HMC_data/others/Enron_corr_test.arff"
    if name == "diatoms":
        return root / "HMC_data/others/Diatoms_train.arff", None, root / "HMC_data/others/Diatoms_test.arff"
    plain = name.removesuffix("_rebuilt")
    folder = root / "HMC_data" / f"datasets_{plain.partition('_')[2]}" / plain
    train = folder if plain == name else root / "HMC_data_reconstructed" / plain
    return train / f"{plain}.train.arff", folder / f"{plain}.valid.arff", folder / f"{plain}.test.arff"


def edges_of(raw: Raw, name: str) -> set[tuple[str, str]]:
    if "_GO" in name:
        return {(parent, child) for parent, child in (entry.split("/") for entry in raw.classes)}
    edges: set[tuple[str, str]] = set()
    for entry in raw.classes:
        steps = entry.split("/")
        path = ["root", *("/".join(steps[: i + 1]) for i in range(len(steps)))]
        edges.update(pairwise(path))
    return edges


def with_ancestors(labels: list[str], above: dict[str, set[str]]) -> set[str]:
    closed: set[str] = set()
    waiting = list(labels)
    while waiting:
        label = waiting.pop()
        if label not in closed:
            closed.add(label)
            waiting.extend(above.get(label, ()))
    return closed


def parents_by_child(edges: set[tuple[str, str]]) -> dict[str, set[str]]:
    above: dict[str, set[str]] = {}
    for parent, child in edges:
        above.setdefault(child, set()).add(parent)
    return above


def splits(dataset: DatasetSplits) -> list[Dataset]:
    return [split for split in (dataset.train, dataset.valid, dataset.test) if split is not None]


def triple(numbers: list[int]) -> tuple[int, int | None, int]:
    return (numbers[0], numbers[1] if len(numbers) == 3 else None, numbers[-1])


# --- tests ---------------------------------------------------------------------------------------------------------


def test_the_pinned_sizes_are_the_papers() -> None:
    assert set(PINNED) == set(NAMES)
    for gene, (features, fun, go) in PAPER_GENES.items():
        suffix = "_rebuilt" if gene == "expr" else ""
        for kind, outputs in (("FUN", fun), ("GO", go)):
            counts = PINNED[f"{gene}_{kind}{suffix}"]
            assert (counts.features, counts.scored) == (features, outputs)
            assert counts.nodes == outputs + (1 if kind == "FUN" else 4)
    for name, (features, outputs) in PAPER_OTHERS.items():
        assert PINNED[name].scored == outputs
        assert PINNED[name].features == features + (1 if name == "enron" else 0)  # Enron's files have one more


@pytest.mark.real_data
@pytest.mark.parametrize("name", NAMES)
def test_a_dataset_holds_what_its_files_hold(name: str) -> None:
    raws = [read(path) for path in files_of(name) if path is not None]
    edges = edges_of(raws[0], name)
    above = parents_by_child(edges)
    nodes = {end for edge in edges for end in edge}
    closed = [[with_ancestors(labels, above) for labels in raw.labels] for raw in raws]
    counted = Counts(
        rows=triple([len(raw.rows) for raw in raws]),
        features=len(raws[0].feature_names()),
        nodes=len(nodes),
        edges=len(edges),
        scored=len(nodes - UNSCORED),
        positives=triple([sum(map(len, rows)) for rows in closed]),
    )
    assert counted == PINNED[name]
    assert all(edges_of(raw, name) == edges for raw in raws)

    dataset = load_dataset(name)
    hierarchy = dataset.hierarchy
    loaded = Counts(
        rows=triple([len(split.X) for split in splits(dataset)]),
        features=dataset.train.n_features,
        nodes=len(hierarchy),
        edges=len(hierarchy.edges),
        scored=int(dataset.scored.sum()),
        positives=triple([int(split.Y.sum()) for split in splits(dataset)]),
    )
    assert loaded == counted
    assert (dataset.valid is None) == (name in PAPER_OTHERS)
    assert dataset.name == name
    assert hierarchy == Hierarchy.from_edges(edges)
    assert {hierarchy.nodes[j] for j in np.flatnonzero(~dataset.scored)} == nodes & UNSCORED
    assert dataset.feature_names is not None
    assert len(set(dataset.feature_names)) == counted.features
    for ours, theirs in zip(dataset.feature_names, raws[0].feature_names(), strict=True):
        assert ours == theirs or ours.startswith(f"{theirs}#")  # two files use a name twice

    for split, rows in zip(splits(dataset), closed, strict=True):
        assert split.X.shape == (len(rows), counted.features)
        assert split.X.dtype == np.float64
        assert not np.isinf(split.X).any()
        assert split.Y.shape == (len(rows), counted.nodes)
        assert split.Y.dtype == np.bool_
        by_node = Counter(label for labels in rows for label in labels)
        assert dict(zip(hierarchy.nodes, split.Y.sum(axis=0).tolist(), strict=True)) == {n: by_node[n] for n in nodes}
        for row in {0, 1, len(rows) // 3, len(rows) // 2, len(rows) - 2, len(rows) - 1}:
            for node in nodes:
                assert split.Y[row, hierarchy.index[node]] == (node in rows[row]), (row, node)


def fill_with_own_mean(X: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(np.isnan(X), np.nanmean(X, axis=0), X)


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["cellcycle_FUN", "seq_FUN"])
def test_features_as_published(name: str) -> None:
    """Missing numbers take their own split's mean; then train + validation give mean and deviation."""
    filled = [fill_with_own_mean(read(path).matrix()) for path in files_of(name) if path is not None]
    both = np.concatenate(filled[:2])
    deviation = both.std(axis=0)
    deviation[deviation == 0] = 1
    for split, X in zip(splits(load_as_published(name)), filled, strict=True):
        expected = ((X - both.mean(axis=0)) / deviation).astype(np.float32)
        np.testing.assert_allclose(split.X, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.real_data
def test_features_without_a_validation_file() -> None:
    train, test = (read(path).matrix() for path in files_of("enron") if path is not None)
    assert not np.isnan(train).any()
    deviation = train.std(axis=0)
    deviation[deviation == 0] = 1
    dataset = load_as_published("enron")
    for split, X in ((dataset.train, train), (dataset.test, test)):
        np.testing.assert_allclose(split.X, (X - train.mean(axis=0)) / deviation, rtol=1e-4, atol=1e-4)


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["spo_FUN", "cellcycle_FUN"])
def test_features_as_they_are_in_the_file(name: str) -> None:
    """Missing values are missing."""
    dataset = load_dataset(name)
    for split, path in zip(splits(dataset), files_of(name), strict=True):
        assert path is not None
        np.testing.assert_array_equal(split.X, read(path).matrix())


@pytest.mark.real_data
def test_features_without_leakage_depend_on_the_training_rows_alone() -> None:
    """The training columns have mean 0, a missing number becomes that mean, and all splits are moved alike."""
    dataset = load_dataset("cellcycle_FUN", prepare="no_leakage")
    raws = [read(path).matrix() for path in files_of("cellcycle_FUN") if path is not None]
    np.testing.assert_allclose(dataset.train.X.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(dataset.train.X.std(axis=0), 1, atol=0.2)
    mean = np.nanmean(raws[0], axis=0)
    for split, raw in zip(splits(dataset), raws, strict=True):
        missing = np.isnan(raw)
        assert missing.any()
        np.testing.assert_allclose(split.X[missing], 0, atol=1e-5)
        known = ~missing & (np.abs(raw - mean) > 0.05)
        scale = np.where(known, (raw - mean) / np.where(known, split.X, 1), np.nan)
        np.testing.assert_allclose(np.nanmin(scale, axis=0), np.nanmax(scale, axis=0), rtol=1e-3)


@pytest.mark.real_data
def test_the_folder_may_be_given_in_place_of_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = os.environ["RARENODE_DATA"]
    monkeypatch.delenv("RARENODE_DATA")
    assert load_dataset("eisen_FUN", root=Path(folder)).train.X.shape == (1058, 79)
