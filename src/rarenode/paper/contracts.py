"""The rules that an objective, a model or a resampler must keep to be trained in a spec.

`check_objective`, `check_model` and `check_resampler` try it on a small problem: a random DAG, one of whose nodes no
row has, and a few dozen rows. That takes a second at most. `rarenode paper run` does so before a training; an author
can do it with the class itself:

    from rarenode.paper import check_objective
    from my_loss import MyLoss
    check_objective(MyLoss)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from rarenode.errors import TrainingError
from rarenode.hierarchy import Hierarchy
from rarenode.objective import MakeLoss
from rarenode.resampling.resampler import Resampled, Resampler

NODES, ROWS, NEW_ROWS, FEATURES = 9, 36, 12, 5
EXTREME = 50.0
"""Of logits: a probability of 1 but for 2e-22."""
CLOSE, CLOSE_PROBS = 1e-4, 1e-5
"""Relative difference of losses, and difference of probabilities, that rounding may make."""
Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]


class OwnModel(Protocol):
    """What a model of one's own has."""

    def fit(self, X: Floats, Y: Bools) -> Any:
        """Learn from prepared features (rows, features) and closed labels (rows, nodes)."""

    def predict_proba(self, X: Floats) -> ArrayLike:
        """Probabilities (rows, nodes)."""
        ...


class OwnResampler(Protocol):
    """What a resampler of one's own has."""

    def resample(self, Y: Bools) -> Resampled | ArrayLike:
        """Indices of rows: each row once, in order, then the clones."""
        ...


MakeModel = Callable[[Hierarchy, int], OwnModel]
MakeResampler = Callable[[Hierarchy, int], OwnResampler | Resampler]


def check_objective(make: MakeLoss, name: str | None = None) -> None:
    """Check that a class of losses keeps the rules of objectives.

    An object of it is made for a hierarchy and the labels of training rows, and is called with logits (members, rows,
    nodes), before the constraint, and labels (rows, nodes), both torch tensors, the latter of booleans. The loss that
    it returns must

    * be a torch tensor with a single number, which is finite, also at logits of 50 and -50;
    * have a gradient for the logits that is finite everywhere, and not 0 everywhere;
    * be the same if it is computed again, and if rows come in another order;
    * be lower where logits agree with the labels than where they contradict them;
    * leave logits and labels as they are.

    Args:
        make: the class, or any function of hierarchy and labels.
        name: for messages; None: that of the class.

    Raises:
        TrainingError: a rule is broken; says which.
    """
    rule = _Rules(make, name, "objectives")
    hierarchy, Y = _problem()
    objective = make(hierarchy, Y.copy())
    labels = torch.from_numpy(Y)
    rng = np.random.default_rng(1)
    for members, rows in ((1, ROWS), (3, ROWS), (2, 1)):
        logits = torch.from_numpy(rng.normal(size=(members, rows, NODES)).astype(np.float32))
        some = labels[:rows]
        before, labels_before = logits.clone(), some.clone()
        loss, gradient = _loss(rule, objective, logits, some, "random logits")
        if not bool(gradient.any()):
            rule.broken("the gradient must not be 0 everywhere, at random logits")
        if not torch.equal(logits, before) or not torch.equal(some, labels_before):
            rule.broken("it must leave logits and labels as they are, and has changed them")
        again, _ = _loss(rule, objective, logits, some, "random logits")
        if again != loss:
            rule.broken(f"it must be deterministic; computed twice it is {loss:g} and {again:g}")
        order = torch.from_numpy(rng.permutation(rows))
        other, _ = _loss(rule, objective, logits[:, order], some[order], "random logits")
        if abs(other - loss) > CLOSE * max(abs(loss), 1e-6):
            rule.broken(f"it must not depend on the order of the rows; in another order {loss:g} becomes {other:g}")
    signs = torch.where(labels, 1.0, -1.0)[None]
    right, _ = _loss(rule, objective, 4 * signs, labels, "logits that agree with the labels")
    wrong, _ = _loss(rule, objective, -4 * signs, labels, "logits that contradict the labels")
    if not right < wrong:
        rule.broken(
            f"it must be lower where logits agree with the labels ({right:g}) than where they contradict them "
            f"({wrong:g})"
        )
    for what, extreme in (("50", torch.ones_like(signs)), ("-50", -torch.ones_like(signs)), ("50 and -50", -signs)):
        _loss(rule, objective, EXTREME * extreme, labels, f"logits of {what}")


