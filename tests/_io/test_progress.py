from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode._io import progress as module
from rarenode._io.progress import Progress

HOSTILE = "a\x1b[2Jb\r\nc\x07\u202ed"
SHOWN = "a [2Jb  c  d"


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(module, "monotonic", lambda: self.now)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return Terminal()


def test_lines_where_there_is_no_terminal(clock: Clock) -> None:
    stream = io.StringIO()
    progress = Progress(stream=stream, seconds_between=10)
    progress.start("a title", 100)
    for step in range(1, 61):
        clock.now += 1
        assert progress.is_due == (step % 10 == 0)
        progress.update(step, f"step {step}")
    progress.stop()
    assert stream.getvalue().splitlines() == [
        f"step {step}, {left} left" for step, left in [(10, "0:01:30"), (20, "0:01:20"), (30, "0:01:10"),
                                                       (40, "0:01:00"), (50, "0:00:50"), (60, "0:00:40")]
    ]  # fmt: skip


def test_an_update_may_be_shown_at_once(clock: Clock) -> None:
    stream = io.StringIO()
    progress = Progress(stream=stream)
    progress.start("", 2)
    progress.update(1, "hidden")
    clock.now += 5
    progress.update(2, "shown", at_once=True)
    assert stream.getvalue() == "shown\n"


def test_the_rate_counts_what_was_done_here(clock: Clock) -> None:
    """A task that is resumed at 50 of 100 has not done 50 in no time."""
    progress = Progress(stream=io.StringIO())
    progress.start("", 100, done=50)
    assert progress.left == ""
    clock.now += 10
    progress.update(60, "")
    assert progress.rate == pytest.approx(1.0)
    assert progress.left == "0:00:40 left"
    progress.update(100, "")
    assert progress.left == ""


def test_quiet_prints_nothing(clock: Clock, terminal: Terminal) -> None:
    for stream in (io.StringIO(), terminal):
        progress = Progress(quiet=True, stream=stream, seconds_between=0)
        progress.start("title", 3)
        clock.now += 100
        assert not progress.is_due
        progress.update(1, "text", at_once=True)
        progress.line("line")
        progress.stop()
        assert stream.getvalue() == ""


def test_the_standard_error_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    Progress().line("here")
    assert capsys.readouterr() == ("", "here\n")


def test_control_characters_are_neutralised(clock: Clock) -> None:
    stream = io.StringIO()
    progress = Progress(stream=stream, seconds_between=0)
    progress.start(HOSTILE, 2)
    progress.line(HOSTILE)
    progress.update(2, HOSTILE)
    progress.stop()
    assert stream.getvalue() == f"{SHOWN}\n{SHOWN}\n"


@given(st.text())
def test_a_line_is_one_line(text: str) -> None:
    stream = io.StringIO()
    Progress(stream=stream).line(text)
    shown = stream.getvalue()
    assert shown.endswith("\n")
    assert shown[:-1].isprintable()


def test_a_bar_in_a_terminal(clock: Clock, terminal: Terminal) -> None:
    progress = Progress(stream=terminal)
    progress.start("[bold]title[/]", 10)
    clock.now += 1
    progress.update(5, "half [red]way")
    progress.line("a line that stays")
    progress.stop()
    progress.stop()
    text = terminal.getvalue()
    for part in ("[bold]title[/]", "half [red]way", "0:00:01 left", "a line that stays"):
        assert part in text
    assert text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l")  # the cursor is shown again


def test_a_bar_neutralises_control_characters_too(clock: Clock, terminal: Terminal) -> None:
    progress = Progress(stream=terminal)
    progress.start(HOSTILE, 10)
    clock.now += 1
    progress.update(5, HOSTILE)
    progress.line(HOSTILE)
    progress.stop()
    text = terminal.getvalue()
    assert SHOWN in text
    assert "\x1b[2Jb" not in text
    assert not re.search("\x07|\u202e", text)


def test_a_new_task_ends_the_one_before(clock: Clock, terminal: Terminal) -> None:
    progress = Progress(stream=terminal)
    progress.start("first", 10)
    progress.start("second", 10)
    progress.stop()
    text = terminal.getvalue()
    assert text.index("first") < text.index("second")
    assert "first" not in text[text.index("second") :]
