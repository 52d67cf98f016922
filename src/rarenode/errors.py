"""Every error that rarenode raises on purpose, so that one ``except RarenodeError`` catches them all.

::

    RarenodeError
    ├── ArgumentError (ValueError)          an option that does not exist, a number out of range
    ├── HierarchyError (ValueError)         edges or paths that do not make a hierarchy
    │   ├── CycleError                      a node that is its own ancestor; prints the cycle
    │   └── UnknownLabelError               a label that is not a node; names the row and the label
    ├── LabelError (ValueError)             a label matrix of the wrong shape or with values other than 0 and 1
    │   └── NotClosedError                  a row that has a node but not the node's parent
    ├── DataError (ValueError)              data that cannot be used
    │   ├── FileFormatError                 a malformed file; names file, line and what was expected
    │   └── UnknownDatasetError             a name that is not in the catalogue
    ├── TrainingError (RuntimeError)        a training cannot begin or continue
    │   ├── FolderInUseError                another process is using the folder
    │   ├── Interrupted                     Ctrl-C; says how to resume
    │   ├── LostProcessError                another process of the training has ended; says which, and how to resume
    │   └── ResumeError                     a checkpoint is of another training; says what differs
    ├── ExecutorError (RuntimeError)        tasks cannot run where they should
    │   └── WorkerLostError                 the process or machine that ran a task is gone
    ├── MissingFileError (FileNotFoundError)  a file is not where it was looked for
    └── DownloadError (OSError)             a file could not be fetched
        └── VerificationError               a file was fetched, and is not what the catalogue promises

Each class also derives from the built-in exception that a caller would expect in its place.
"""

from __future__ import annotations

from pathlib import Path


class RarenodeError(Exception):
    """The root of the tree above."""

    details: tuple[str, ...] = ()
    """One sentence for each thing that is wrong, where several are; the message is about the first."""
    rows: int | None = None
    """How many rows the table has that cannot be used; None if they could not be counted."""


class ArgumentError(RarenodeError, ValueError):
    """An argument has a value that means nothing here."""


class HierarchyError(RarenodeError, ValueError):
    """Edges, paths or names that do not make a hierarchy."""


class CycleError(HierarchyError):
    """A node is its own ancestor."""


class UnknownLabelError(HierarchyError):
    """A label is not a node of the hierarchy."""


class LabelError(RarenodeError, ValueError):
    """A label matrix does not fit its hierarchy."""


class NotClosedError(LabelError):
    """A row has a node but not one of the node's parents."""


class DataError(RarenodeError, ValueError):
    """Data that cannot be used."""


class FileFormatError(DataError):
    """A malformed file. ``path`` and ``line`` say where."""

    def __init__(self, path: Path | str, line: int | None, problem: str) -> None:
        self.path = Path(path)
        self.line = line
        self.problem = problem
        place = f"{path}" if line is None else f"{path}, line {line}"
        super().__init__(f"{place}: {problem}")

    def __reduce__(self) -> tuple[type[FileFormatError], tuple[Path, int | None, str]]:
        return type(self), (self.path, self.line, self.problem)


class UnknownDatasetError(DataError):
    """A name that is not in the catalogue."""


class TrainingError(RarenodeError, RuntimeError):
    """A training cannot begin or continue."""


class FolderInUseError(TrainingError):
    """Another process is using a folder."""


class Interrupted(TrainingError):  # noqa: N818 (nothing went wrong)
    """Ctrl-C ended a training; the message says how to resume."""


class LostProcessError(TrainingError):
    """Another process of a training has ended."""

    answered: frozenset[int] = frozenset()
    """The ranks of the processes that were still there."""


class ResumeError(TrainingError):
    """A checkpoint or run folder belongs to another training."""


class ExecutorError(RarenodeError, RuntimeError):
    """Tasks cannot run where they should: Ray is not installed or not there, or a worker cannot read its task."""


class WorkerLostError(ExecutorError):
    """The process or machine that ran a task is gone, as often as the task was begun."""


class MissingFileError(RarenodeError, FileNotFoundError):
    """A file is not where it was looked for."""


class DownloadError(RarenodeError, OSError):
    """A file could not be fetched."""


class VerificationError(DownloadError):
    """A fetched file is not what the catalogue promises."""
