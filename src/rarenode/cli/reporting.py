"""RUNs on the command line, as what a report tells of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from rarenode.cli.predicting import TAUGHT, load_model_and_rows, were_trained_on
from rarenode.cli.sources import TrainingData
from rarenode.data.catalogue import SplitName, catalogue
from rarenode.errors import ArgumentError, MissingFileError
from rarenode.report import (
    MOST_RUNS,
    Report,
    RunReport,
    group_by_seed,
    report_on_model,
    report_on_probabilities,
    report_on_records,
    write_report,
)
from rarenode.training import TrainedModel
from rarenode.training.unseen import Unseen

PAGE = "report.html"


def collect_runs(
    runs: Sequence[Path],
    names: Sequence[str] | None,
    data: str | None,
    split: SplitName | None,
    decision: str | None,
    root: Path | None,
    tell: Callable[[str], None] = lambda _: None,
) -> tuple[RunReport, ...]:
    """One report for each folder and for each training that records are of, in the order of the first of each.

    ``tell`` hears which run is looked at.

    Raises:
        ArgumentError: there are not as many names as runs, or records are to be looked at on other rows.
        MissingFileError: a RUN is not there.
    """
    for run in runs:
        if not run.exists():
            raise MissingFileError(f"{run} is not there; RUN is a folder of `rarenode fit` or a record of `reproduce`")
    folders = [run for run in runs if run.is_dir()]
    records = group_by_seed([run for run in runs if not run.is_dir()])
    if records and (data, split, decision) != (None, None, None):
        raise ArgumentError("records are of the test rows at 0.5; --data, --split and --decision are for folders")
    groups = sorted([*([folder] for folder in folders), *records], key=lambda group: runs.index(group[0]))
    if len(groups) > MOST_RUNS:
        raise ArgumentError(f"these are {len(groups)} runs; a report is about at most {MOST_RUNS}")
    if names is not None and not all(name.strip() for name in names):
        raise ArgumentError("a name must not be empty")
    if names is not None and len(names) != len(groups):
        runs_and_names = f"{len(groups)} run{'s' * (len(groups) > 1)}, and {len(names)} name{'s' * (len(names) > 1)}"
        raise ArgumentError(f"these are {runs_and_names}; give one for each, or none")
    called = [str(folder) for folder in folders] if names is None else names
    twice = next((name for name in called if list(called).count(name) > 1), None)
    if twice is not None:
        raise ArgumentError(f"two runs are named {twice!r}; give each a --name of its own")
    named: Sequence[str | None] = names or [None] * len(groups)
    found = []
    for number, (group, name) in enumerate(zip(groups, named, strict=True), start=1):
        tell(f"[{number}/{len(groups)}] {group[0]}")
        if group[0].is_dir():
            found.append(_report_on_folder(group[0], name or str(group[0]), data, split, decision, root))
        else:
            found.append(report_on_records(group, name=name, root=root))
    return tuple(found)


def report_on_training(out: Path, model: TrainedModel, unseen: Unseen | None, source: TrainingData) -> str:
    """Write the report of a run that has just been trained, on rows that it has not seen.

    Returns:
        What to tell the user: where it is, or why there is none.
    """
    name = out.name or str(out)
    settings = model.settings
    if source.test is not None:
        X, Y = source.test.X, source.test.Y
        run = report_on_model(model, X, Y, name=name, rows=f"{source.source}, test rows", prepared=True)
    elif unseen is not None:
        held_out = settings.holdout is not None
        asked = replace(model, preparation=None)
        X = source.rows.X[unseen.rows]
        run = report_on_probabilities(
            model,
            unseen.Y,
            unseen.probs,
            name=name,
            rows=f"{source.source}, {'held out' if held_out else 'each judged by a model trained without it'}",
            thresholds=model.decides_with,
            training_rows=unseen.taught_by,
            row_numbers=unseen.rows,
            # The folds' models are not at hand; the model itself has seen their rows.
            highest_voice=asked.highest_voice(X) if held_out else None,
            uncertainty=asked.uncertainty(X) if held_out else None,
            decided_here=True,
        )
    else:
        return f"no report, as all rows trained; `rarenode report {out} --data FILE` makes one on others"
    page, *_ = write_report(Report((run,)), out / PAGE)
    return f"{page}: which nodes are found, which are missed, and why"


def report_on_finished(out: Path, source: TrainingData) -> str:
    """The same for a run that was finished before; its folds are gone, so rows of its own file cannot be judged."""
    if (out / PAGE).exists():
        return ""
    if source.test is None:
        return f"it has no report; `rarenode report {out} --data FILE` makes one, on rows that it was not trained on"
    return report_on_training(out, TrainedModel.load(out), None, source)


def _report_on_folder(
    run: Path, name: str, data: str | None, split: SplitName | None, decision: str | None, root: Path | None
) -> RunReport:
    model, data, rows = load_model_and_rows(run, data, split, root)
    which = f"{data}, {split or 'test'} rows" if data in catalogue() else data
    if were_trained_on(model, data, split, rows):
        which = f"{which} ({TAUGHT})"
    return report_on_model(model, rows.X, rows.Y, name=name, rows=which, decision=decision, prepared=rows.prepared)
