"""What a training reports while it runs, and how it is displayed."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from rarenode._io.progress import Progress
from rarenode.errors import Interrupted, TrainingError
from rarenode.training import Callback, EpochRecord, Plan, ShowProgress, train_model
from rarenode.training.out_of_fold import cross_fit
from tests.training.problem import Recorder, prepared, rows, settings, validation


def lines_of(stream: io.StringIO) -> list[str]:
    return stream.getvalue().splitlines()


class Order(Callback):
    """The names of the calls, in their order."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def on_training(self, title: str) -> None:
        self.calls.append(f"training {title}")

    def on_start(self, plan: Plan) -> None:
        self.calls.append(f"start {plan.title}")

    def on_batch(self, epoch: int, batch: int, loss: float) -> None:
        self.calls.append("batch")

    def on_epoch(self, record: EpochRecord) -> None:
        self.calls.append("epoch")

    def on_end(self) -> None:
        self.calls.append("end")

    def on_forest(self, trees: int) -> None:
        self.calls.append(f"forest {trees}")


def test_calls_come_in_order() -> None:
    order = Order()
    train_model(rows(), settings(epochs=2, batch_size=75, model="mlp+forest", n_trees=2), callback=order, title="one")
    epoch = ["batch", "batch", "epoch"]
    assert order.calls == ["training one", "start one", *epoch, *epoch, "end", "forest 2"]


def test_a_callback_may_do_nothing() -> None:
    model = train_model(rows(), settings(epochs=1, model="mlp+forest", n_trees=1), callback=Callback())
    assert len(model.history) == 1


def test_a_forest_alone_has_no_steps() -> None:
    order = Order()
    train_model(rows(), settings(model="forest", n_trees=3), callback=order)
    assert order.calls == ["training ", "forest 3"]


def test_on_end_is_called_when_training_fails() -> None:
    recorder = Recorder()
    with pytest.raises(TrainingError):
        train_model(rows(), settings(learning_rate=1e30), callback=recorder)
    assert recorder.is_finished


def test_few_lines_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    train_model(rows(), settings(), callback=ShowProgress(Progress(stream=stream, seconds_between=3600)))
    first, last = lines_of(stream)
    assert first == "training 3 epochs of 10 batches with the fused engine: 30 steps"
    assert last.startswith("epoch 3: loss ")
    assert last.endswith(" steps/s")


def test_lines_have_epoch_batch_loss_rate_time_and_validation_ap() -> None:
    stream = io.StringIO()
    shown = ShowProgress(Progress(stream=stream, seconds_between=0))
    model = train_model(rows(), settings(), valid=validation(), callback=shown)
    lines = lines_of(stream)
    assert len(lines) == 1 + 29 + 1  # the first batch, which may compile, starts the clock
    assert lines[1].startswith("epoch 1/3, batch 2/10, loss ")
    assert lines[14].startswith("epoch 2/3, batch 5/10, loss ")
    assert " steps/s, 0:0" in lines[1]
    assert lines[1].endswith(" left")
    assert not lines[29].endswith(" left")
    valid = model.history[-1].valid
    assert valid is not None
    assert lines[-1].endswith(f", validation AP {valid.ap:.4f}")


def test_each_training_has_its_title_and_a_forest_is_announced() -> None:
    stream = io.StringIO()
    chosen = settings(model="mlp+forest", n_trees=2, cv=2)
    cross_fit(rows(), chosen, callback=ShowProgress(Progress(stream=stream, seconds_between=3600)))
    lines = lines_of(stream)
    assert [line.split(" epochs")[0] for line in lines[::3]] == [
        "fold 1 of 2: training 3",
        "fold 2 of 2: training 3",
        "all rows: training 3",
    ]
    assert lines[2::3] == [f"{title}: growing 2 trees" for title in ("fold 1 of 2", "fold 2 of 2", "all rows")]


