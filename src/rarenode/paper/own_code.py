"""`OwnCode`: a class in a Python file that a method of a spec names, as ``objective = "my_loss.py:MyLoss"``.

Reading a spec reads the file, and never runs it: that happens where a training does. What travels there is the text of
the file, so the code that runs is the code that makes the training the one it is, and no other machine needs the file.
It may import everything that is installed, but no other file beside it.

What goes wrong in such code is an error of its training, with the line of the file: see `blamed`.
"""

from __future__ import annotations

import hashlib
import linecache
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from rarenode._io.text import shortened
from rarenode.errors import Interrupted, TrainingError


@dataclass(frozen=True)
class OwnCode:
    """A class in the text of a Python file."""

    name: str
    """Of the class."""
    file: str
    """As the spec names it, for messages."""
    source: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.name}"

    @property
    def identity(self) -> str:
        """The class, and the sha256 of the file: the same wherever the file is, and another one after a change."""
        return f"{self.name} {hashlib.sha256(self.source.encode('utf-8')).hexdigest()}"

    def load(self) -> Any:
        """Run the file, once in a process, and return the class.

        Raises:
            TrainingError: there is no such class, or it cannot be called. What the file raises itself is not caught.
        """
        found = getattr(_run(self.file, self.source), self.name, None)
        if not callable(found):
            raise TrainingError(f"{self.file} has no class {self.name!r}")
        return found


def parse_code(text: Any, what: str, spec: Path | None) -> OwnCode:
    """The code that ``FILE.py:CLASS`` names; the file is read and not run.

    Args:
        text: in the spec.
        what: the key, for messages.
        spec: the file of the spec, in whose folder a relative path begins; None: it begins here.

    Raises:
        ValueError: it is something else, or there is no such file.
    """
    file, _, name = text.rpartition(":") if isinstance(text, str) else ("", "", "")
    if not (file.endswith(".py") and name.isidentifier()):
        raise ValueError(f"{what} must be a class in a Python file, such as 'my_file.py:MyClass'; got {text!r}")
    path = (Path.cwd() if spec is None else spec.parent) / file
    try:
        return OwnCode(name, file, path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{what}: {path} is not UTF-8: {error}") from None
    except (OSError, ValueError):
        raise ValueError(f"{what}: there is no file {path}") from None


@cache
def _run(file: str, source: str) -> ModuleType:
    name = f"_rarenode_own_{hashlib.sha256(f'{file} {source}'.encode()).hexdigest()[:16]}"
    module = ModuleType(name)
    module.__file__ = file
    sys.modules[name] = module  # where classes look for the module that they are of
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)  # for inspect, and so for torch
    exec(compile(source, file, "exec"), module.__dict__)  # noqa: S102 (whoever runs the spec has named this file)
    return module


@contextmanager
def blamed(codes: Sequence[OwnCode]) -> Iterator[None]:
    """While it lasts, an exception that comes out of some code becomes an error of the training, with file and line.

    Raises:
        TrainingError: the code has raised an exception, or ended the process.
    """
    try:
        yield
    except Interrupted:
        raise
    except (Exception, SystemExit) as error:
        place = _place(error, codes)
        if place is None:
            raise
        text = shortened(" ".join(str(error).split()))
        raise TrainingError(f"{place}: {type(error).__name__}{f': {text}' if text else ''}") from None


def _place(error: BaseException, codes: Sequence[OwnCode]) -> str | None:
    """The deepest line of the code that an exception went through; None if it went through none."""
    files = {code.file for code in codes}
    if isinstance(error, SyntaxError) and error.filename in files:
        return f"{error.filename}, line {error.lineno}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    return f"{frames[-1].filename}, line {frames[-1].lineno}, in {frames[-1].name}" if frames else None
