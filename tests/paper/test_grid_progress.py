from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rarenode.paper.progress import PlainGrid, RichGrid, SilentGrid, choose_grid_watch
from rich.console import Console

from rarenode.errors import TrainingError
from rarenode.paper import progress
from rarenode.paper.runner import GridWatch
from tests.paper.small_grid import decided, decided_record, held_out_task, made_up, task_of

SHORT, LONG = task_of(epochs=100), task_of("long", epochs=300)
HOSTILE = "a\nb\x1b[2J\r[red]c[/red]{task}\x07\u202e"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "monotonic", clock)
    return clock


def terminal() -> tuple[RichGrid, io.StringIO]:
    stream = io.StringIO()
    return RichGrid(Console(file=stream, force_terminal=True, width=200, markup=False, highlight=False)), stream


def plain() -> tuple[PlainGrid, io.StringIO]:
    stream = io.StringIO()
    return PlainGrid(stream), stream


class TestPlain:
    def test_a_line_for_each_training_with_the_time_left(self, clock: Clock) -> None:
        watch, stream = plain()
        watch.started([SHORT, LONG], 3)
        watch.began(SHORT)
        clock.now += 50
        watch.finished(SHORT, made_up(SHORT.cell)[0])
        clock.now += 150
        watch.finished(LONG, made_up(LONG.cell)[0])
        watch.over()
        scores = "F1 33.33, recall 50.00, AP 20.00, 1 nodes found; 12 s, 1,234 steps/s"
        assert stream.getvalue().splitlines() == [
            "2 trainings to do; 3 are there already",
            f"[1/2] cellcycle_FUN, plain, seed 0: {scores}; 0:02:30 left",
            f"[2/2] cellcycle_FUN, long, seed 0: {scores}; 0:00:00 left",
        ]

    def test_decisions_are_told_by_their_f1(self, clock: Clock) -> None:
        watch, stream = plain()
        task = held_out_task("fixed", "expected_f1")
        watch.started([task], 0)
        watch.finished(task, decided_record(task.cell, decided("prior"), decided("fixed"), decided("expected_f1", 0.5)))
        told = "AP 20.00, F1 25.00 by fixed, 50.00 by expected_f1; 12 s"
        assert stream.getvalue().splitlines()[1] == f"[1/1] cellcycle_FUN, decided, seed 0: {told}; 0:00:00 left"

    def test_nothing_is_there_yet(self) -> None:
        watch, stream = plain()
        watch.started([SHORT], 0)
        assert stream.getvalue() == "1 trainings to do\n"

    def test_failures(self, clock: Clock) -> None:
        watch, stream = plain()
        watch.started([SHORT, LONG], 0)
        watch.failed(SHORT, TrainingError("the loss is nan"))
        assert stream.getvalue().splitlines()[1] == "[1/2] cellcycle_FUN, plain, seed 0 FAILED: the loss is nan"


class TestRich:
    def test_place_time_left_and_what_is_under_way(self, clock: Clock) -> None:
        watch, stream = terminal()
        watch.started([SHORT, LONG], 0)
        watch.began(SHORT)
        watch.display.refresh()
        assert "0/2" in stream.getvalue()
        assert "? left" in stream.getvalue()
        assert "cellcycle_FUN, plain, seed 0" in stream.getvalue()
        clock.now += 50
        watch.finished(SHORT, made_up(SHORT.cell)[0])
        watch.began(LONG)
        watch.over()
        assert "cellcycle_FUN, plain, seed 0: F1 33.33" in stream.getvalue()
        last = stream.getvalue().splitlines()[-2]  # the very last shows the cursor again
        assert "1/2" in last
        assert "0:02:30 left" in last
        assert "cellcycle_FUN, long, seed 0" in last

    def test_the_bar_goes_by_cost(self, clock: Clock) -> None:
        watch, _ = terminal()
        watch.started([SHORT, LONG], 0)
        watch.finished(SHORT, made_up(SHORT.cell)[0])
        assert watch.display.tasks[0].percentage == pytest.approx(25)
        watch.failed(LONG, TrainingError("no"))
        assert watch.display.finished
        watch.over()
        assert not watch.display.live.is_started

    def test_failures(self) -> None:
        watch, stream = terminal()
        watch.started([SHORT], 0)
        watch.failed(SHORT, TrainingError("the loss is nan"))
        watch.over()
        assert "cellcycle_FUN, plain, seed 0 FAILED: the loss is nan" in stream.getvalue()

    def test_nothing_to_do(self) -> None:
        watch, stream = terminal()
        watch.started([], 4)
        watch.over()
        assert "0/0" in stream.getvalue()


@pytest.mark.parametrize("display", [plain, terminal])
def test_names_and_messages_can_neither_steer_the_terminal_nor_break_the_line(
    display: Callable[[], tuple[GridWatch, io.StringIO]],
) -> None:
    task = task_of(HOSTILE)
    watch, stream = display()
    watch.started([task, LONG], 0)
    watch.began(task)
    watch.finished(task, made_up(task.cell)[0])
    watch.failed(LONG, TrainingError(HOSTILE))
    watch.over()
    text = stream.getvalue()
    assert "\x1b[2J" not in text
    assert "\x07" not in text
    assert "\u202e" not in text
    assert "cellcycle_FUN, a b [2J [red]c[/red]{task}  , seed 0: F1 33.33" in text
    assert "FAILED: a b [2J [red]c[/red]{task}" in text


def test_silence(capsys: pytest.CaptureFixture[str]) -> None:
    watch = SilentGrid()
    watch.started([SHORT, LONG], 0)
    watch.began(SHORT)
    watch.finished(SHORT, made_up(SHORT.cell)[0])
    watch.failed(LONG, TrainingError("no"))
    watch.over()
    assert capsys.readouterr() == ("", "")


def test_the_display_fits_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(choose_grid_watch(quiet=True), SilentGrid)
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert isinstance(choose_grid_watch(quiet=False), PlainGrid)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert isinstance(choose_grid_watch(quiet=False), RichGrid)
    assert isinstance(choose_grid_watch(quiet=True), SilentGrid)