def test_a_resumed_training_says_so(tmp_path: Any) -> None:
    train_model(rows(), settings(), folder=tmp_path)
    stream = io.StringIO()
    train_model(rows(), settings(), folder=tmp_path, resume=True, callback=ShowProgress(Progress(stream=stream)))
    assert lines_of(stream) == ["trained before, 3 epochs"]


def test_a_training_that_is_half_done_says_where_it_goes_on(tmp_path: Any) -> None:
    class Stop(Callback):
        def on_epoch(self, record: EpochRecord) -> None:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        train_model(rows(), settings(), folder=tmp_path, callback=Stop())
    stream = io.StringIO()
    train_model(rows(), settings(), folder=tmp_path, resume=True, callback=ShowProgress(Progress(stream=stream)))
    assert lines_of(stream)[0] == "training 3 epochs of 10 batches with the fused engine: 30 steps, resumed after 10"


def test_early_stopping_is_named_also_when_it_is_resumed(tmp_path: Any) -> None:
    chosen = settings(epochs=60, patience=2, learning_rate=0.05)
    for resume in (False, True):
        stream = io.StringIO()
        shown = ShowProgress(Progress(stream=stream, seconds_between=3600))
        model = train_model(rows(), chosen, valid=validation(), folder=tmp_path, resume=resume, callback=shown)
        aps = [epoch.valid.ap for epoch in model.history if epoch.valid is not None]
        assert len(aps) < 60
        best = f"; early stopping, epoch {int(np.argmax(aps)) + 1} was the best"
        first, *others = lines_of(stream)
        if resume:
            assert (first, others) == (f"trained before, {len(aps)} epochs{best}", [])
        else:
            assert first == "training up to 60 epochs of 10 batches with the fused engine: up to 600 steps"
            assert others[-1].endswith(best)


def test_a_training_that_takes_all_its_epochs_was_not_stopped_early() -> None:
    stream = io.StringIO()
    shown = ShowProgress(Progress(stream=stream, seconds_between=3600))
    train_model(rows(), settings(patience=3), valid=validation(), callback=shown)
    assert "early stopping" not in stream.getvalue()


@pytest.mark.parametrize(("members", "is_sum"), [(1, False), (2, True)])
def test_a_loss_that_is_a_sum_says_so(members: int, is_sum: bool) -> None:
    stream = io.StringIO()
    train_model(rows(), settings(n_members=members), callback=ShowProgress(Progress(stream=stream)))
    assert (" (a sum over rows and nodes), " in lines_of(stream)[-1]) == is_sum


def test_models_without_a_network_have_the_title_of_their_fold() -> None:
    stream = io.StringIO()
    chosen = settings(model="forest+neighbours", n_trees=2, cv=2)
    cross_fit(rows(), chosen, callback=ShowProgress(Progress(stream=stream)))
    assert [line.split(": ")[0] for line in lines_of(stream)] == [
        title for title in ("fold 1 of 2", "fold 2 of 2", "all rows") for _ in range(2)
    ]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(Progress, "SECONDS_BETWEEN_FRAMES", 0.0)
    terminal = Terminal()
    cross_fit(rows(), settings(cv=2), callback=ShowProgress(Progress(stream=terminal)))
    text = terminal.getvalue()
    assert "fold 1 of 2" in text
    assert "epoch 3/3, batch 10/10, loss " in text
    assert "\x1b[" in text


def test_the_bar_is_closed_when_training_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    with pytest.raises(TrainingError):
        train_model(rows(), settings(learning_rate=1e30), callback=ShowProgress(Progress(stream=terminal)))
    assert terminal.getvalue().rfind("\x1b[?25h") > terminal.getvalue().rfind("\x1b[?25l")  # the cursor is shown again


def test_the_loss_that_is_reported_is_the_loss_that_is_recorded() -> None:
    recorder = Recorder()
    model = train_model(prepared(), settings(), prepare=False, callback=recorder)
    means = [float(np.mean(recorder.losses[i : i + 10])) for i in (0, 10, 20)]
    assert [record.loss for record in model.history] == [pytest.approx(mean) for mean in means]
    assert tuple(recorder.records) == model.history
