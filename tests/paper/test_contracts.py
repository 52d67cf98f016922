"""The rules for losses, models and resamplers: our own keep them, and every way to break one is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from rarenode.config import Settings
from rarenode.config.choices import EPISTEMIC
from rarenode.data.dataset import Dataset
from rarenode.errors import TrainingError
from rarenode.hierarchy import Hierarchy
from rarenode.models import grow_forest
from rarenode.objective import RareNodeLoss, node_weights
from rarenode.paper import check_model, check_objective, check_resampler
from rarenode.resampling import HROSPD, LPROS
from rarenode.resampling.resampler import Resampled
from rarenode.training import train_model

FOCI = (None, "focal", "bbma", "gmu", "predictive", "aleatoric", *EPISTEMIC)
Bools = NDArray[np.bool_]


@pytest.fixture(autouse=True)
def _quick(one_thread: None) -> None:
    """Nothing here is large."""


class TestOurOwn:
    @pytest.mark.parametrize("focus", FOCI)
    def test_losses(self, focus: str | None) -> None:
        check_objective(lambda tree, Y: RareNodeLoss(tree, node_weights(Y, tree, 0.25), focus=focus))
        check_objective(lambda tree, Y: RareNodeLoss(tree, focus=focus, reduction="sum"))

    def test_a_forest(self) -> None:
        class Forest:
            def __init__(self, hierarchy: Hierarchy, seed: int) -> None:
                self.hierarchy, self.seed = hierarchy, seed

            def fit(self, X: Any, Y: Any) -> None:
                scored = np.ones(len(self.hierarchy), dtype=np.bool_)
                self.model = grow_forest(X, Y, scored=scored, trees=3, seed=self.seed, hierarchy=self.hierarchy)

            def predict_proba(self, X: Any) -> Any:
                return self.model.predict_proba(X)

        check_model(Forest)

    def test_a_network(self) -> None:
        class Network:
            def __init__(self, hierarchy: Hierarchy, seed: int) -> None:
                self.hierarchy, self.seed = hierarchy, seed

            def fit(self, X: Any, Y: Any) -> None:
                settings = Settings.preset("paper", epochs=2, hidden_size=4, seed=self.seed, engine="torch")
                self.model = train_model(Dataset.from_arrays(X, Y, self.hierarchy), settings, prepare=False)

            def predict_proba(self, X: Any) -> Any:
                return self.model.predict_proba(X)

        check_model(Network)

    def test_resamplers(self) -> None:
        check_resampler(lambda tree, seed: LPROS(seed=seed))
        check_resampler(lambda tree, seed: LPROS(rounding="textbook", seed=seed))
        check_resampler(lambda tree, seed: HROSPD(tree, seed=seed))
        check_resampler(lambda tree, seed: HROSPD(tree, variant="as_published", seed=seed))


# --- losses ----------------------------------------------------------------------------------------------------------


def error(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return (logits.sigmoid() - labels.float()).square()


def by_place(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return (error(logits, labels) * torch.arange(1, len(labels) + 1)[:, None]).mean()


def changing_labels(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    labels[0] = ~labels[0]
    return error(logits, labels).mean()


def only_right(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return torch.log(1 - error(logits, labels)).mean().neg()


def rooted(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Finite, with a slope that is not."""
    return torch.where(labels, 1 - logits.sigmoid(), logits.sigmoid()).sqrt().clamp(max=1).mean()


def drawn() -> Callable[..., torch.Tensor]:
    factors: Iterator[float] = iter(np.random.default_rng(0).random(100).tolist())
    return lambda logits, labels: error(logits, labels).mean() * next(factors)


LOSSES: dict[str, tuple[str, Callable[..., Any]]] = {
    "no tensor": ("torch tensor with a single number, got float", lambda x, y: 0.5),
    "a number for each cell": (r"got the shape \(1, 36, 9\)", error),
    "constant": ("must have a gradient", lambda x, y: torch.tensor(1.0)),
    "computed elsewhere": ("must have a gradient", lambda x, y: error(x.detach(), y).mean()),
    "flat": ("must not be 0 everywhere", lambda x, y: (0 * x).sum()),
    "wrong way round": ("lower where logits agree", lambda x, y: -error(x, y).mean()),
    "by the place of rows": ("order of the rows", by_place),
    "overflowing": ("must be finite, and is inf at logits of", only_right),
    "steep": ("gradient must be finite, and is not", rooted),
    "changing labels": ("has changed them", changing_labels),
}


@pytest.mark.parametrize("case", LOSSES)
def test_a_loss_that_breaks_a_rule(case: str) -> None:
    problem, compute = LOSSES[case]
    with pytest.raises(TrainingError, match=f"mine breaks a rule of objectives: .*{problem}"):
        check_objective(lambda tree, Y: compute, "mine")


def test_a_loss_that_differs_from_time_to_time() -> None:
    with pytest.raises(TrainingError, match="must be deterministic"):
        check_objective(lambda tree, Y: drawn(), "mine")


