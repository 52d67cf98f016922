"""Predictions of many files into a folder: one output file for each, side by side or one after the other.

``predictions.json`` in the folder says which files are done, with which model, and from which input. The same command,
started again, leaves out those whose input, model and options are still the same.
"""

from __future__ import annotations

import hashlib
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rarenode._io.delimited import dialect_of
from rarenode._io.files import exists, is_file, replacing, require_writable, sole_use
from rarenode._io.progress import Progress
from rarenode._io.text import counted, explain, storable
from rarenode.data.sources import files_like
from rarenode.errors import ArgumentError, DataError, ExecutorError, FileFormatError, Interrupted, RarenodeError
from rarenode.executors import Executor, Result, Task
from rarenode.run.predicting import CELLS_AT_A_TIME, How, Written, check_how, predict_into_file
from rarenode.run.predictions import SUFFIXES, Choice
from rarenode.run.rows import is_same_file
from rarenode.thresholds import depends_on_rows
from rarenode.training.estimate import PROGRAM
from rarenode.training.model_folder import FILES, RECORD
from rarenode.version import __version__

if TYPE_CHECKING:
    from rarenode.run.run import Run

MANIFEST = "predictions.json"
BYTES_A_CELL = 64
"""Of memory that a prediction takes, roughly."""
SECONDS_BETWEEN = 1.0
"""Between two versions of the manifest: it is written for each of thousands of files."""
MOST_SHOWN = 3
"""Failed files in a message."""
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]


class WrittenFolder(NamedTuple):
    """What `Run.predict_to_folder` wrote."""

    files: int
    """Files that were predicted."""
    skipped: int
    """Files that were done before."""
    total: Written
    """Of all files, those that were done before included."""


class Shard(BaseModel):
    """An output file that is done."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    input: str
    """The file that was predicted."""
    input_sha256: Sha256
    bytes: Count
    """Of the output."""
    sha256: Sha256
    """Of the output."""
    rows: Count
    lines: Count
    without_labels: Count
    decided: Count


class Manifest(BaseModel):
    """The content of ``predictions.json``."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: Literal["rarenode predictions"] = "rarenode predictions"
    version: Literal[1] = 1
    made_with: dict[str, Any]
    """The model and all options."""
    files: dict[str, Shard]
    """By the name of the output."""


def predict_into_folder(
    run: Run,
    data: Iterable[Path | str],
    out: Path,
    choice: Choice,
    how: How,
    executor: Executor,
    *,
    options: Mapping[str, Any] | None,
    progress: Progress,
) -> WrittenFolder:
    """See `Run.predict_to_folder`."""
    if depends_on_rows(how.thresholds):
        raise ArgumentError(
            f"thresholds={how.thresholds!r} (--thresholds) would be fitted to each file alone; write one file (--out "
            "FILE), or use the thresholds of the model"
        )
    check_how(run.model, choice, how)
    planned = _plan(data, out, choice)
    require_writable(out)
    with sole_use(out):
        work = _Work(run, out, planned, choice, how, options, progress)
        todo = work.tasks(executor)
        executor.expect(len(todo))
        try:
            with executor:
                work.start(executor)
                try:
                    for result in executor.run(todo):
                        work.collect(todo[result.task], result)
                except KeyboardInterrupt:
                    executor.interrupt()
                    while executor.running:
                        for result in executor.wait(1.0):
                            with suppress(KeyboardInterrupt):
                                work.collect(todo[result.task], result)
                    raise
        except KeyboardInterrupt:
            raise Interrupted(
                "stopped; files that are done are kept, and the same command continues from there"
            ) from None
        finally:
            work.end()
    return work.written()