def check_model(make: MakeModel, name: str | None = None) -> None:
    """Check that a class of models keeps the rules of models.

    An object of it is made for a hierarchy and a seed, is fitted with ``fit(X, Y)`` to float32 features (rows,
    features) and boolean labels (rows, nodes), closed under ancestors, and predicts with ``predict_proba(X)``. The
    probabilities must

    * be an array (rows, nodes), also for a single row, and of nodes that no training row has;
    * be finite, and between 0 and 1 (they need not be coherent: the max constraint is applied to them);
    * be the same for another object with the same seed;
    * be the same for a row alone as among others.

    Features and labels must be left as they are.

    Raises:
        TrainingError: a rule is broken; says which.
    """
    rule = _Rules(make, name, "models")
    hierarchy, Y = _problem()
    rng = np.random.default_rng(1)
    towards = rng.normal(size=(NODES, FEATURES))
    X = (Y @ towards + rng.normal(size=(ROWS, FEATURES))).astype(np.float32)
    new = rng.normal(size=(NEW_ROWS, FEATURES)).astype(np.float32)

    def fitted() -> tuple[OwnModel, Floats]:
        model = make(hierarchy, 0)
        for method in ("fit", "predict_proba"):
            if not callable(getattr(model, method, None)):
                rule.broken(f"it must have a method {method}")
        features, labels, rows = X.copy(), Y.copy(), new.copy()
        model.fit(features, labels)
        probs = rule.probabilities(model.predict_proba(rows), NEW_ROWS, NODES)
        for what, now, before in (("X", features, X), ("Y", labels, Y), ("the X of predict_proba", rows, new)):
            if not np.array_equal(now, before):
                rule.broken(f"it must leave features and labels as they are, and has changed {what}")
        return model, probs

    model, probs = fitted()
    _, again = fitted()
    if not np.array_equal(again, probs):
        rule.broken("with the same seed it must predict the same; two objects with the seed 0 differ")
    for row in range(3):
        alone = rule.probabilities(model.predict_proba(new[row : row + 1].copy()), 1, NODES)
        if np.abs(alone[0] - probs[row]).max() > CLOSE_PROBS:
            rule.broken("it must predict a row alone as among others, and does not")


def check_resampler(make: MakeResampler, name: str | None = None) -> None:
    """Check that a class of resamplers keeps the rules of resamplers.

    An object of it is made for a hierarchy and a seed, and ``resample(Y)`` gets the boolean labels (rows, nodes) of the
    training rows. What it returns must

    * be a `Resampled`, or a sequence of row indices, each from 0 to the number of rows - 1;
    * begin with every row once, in order; clones follow, so that no row is lost and none is moved;
    * be the same for another object with the same seed.

    A `Resampled` may have clones with fewer labels than their originals, which must be closed under ancestors. Labels
    that are given must be left as they are.

    Raises:
        TrainingError: a rule is broken; says which.
    """
    rule = _Rules(make, name, "resamplers")
    hierarchy, Y = _problem()

    def chosen() -> Resampled:
        resampler, given = make(hierarchy, 0), Y.copy()
        if not callable(getattr(resampler, "resample", None)):
            rule.broken("it must have a method resample")
        result = rule.resampled(resampler.resample(given), Y, hierarchy)
        if not np.array_equal(given, Y):
            rule.broken("it must leave labels as they are, and has changed them")
        return result

    first, second = chosen(), chosen()
    if not (np.array_equal(first.rows, second.rows) and np.array_equal(first.Y, second.Y)):
        rule.broken("with the same seed it must choose the same rows; two objects with the seed 0 differ")


CHECKS: dict[str, Callable[[Any, str | None], None]] = {
    "objective": check_objective,
    "model": check_model,
    "resampler": check_resampler,
}
"""By the key of a method."""