def test_a_loss_is_made_with_the_labels_of_training_rows() -> None:
    seen: list[tuple[int, Bools]] = []

    class Mine:
        def __init__(self, hierarchy: Hierarchy, labels: Bools) -> None:
            seen.append((len(hierarchy), labels))

        def __call__(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            return error(logits, labels).mean()

    check_objective(Mine)
    ((nodes, Y),) = seen
    assert Y.shape[1] == nodes and Y.dtype == np.bool_ and not Y.any(axis=0).all()


# --- models ----------------------------------------------------------------------------------------------------------


class Mean:
    """Predicts shares of training rows."""

    def __init__(self, hierarchy: Hierarchy, seed: int) -> None:
        self.nodes = len(hierarchy)

    def fit(self, X: Any, Y: Any) -> None:
        self.shares = Y.mean(axis=0)

    def predict_proba(self, X: Any) -> Any:
        return np.tile(self.shares, (len(X), 1))


def test_a_simple_model_keeps_the_rules() -> None:
    check_model(Mean)


class Nodes(Mean):
    def predict_proba(self, X: Any) -> Any:
        return super().predict_proba(X)[:, 1:]


class Listed(Mean):
    """As scikit-learn's forests do with several outputs."""

    def predict_proba(self, X: Any) -> Any:
        return [np.full((len(X), 2), 0.5) for _ in range(self.nodes)]


class Unknown(Mean):
    def predict_proba(self, X: Any) -> Any:
        probs = super().predict_proba(X)
        probs[:, -1] = np.nan
        return probs


class Logits(Mean):
    def predict_proba(self, X: Any) -> Any:
        return 4 * super().predict_proba(X) - 2


class Drawn(Mean):
    def fit(self, X: Any, Y: Any) -> None:
        self.shares = np.random.default_rng().random(self.nodes)


class Ranked(Mean):
    """Depends on the other rows."""

    def predict_proba(self, X: Any) -> Any:
        return super().predict_proba(X) * np.linspace(0.5, 1, len(X))[::-1, None]


class Tidy(Mean):
    def fit(self, X: Any, Y: Any) -> None:
        super().fit(X, Y)
        X -= X.mean(axis=0)


class TidyLater(Mean):
    def predict_proba(self, X: Any) -> Any:
        X[:] = 0
        return super().predict_proba(X)


class Silent(Mean):
    predict_proba = None  # type: ignore[assignment]


class Texts(Mean):
    def predict_proba(self, X: Any) -> Any:
        return [["high"] * self.nodes] * len(X)


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (Nodes, r"shape \(12, 9\), \(rows, nodes\); got \(12, 8\)"),
        (Listed, r"got \(9, 12, 2\) of a list"),
        (Unknown, "must be finite"),
        (Logits, "between 0 and 1; there are -2 and 2"),
        (Drawn, "with the same seed"),
        (Ranked, "a row alone as among others"),
        (Tidy, "has changed X"),
        (TidyLater, "has changed the X of predict_proba"),
        (Silent, "must have a method predict_proba"),
        (Texts, "must return numbers"),
    ],
)
def test_a_model_that_breaks_a_rule(model: Any, problem: str) -> None:
    with pytest.raises(TrainingError, match=f"{model.__name__} breaks a rule of models: .*{problem}"):
        check_model(model)


# --- resamplers ------------------------------------------------------------------------------------------------------


def everything(Y: Bools) -> NDArray[np.int64]:
    return np.arange(len(Y))


def changing(Y: Bools) -> NDArray[np.int64]:
    Y[:] = False
    return everything(Y)


def without_an_ancestor(Y: Bools) -> Resampled:
    rows = np.append(everything(Y), 0)
    labels = Y[rows].copy()
    labels[-1, 0] = False
    return Resampled(rows, labels)


RESAMPLERS: dict[str, tuple[str, Callable[[Bools], Any]]] = {
    "a mask": ("indices of rows; got bool", lambda Y: np.ones(len(Y), dtype=bool)),
    "labels": (r"got bool of the shape \(36, 9\)", lambda Y: Y),
    "too high": ("from 0 to 35; there are 0 and 36", lambda Y: np.arange(len(Y) + 1)),
    "from the end": ("there are -1 and 35", lambda Y: np.append(everything(Y), -1)),
    "rows lost": ("every row must come once", lambda Y: everything(Y)[::2]),
    "rows moved": ("every row must come once", lambda Y: everything(Y)[::-1]),
    "drawn": ("with the same seed", lambda Y: np.append(everything(Y), np.random.default_rng().integers(36, size=20))),
    "changing labels": ("has changed them", changing),
    "other labels": ("no label that its original does not have", lambda Y: Resampled(everything(Y), np.ones_like(Y))),
    "labels of other rows": ("boolean labels", lambda Y: Resampled(np.append(everything(Y), 0), Y)),
    "gaps": ("all nodes above it", without_an_ancestor),
}


@pytest.mark.parametrize("case", RESAMPLERS)
def test_a_resampler_that_breaks_a_rule(case: str) -> None:
    problem, choose = RESAMPLERS[case]

    class Mine:
        def __init__(self, hierarchy: Hierarchy, seed: int) -> None:
            self.seed = seed

        def resample(self, Y: Bools) -> Any:
            return choose(Y)

    with pytest.raises(TrainingError, match=f"Mine breaks a rule of resamplers: .*{problem}"):
        check_resampler(Mine)


def test_something_that_resamples_nothing() -> None:
    with pytest.raises(TrainingError, match="must have a method resample"):
        check_resampler(lambda tree, seed: [0])  # type: ignore[arg-type, return-value]