def _plan(data: Iterable[Path | str], out: Path, choice: Choice) -> dict[str, Path]:
    """The name of each output, and its input.

    Raises:
        ArgumentError: an input is no file, or two would have the same output, or an output would replace an input.
    """
    inputs = [
        path for each in data for path in ([Path(each)] if exists(each) else files_like(Path(each)) or [Path(each)])
    ]
    if not inputs:
        raise ArgumentError("there are no files to predict")
    wrong = next((path for path in inputs if not is_file(path)), None)
    if wrong is not None:
        raise ArgumentError(f"{wrong} is no file; with a folder as output (--out FOLDER/), name files of rows")
    odd = next((path for path in inputs if storable(path.name) != path.name), None)
    if odd is not None:
        raise ArgumentError(f"{storable(str(odd))}: the name is not valid UTF-8, as {MANIFEST} needs; rename the file")
    names = Counter(_output_name(path, choice) for path in inputs)
    name, number = names.most_common(1)[0]
    if number > 1:
        same = " and ".join(str(path) for path in inputs if _output_name(path, choice) == name)
        raise ArgumentError(f"{same} would have the same output, {out / name}; use different folders, or rename them")
    planned = {_output_name(path, choice): path for path in inputs}
    over = next((path for path in inputs for name in planned if is_same_file(path, out / name)), None)
    if over is not None:
        raise ArgumentError(f"{over}: the predictions would replace the data; choose another folder (--out)")
    return planned


def _output_name(path: Path, choice: Choice) -> str:
    """The name of the input, with its suffix if that is a format of predictions, or else .csv."""
    if choice.layout == "cafa":
        return f"{path.stem}.tsv"
    return path.name if path.suffix.lower() in SUFFIXES else f"{path.stem}.csv"


