from __future__ import annotations

import io

import pytest
from rarenode.training.unseen import cross_fit
from rich.console import Console

from rarenode.errors import TrainingError
from rarenode.training import PlainProgress, RichProgress, Silent, choose_progress, train
from tests.training.problem import data, rows, settings


def test_plain_lines_are_few() -> None:
    stream = io.StringIO()
    train(rows(), settings(), watch=PlainProgress(stream, seconds_between=3600))
    lines = stream.getvalue().splitlines()
    assert lines[0] == "training 3 epochs of 10 batches with the fused engine: 30 steps"
    assert len(lines) == 2
    assert lines[1].startswith("epoch 3/3: loss ")
    assert lines[1].endswith(" steps/s")


def test_plain_lines_tell_loss_pace_time_and_validation() -> None:
    stream = io.StringIO()
    train(rows(), settings(), valid=data().valid, watch=PlainProgress(stream, seconds_between=0))
    lines = stream.getvalue().splitlines()
    assert len(lines) == 1 + 29 + 3  # the first step may have waited for a compiler, and tells nothing about the pace
    assert "batch 2/10: loss " in lines[1]
    assert lines[1].endswith(" left")
    assert "validation AP" in lines[-1]


def test_the_bar_shows_loss_and_pace_and_is_closed() -> None:
    stream = io.StringIO()
    watch = RichProgress(Console(file=stream, force_terminal=True, width=120))
    train(rows(), settings(), watch=watch)
    assert watch.display.finished
    assert "epoch 3/3" in stream.getvalue()
    assert "steps/s" in stream.getvalue()


def test_lines_tell_which_training_it_is_and_that_a_forest_grows() -> None:
    stream = io.StringIO()
    cross_fit(rows(), settings(trees=2), 2, watch=PlainProgress(stream, seconds_between=3600))
    lines = stream.getvalue().splitlines()
    assert [line.split(" epochs")[0] for line in lines[::3]] == [
        "fold 1 of 2: training 3",
        "fold 2 of 2: training 3",
        "all rows: training 3",
    ]
    assert lines[2::3] == ["growing 2 trees"] * 3


def test_several_trainings_have_a_bar_each() -> None:
    stream = io.StringIO()
    watch = RichProgress(Console(file=stream, force_terminal=True, width=120))
    cross_fit(rows(), settings(trees=2), 2, watch=watch)
    first, second = stream.getvalue().split("fold 2 of 2: ", 1)
    assert "fold 1 of 2: epoch 3/3" in first
    assert "growing 2 trees" in first
    assert "fold 1 of 2" not in second  # a bar that is done is not drawn again
    assert "all rows: epoch 3/3" in second


def test_the_bar_is_closed_when_training_fails() -> None:
    watch = RichProgress(Console(file=io.StringIO(), force_terminal=True))
    with pytest.raises(TrainingError):
        train(rows(), settings(learning_rate=1e30), watch=watch)
    assert not watch.display.live.is_started


def test_the_display_fits_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(choose_progress(quiet=True), Silent)
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert isinstance(choose_progress(), PlainProgress)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert isinstance(choose_progress(), RichProgress)
