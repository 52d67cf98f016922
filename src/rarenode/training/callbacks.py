"""Callbacks: what a training reports while it runs, and `ShowProgress`, which displays it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from rarenode._io.progress import Progress
from rarenode._io.text import counted
from rarenode.metrics import Summary
from rarenode.models import BlendWeights
from rarenode.objective.loss import Reduction


class EpochRecord(BaseModel):
    """One epoch, as the history of a model keeps it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    epoch: int
    """Counted from 1."""
    loss: float
    """The mean loss of its batches, each computed before its step."""
    seconds: float
    """Time spent on its steps, without validation and checkpoints."""
    steps_per_second: float
    valid: Summary | None = None
    """The scores on validation rows, where there are any."""


@dataclass(frozen=True)
class Plan:
    """What a training is about to do."""

    engine: str
    epochs: int
    batches: int
    """In each epoch."""
    steps_done: int
    """Steps taken before, if the training is resumed."""
    title: str = ""
    """Which of several trainings it is, such as ``fold 1 of 3``."""
    processes: int = 1
    """How many processes compute it; see `rarenode.training.several_processes`."""
    patience: int | None = None
    """Training stops so many epochs after the one with the best AP on validation rows; None: it does not."""
    history: tuple[EpochRecord, ...] = ()
    """The epochs before, if the training is resumed."""
    reduction: Reduction = "mean"
    """Whether losses are means over rows and nodes, or sums."""

    @property
    def steps(self) -> int:
        """Steps from first to last."""
        return self.epochs * self.batches

    def best_epoch(self, history: Sequence[EpochRecord]) -> int:
        """The epoch after which early stopping ended the training; 0 if it did not."""
        aps = [epoch.valid.ap for epoch in history if epoch.valid is not None]
        best = aps.index(max(aps)) + 1 if aps else 0
        return best if aps and self.patience is not None and len(aps) - best >= self.patience else 0


class Callback:
    """Is called while a model is trained; override what you need. Epochs and batches count from 1."""

    def on_fit(self, estimate: object) -> None:
        """A fit, of one training or several, is about to begin; ``estimate`` says what it will take."""

    def on_training(self, title: str) -> None:
        """One of several trainings begins, such as ``fold 1 of 3``; the title of a single one is empty."""

    def on_start(self, plan: Plan) -> None:
        """The training of a network begins."""

    def on_batch(self, epoch: int, batch: int, loss: float) -> None:
        """A step was taken."""

    def on_epoch(self, record: EpochRecord) -> None:
        """An epoch is over."""

    def on_end(self) -> None:
        """The training of the network is over, whether it succeeded or not."""

    def on_encode(self, done: int, pictures: int) -> None:
        """So many of the pictures are encoded by an encoder that was trained, at first none."""

    def on_forest(self, trees: int) -> None:
        """A forest is about to be grown."""

    def on_neighbours(self, rows: int) -> None:
        """Distances between so many training rows are about to be measured."""

    def on_fold(self, done: int, folds: int) -> None:
        """So many of the folds are done, which are trained elsewhere, where no callback sees them."""

    def on_blend(self, kinds: Sequence[str], weights: BlendWeights) -> None:
        """The weights of models in a blend were learned."""


class ShowProgress(Callback):
    """Displays the training: epoch, loss, steps per second and the time left."""

    def __init__(self, progress: Progress | None = None) -> None:
        self.progress = Progress() if progress is None else progress
        self.title = ""

    def on_fit(self, estimate: object) -> None:
        """See `Callback`."""
        self.progress.line(str(estimate))

    def on_training(self, title: str) -> None:
        """See `Callback`."""
        self.title = f"{title}: " if title else ""

    def on_start(self, plan: Plan) -> None:
        """See `Callback`."""
        self.plan = plan
        self.history = list(plan.history)
        self.is_first = True
        stopped = self._stopped_early()
        if stopped or len(plan.history) == plan.epochs:
            self.progress.line(f"{self.title}trained before, {counted(len(plan.history), 'epoch')}{stopped}")
        else:
            resumed = f", resumed after {plan.steps_done:,}" if plan.steps_done else ""
            at_most = "" if plan.patience is None else "up to "
            several = f" in {plan.processes} processes" if plan.processes > 1 else ""
            batches = counted(plan.batches, "batch", "batches")
            self.progress.line(
                f"{self.title}training {at_most}{counted(plan.epochs, 'epoch')} of {batches} with the {plan.engine} "
                f"engine{several}: {at_most}{counted(plan.steps, 'step')}{resumed}"
            )
        self.progress.start(self.title.rstrip(": "), plan.steps, plan.steps_done)

    def on_batch(self, epoch: int, batch: int, loss: float) -> None:
        """See `Callback`."""
        if self.is_first:  # it may have taken long to compile
            self.is_first = False
            self.progress.restart_clock((epoch - 1) * self.plan.batches + batch)
        elif self.progress.is_due:
            done = (epoch - 1) * self.plan.batches + batch
            place = f"epoch {epoch}/{self.plan.epochs}, batch {batch}/{self.plan.batches}"
            self.progress.update(done, f"{place}, loss {loss:.5g}", "steps/s")

    def on_epoch(self, record: EpochRecord) -> None:
        """See `Callback`."""
        self.history.append(record)

    def on_end(self) -> None:
        """See `Callback`."""
        self.progress.stop()
        if len(self.history) > len(self.plan.history):
            last = self.history[-1]
            of = " (a sum over rows and nodes)" if self.plan.reduction == "sum" else ""
            valid = "" if last.valid is None else f", validation AP {last.valid.ap:.4f}"
            speed = f"{last.steps_per_second:,.1f} steps/s"
            self.progress.line(f"epoch {last.epoch}: loss {last.loss:.5g}{of}, {speed}{valid}{self._stopped_early()}")

    def _stopped_early(self) -> str:
        best = self.plan.best_epoch(self.history)
        return f"; early stopping, epoch {best} was the best" if best else ""

    def on_encode(self, done: int, pictures: int) -> None:
        """See `Callback`."""
        if not done:
            self.progress.line(f"encoding {counted(pictures, 'picture')} with the trained encoder")
            self.progress.start("pictures", pictures)
        else:
            self.progress.update(done, f"{done:,} of {pictures:,} pictures", "pictures/s")
        if done == pictures:
            self.progress.stop()

    def on_forest(self, trees: int) -> None:
        """See `Callback`."""
        self.progress.line(f"{self.title}growing {counted(trees, 'tree')}")

    def on_neighbours(self, rows: int) -> None:
        """See `Callback`."""
        self.progress.line(f"{self.title}measuring distances between {counted(rows, 'row')}")

    def on_fold(self, done: int, folds: int) -> None:
        """See `Callback`."""
        self.progress.line(f"{done} of {folds} folds {'is' if done == 1 else 'are'} done")

    def on_blend(self, kinds: Sequence[str], weights: BlendWeights) -> None:
        """See `Callback`."""
        kept = [f"{kinds[place]} {weights.weights[place]:.2f}" for place in weights.kept]
        left_out = [kind for place, kind in enumerate(kinds) if place not in weights.kept]
        line = f"{kinds[weights.kept[0]]} alone"
        if len(kept) > 1:
            line = f"weights of log odds in the blend: {', '.join(kept)}"
        if left_out:
            line += f"; left out, as held-out rows are predicted as well without: {', '.join(left_out)}"
        self.progress.line(line)