class _Work:
    """The files of a folder: which are done, and which are to be done."""

    def __init__(
        self,
        run: Run,
        out: Path,
        planned: Mapping[str, Path],
        choice: Choice,
        how: How,
        options: Mapping[str, Any] | None,
        progress: Progress,
    ) -> None:
        self.run, self.out, self.planned, self.choice, self.how = run, out, planned, choice, how
        self.options, self.progress = options, progress
        self.made_with = {
            "rarenode": __version__,
            "model": _sha256(run.folder / RECORD),
            **{name: value for name, value in asdict(choice).items() if name != "dialect"},
            **asdict(how),
            "options": {name: str(value) for name, value in (options or {}).items()},
        }
        self.done = self._done_before()
        self.skipped = len(self.done.keys() & planned.keys())
        self.failed: dict[Path, Exception] = {}
        self.saved = monotonic()

    def _done_before(self) -> dict[str, Shard]:
        """What the manifest has, without what is no longer there or no longer the same."""
        path = self.out / MANIFEST
        if not is_file(path):
            return {}
        try:
            before = Manifest.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            what = explain(error, Manifest) if isinstance(error, ValidationError) else str(error)
            raise FileFormatError(path, None, f"{what}; remove it to predict all files again") from None
        is_same_way = before.made_with == self.made_with
        done = {name: shard for name, shard in before.files.items() if is_same_way and self._is_same(name, shard)}
        self._remove_old(before.files.keys() - done.keys())
        return done

    def _is_same(self, name: str, shard: Shard) -> bool:
        output, source = self.out / name, self.planned.get(name)
        is_there = is_file(output) and output.stat().st_size == shard.bytes and _sha256(output) == shard.sha256
        return is_there and (source is None or _sha256(source) == shard.input_sha256)

    def _remove_old(self, names: Set[str]) -> None:
        """Remove outputs that are going to be made again, so that none stays beside new ones if that fails.

        Those of files that are not named now stay, with a warning.
        """
        there = sorted(name for name in names if is_file(self.out / name))
        again = [name for name in there if name in self.planned]
        if again:
            why = "made from other input, by another model or with other options: made again"
            self.progress.line(f"{counted(len(again), 'file')} in {self.out} {why}")
        for name in again:
            (self.out / name).unlink()
        rest = [name for name in there if name not in self.planned]
        if rest:
            more = f" and {len(rest) - 1} more" if len(rest) > 1 else ""
            warnings.warn(
                f"{self.out / rest[0]}{more}: made by another model or with other options, or changed since, and not "
                "made again, because its input is not named",
                RuntimeWarning,
                stacklevel=2,
            )

    def tasks(self, executor: Executor) -> dict[Task, str]:
        """A task for each file that is not done, and the name of its output."""
        size = sum((self.run.folder / name).stat().st_size for name in FILES if is_file(self.run.folder / name))
        tasks = {}
        for name, source in self.planned.items():
            if name in self.done:
                continue
            # Other processes may be in another folder.
            place, output = (
                (source, self.out / name) if executor.here else (source.absolute(), self.out.absolute() / name)
            )
            arguments = (self.made_with["model"], place, output, self.choice, self.how, self.options)
            task = Task(
                name=str(source),
                function=predict_shard,
                arguments=arguments,
                shared=self.run,
                threads=n_jobs if (n_jobs := self.run.settings.n_jobs or 0) > 0 else None,
                gpus=int((self.run.device or self.run.settings.device).startswith("cuda")),
                memory=PROGRAM + 2 * size + BYTES_A_CELL * CELLS_AT_A_TIME,
            )
            tasks[task] = name
        return tasks

    def start(self, executor: Executor) -> None:
        """Show how far it is from now on. The executor is open: before, it may not know its machines."""
        least = 0 if executor.here else 3 * executor.room  # workers start while the first files wait
        self.progress.start("predicting", len(self.planned), self.skipped, least)

    def collect(self, name: str, result: Result) -> None:
        """Note that a file is done, or why not; others are done all the same."""
        source = self.planned[name]
        try:
            shard: Shard = result.get()
            output = self.out / name
            if not (is_file(output) and output.stat().st_size == shard.bytes):
                raise ExecutorError(
                    f"{output}: a worker wrote it where this machine does not see it; all machines must share the disk"
                )
        except Interrupted:
            raise KeyboardInterrupt from None
        except (RarenodeError, OSError, MemoryError) as error:
            self.failed[source] = error
        else:
            self.done[name] = shard.model_copy(update={"input": str(source)})
            if monotonic() - self.saved >= SECONDS_BETWEEN:
                self.save()
        ended = len(self.done.keys() & self.planned.keys()) + len(self.failed)
        self.progress.update(ended, f"{ended:,} of {counted(len(self.planned), 'file')}")

    def save(self) -> None:
        """Write the manifest."""
        content = Manifest(made_with=self.made_with, files=dict(sorted(self.done.items())))
        with replacing(self.out / MANIFEST) as (part,):
            part.write_text(content.model_dump_json(indent=1), encoding="utf-8")
        self.saved = monotonic()

    def end(self) -> None:
        """Whatever has happened, keep what is done."""
        self.progress.stop()
        self.save()

    def written(self) -> WrittenFolder:
        """What became of all files.

        Raises:
            DataError: some could not be predicted.
        """
        if self.failed:
            shown = " | ".join(f"{path}: {error}" for path, error in [*self.failed.items()][:MOST_SHOWN])
            more = f" | and {len(self.failed) - MOST_SHOWN} more" if len(self.failed) > MOST_SHOWN else ""
            others = "; all others are done" if len(self.failed) < len(self.planned) else ""
            files = counted(len(self.planned), "file")
            raise DataError(f"{len(self.failed)} of {files} could not be predicted{others}. {shown}{more}")
        shards = [self.done[name] for name in self.planned]
        total = Written(*(sum(getattr(shard, name) for shard in shards) for name in Written._fields))
        return WrittenFolder(len(shards) - self.skipped, self.skipped, total)


def predict_shard(
    run: Run, model: str, source: Path, output: Path, choice: Choice, how: How, options: Mapping[str, Any] | None
) -> Shard:
    """Predict a file into another one, on any machine that has both and the model.

    Raises:
        ExecutorError: the machine sees other files than the one that asks for this.
    """
    advice = "all machines must have the model, the data and the folder of the output under the same path"
    for path in (run.folder / RECORD, source, output.parent):
        if not exists(path):
            raise ExecutorError(f"{path} is not on the machine of a worker; {advice}")
    if _sha256(run.folder / RECORD) != model:
        raise ExecutorError(f"{run.folder} has another model on the machine of a worker; {advice}")
    digest = _sha256(source)
    written = predict_into_file(
        run,
        source,
        output,
        replace(choice, dialect=dialect_of(source)),
        how,
        split=None,
        options=options,
        root=None,
        progress=Progress(quiet=True),
    )
    size = output.stat().st_size
    return Shard(input=str(source), input_sha256=digest, bytes=size, sha256=_sha256(output), **written._asdict())


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
