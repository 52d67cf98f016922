"""Synthetic data that are hard in the way real ones are.

A hierarchy is drawn level by level. Children share their parent's rows by a Zipf law, so deep nodes are rare and the
tail is long. A row draws several labels; each walks down from the top and may stop half-way. A node shifts the
features of its rows in its own direction, by less the deeper it lies, and all rows share Gaussian noise. Deep
nodes can then be *ranked* far better than by chance, but hardly ever reach a probability of one half: a plainly
trained model at threshold 0.5 does not predict them.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rarenode.data.dataset import Dataset, DatasetSplits
from rarenode.errors import ArgumentError
from rarenode.hierarchy import Hierarchy

Shape = Literal["tree", "dag"]

SECOND_PARENTS = 0.3
"""Share of a DAG's nodes below the top that get a second parent."""


def make_hierarchical(
    rows: int = 3000,
    *,
    nodes: int = 200,
    depth: int = 5,
    shape: Shape = "tree",
    hierarchy: Hierarchy | None = None,
    features: int = 50,
    labels_per_row: float = 2.0,
    tail: float = 1.0,
    stop: float = 0.15,
    noise: float = 2.0,
    seed: int = 0,
) -> DatasetSplits:
    """Draw a hierarchical multi-label dataset; half of the rows train, a quarter each validate and test.

    Args:
        rows: rows of all splits together.
        nodes: nodes of the hierarchy; there is no artificial root.
        depth: levels of the hierarchy; the deepest nodes have the depth ``depth - 1``.
        shape: ``tree``, or ``dag``, where about a third of the nodes have two parents.
        hierarchy: one of your own; then ``nodes``, ``depth`` and ``shape`` do not matter.
        features: columns of X.
        labels_per_row: mean number of labels that a row draws, at least 1; their ancestors come on top.
        tail: exponent of the Zipf law by which children share their parent's rows; 0 shares evenly.
        stop: the chance that a label goes no deeper, at every node that has children.
        noise: deviation of the noise on each feature, where that of the signal is 1.
        seed: decides everything.

    Returns:
        `DatasetSplits` named ``synthetic``, with every node scored.

    >>> make_hierarchical(rows=100, nodes=20, depth=3)
    <DatasetSplits synthetic: 50/25/25 rows, 50 features, <Hierarchy: tree of 20 nodes and 17 edges, depth 2>>
    """
    _check(rows, nodes, depth, shape, features, labels_per_row, tail, stop, noise)
    rng = np.random.default_rng(seed)
    if hierarchy is None:
        hierarchy = _draw_hierarchy(rng, nodes, depth, shape)
    Y = _draw_labels(rng, hierarchy, rows, labels_per_row, tail, stop)
    X = _draw_features(rng, hierarchy, Y, features, noise)

    train, valid, test = np.split(np.arange(rows), [rows // 2, rows // 2 + rows // 4])
    whole = Dataset(
        X=X,
        Y=Y,
        hierarchy=hierarchy,
        scored=np.ones(len(hierarchy), dtype=np.bool_),
        feature_names=tuple(f"x{column}" for column in range(features)),
        name="synthetic",
    )
    return DatasetSplits("synthetic", whole.take(train), whole.take(valid), whole.take(test))


def _draw_hierarchy(rng: np.random.Generator, nodes: int, depth: int, shape: Shape) -> Hierarchy:
    """Levels grow downwards; a node is named by its path, as in ``2/1/4``."""
    growth = np.arange(1, depth + 1, dtype=np.float64)
    sizes = 1 + np.floor((nodes - depth) * growth / growth.sum()).astype(int)
    sizes[-1] += nodes - sizes.sum()
    levels = [[str(place + 1) for place in range(sizes[0])]]
    edges: list[tuple[str, str]] = []
    for size in sizes[1:].tolist():
        above = levels[-1]
        family = rng.integers(len(above), size=size)
        born = [0] * len(above)
        here = []
        for first in family.tolist():
            born[first] += 1
            child = f"{above[first]}/{born[first]}"
            here.append(child)
            edges.append((above[first], child))
            if shape == "dag" and len(above) > 1 and rng.random() < SECOND_PARENTS:
                second = (first + int(rng.integers(1, len(above)))) % len(above)
                edges.append((above[second], child))
        levels.append(here)
    return Hierarchy.from_edges(edges, nodes=levels[0])


def _draw_labels(
    rng: np.random.Generator, hierarchy: Hierarchy, rows: int, labels_per_row: float, tail: float, stop: float
) -> NDArray[np.bool_]:
    """Walks from the top downwards; each leaves its last node as a label."""
    below = [np.array([hierarchy.index[c] for c in hierarchy.children(name)]) for name in hierarchy.nodes]
    top = np.array([hierarchy.index[name] for name in hierarchy.roots])
    # For each node its children in random order, and the running total of their shares: most of the rows to the first.
    choices = [(rng.permutation(children).tolist(), _shares(len(children), tail)) for children in [top, *below]]
    Y = np.zeros((rows, len(hierarchy)), dtype=np.bool_)
    for row, count in enumerate((1 + rng.poisson(labels_per_row - 1, size=rows)).tolist()):
        for _ in range(count):
            node = -1  # above the top; choices[node + 1] are the children of a node
            while choices[node + 1][0] and (node < 0 or rng.random() >= stop):
                children, shares = choices[node + 1]
                node = children[bisect_right(shares, rng.random())]
            Y[row, node] = True
    return hierarchy.close(Y)


def _shares(count: int, tail: float) -> list[float]:
    """Running total of Zipf shares, without its last value, 1."""
    weight = np.arange(1, count + 1, dtype=np.float64) ** -tail
    running: list[float] = (np.cumsum(weight) / max(weight.sum(), 1e-300))[:-1].tolist()
    return running


def _draw_features(
    rng: np.random.Generator, hierarchy: Hierarchy, Y: NDArray[np.bool_], features: int, noise: float
) -> NDArray[np.float64]:
    shift = rng.standard_normal((len(hierarchy), features)) / np.sqrt(1 + hierarchy.depth)[:, None]
    signal = Y.astype(np.float64) @ shift
    signal /= max(signal.std(), 1e-300)  # so that the noise means the same for every hierarchy
    return signal + noise * rng.standard_normal(signal.shape)


def _check(
    rows: int,
    nodes: int,
    depth: int,
    shape: str,
    features: int,
    labels_per_row: float,
    tail: float,
    stop: float,
    noise: float,
) -> None:
    problems = {
        "rows must be at least 4": rows < 4,
        "depth must be at least 1": depth < 1,
        f"nodes must be at least depth ({depth})": nodes < depth,
        "features must be at least 1": features < 1,
        "labels_per_row must be at least 1": not labels_per_row >= 1,
        "tail must be at least 0": not tail >= 0,
        "stop must lie between 0 and 1": not 0 <= stop <= 1,
        "noise must be at least 0": not noise >= 0,
        f"shape must be one of {', '.join(get_args(Shape))}": shape not in get_args(Shape),
    }
    for problem, is_there in problems.items():
        if is_there:
            raise ArgumentError(problem)