class _Rules:
    """The rules of a family; what it returns, once it is known to keep them."""

    def __init__(self, make: Any, name: str | None, family: str) -> None:
        self.name = name or getattr(make, "__name__", type(make).__name__)
        self.family = family

    def broken(self, rule: str) -> NoReturn:
        raise TrainingError(f"{self.name} breaks a rule of {self.family}: {rule}")

    def probabilities(self, given: Any, rows: int, nodes: int) -> Floats:
        """Probabilities as float32."""
        try:
            probs = np.asarray(given, dtype=np.float32)
        except (TypeError, ValueError):
            self.broken(f"predict_proba must return numbers (rows, nodes), got {type(given).__name__}")
        if probs.shape != (rows, nodes):
            kind = " of a list" if isinstance(given, list) else ""
            self.broken(f"predict_proba must return the shape {(rows, nodes)}, (rows, nodes); got {probs.shape}{kind}")
        if not np.isfinite(probs).all():
            self.broken("probabilities must be finite, and some are not")
        if probs.size and not (probs.min() >= 0 and probs.max() <= 1):
            self.broken(f"probabilities must be between 0 and 1; there are {probs.min():g} and {probs.max():g}")
        return probs

    def resampled(self, given: Any, Y: Bools, hierarchy: Hierarchy) -> Resampled:
        """What a resampler returned, with labels if it returned none."""
        indices = np.asarray(given.rows if isinstance(given, Resampled) else given)
        if indices.ndim != 1 or indices.dtype.kind not in "iu":
            self.broken(f"resample must return indices of rows; got {indices.dtype} of the shape {indices.shape}")
        rows = indices.astype(np.int64)
        if len(rows) and not (rows.min() >= 0 and rows.max() < len(Y)):
            self.broken(f"an index must be from 0 to {len(Y) - 1}; there are {rows.min()} and {rows.max()}")
        if not np.array_equal(rows[: len(Y)], np.arange(len(Y))):
            self.broken("every row must come once, in order, before any clones")
        if not isinstance(given, Resampled):
            return Resampled(rows, Y[rows])
        labels = np.asarray(given.Y)
        if labels.dtype != np.bool_ or labels.shape != (len(rows), Y.shape[1]):
            self.broken(f"Y must be boolean labels {(len(rows), Y.shape[1])}; got {labels.dtype} {labels.shape}")
        if (labels & ~Y[rows]).any():
            self.broken("a clone must have no label that its original does not have")
        if not np.array_equal(hierarchy.close(labels), labels):
            self.broken("a clone that has a node must have all nodes above it")
        return Resampled(rows, labels)


def as_probabilities(given: Any, name: str, rows: int, nodes: int) -> Floats:
    """What a model of one's own predicted, if it is what it should be.

    Raises:
        TrainingError: it is not.
    """
    return _Rules(None, name, "models").probabilities(given, rows, nodes)


def as_resampled(given: Any, name: str, Y: Bools, hierarchy: Hierarchy) -> Resampled:
    """What a resampler of one's own returned, if it is what it should be.

    Raises:
        TrainingError: it is not.
    """
    return _Rules(None, name, "resamplers").resampled(given, Y, hierarchy)


def _problem() -> tuple[Hierarchy, Bools]:
    """A random DAG, and labels (rows, nodes) that leave out one node and have another in every row."""
    rng = np.random.default_rng(0)
    edges = [(f"n{parent}", f"n{child}") for child in range(1, NODES) for parent in set(rng.integers(child, size=2))]
    hierarchy = Hierarchy.from_edges(edges)
    most_specific = hierarchy.encode([[f"n{node}"] for node in rng.integers(NODES - 1, size=ROWS)])
    return hierarchy, np.asarray(hierarchy.close(most_specific))


def _loss(rule: _Rules, objective: Any, logits: Tensor, labels: Tensor, where: str) -> tuple[float, Tensor]:
    """The loss and its gradient."""
    given = logits.detach().requires_grad_()
    loss = objective(given, labels)
    if not isinstance(loss, Tensor) or loss.ndim:
        got = f"the shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
        rule.broken(f"it must return a torch tensor with a single number, got {got}")
    if not bool(torch.isfinite(loss)):
        rule.broken(f"it must be finite, and is {loss.item()} at {where}")
    gradient = torch.autograd.grad(loss, given, allow_unused=True)[0] if loss.requires_grad else None
    if gradient is None:
        rule.broken("it must have a gradient for the logits: compute it from them with operations of torch")
    if not bool(torch.isfinite(gradient).all()):
        rule.broken(f"its gradient must be finite, and is not at {where}")
    return loss.item(), gradient
