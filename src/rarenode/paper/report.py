"""Reports on run folders and on records of the paper's trainings, together on one page.

A record contains the counts of each node on the test rows at the threshold 0.5, but no probabilities: there are no
curves, no reliability and, except for nodes without training rows, no reasons for missed nodes. Records of the same
training with different seeds are one run. Its scores are means over seeds, with standard deviations; its counts are
medians, so a node is found if it is found with at least half of the seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np

from rarenode._io.files import exists
from rarenode._io.text import counted
from rarenode.data.catalogue import SplitName
from rarenode.data.sources import load_dataset
from rarenode.diagnosis import diagnose_counts
from rarenode.errors import ArgumentError, DataError, FileFormatError, MissingFileError, UnknownDatasetError
from rarenode.hierarchy import Hierarchy
from rarenode.metrics import Summary
from rarenode.metrics.bootstrap import Deviations
from rarenode.metrics.per_node import NodeScores, divide
from rarenode.paper.as_published import settings_for, settings_for_own
from rarenode.paper.own_methods import CODE
from rarenode.paper.pictures import PICTURES
from rarenode.paper.record import DatasetNodes, Record
from rarenode.paper.record_settings import decisive
from rarenode.paper.store import NODES, hierarchy_of, load_record, read_nodes
from rarenode.report import MOST_RUNS, Report, RunReport, require_page_name
from rarenode.run import Run
from rarenode.thresholds.thresholds import Thresholds
from rarenode.training.model_card import Card, Code, Heading, Paragraph, code, plain, table


def report_on_runs(
    runs: Sequence[Path],
    out: Path,
    *,
    names: Sequence[str] | None = None,
    data: str | None = None,
    split: SplitName | None = None,
    thresholds: str | None = None,
    options: Mapping[str, Any] | None = None,
    root: Path | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Report:
    """One page about run folders and records; records that differ only in the seed are one run.

    Args:
        runs: folders of `Run`, and files of records.
        out: the page that is going to be written; its name is checked before anything is computed.
        names: what the runs are called, one for each; None: their paths.
        data: labelled rows to report on, for folders; None: the dataset of the catalogue that each was trained on.
        split: which part of a dataset that has parts, for folders.
        thresholds: a strategy that needs no labels, for folders.
        options: options of a table that differ from those of the training table, for folders.
        root: the folder that holds the datasets of the catalogue.
        progress: is called with a line before each run.

    Raises:
        ArgumentError: there are not as many names as runs, too many runs, or options that records do not have.
        MissingFileError: a run is not there.
    """
    require_page_name(out)
    for run in runs:
        if not exists(run):
            raise MissingFileError(f"{run} is neither a folder of `rarenode fit` nor a record: there is no such file")
    folders = [run for run in runs if run.is_dir()]
    records = group_by_seed([run for run in runs if not run.is_dir()])
    if records and (data, split, thresholds) != (None, None, None):
        raise ArgumentError("records have scores of the test rows at 0.5; data, split and thresholds are for folders")
    groups = sorted([*([folder] for folder in folders), *records], key=lambda group: runs.index(group[0]))
    if not groups:
        raise ArgumentError(f"none of the files is a record; {NODES} is not one")
    if len(groups) > MOST_RUNS:
        raise ArgumentError(f"these are {len(groups)} runs; a report is about at most {MOST_RUNS}")
    if names is not None and (len(names) != len(groups) or not all(name.strip() for name in names)):
        raise ArgumentError(f"there are {len(groups)} runs and {len(names)} names; give each run a name, or none")
    titles = [str(group[0]) if group[0].is_dir() else None for group in groups] if names is None else list(names)
    repeated = next((name for name in titles if name is not None and titles.count(name) > 1), None)
    if repeated is not None:
        raise ArgumentError(f"two runs are named {repeated!r}; give them different names")
    parts = []
    for number, (group, title) in enumerate(zip(groups, titles, strict=True), start=1):
        progress(f"[{number}/{len(groups)}] {group[0]}")
        if group[0].is_dir():
            folder = Run(group[0])
            parts.append(
                folder.report_part(data, split=split, thresholds=thresholds, options=options, name=title, root=root)
            )
        else:
            parts.append(report_on_records(group, name=title, root=root))
    return Report(tuple(parts))


def group_by_seed(paths: Sequence[Path]) -> list[list[Path]]:
    """Group records that differ only in the seed, in the order of the first of each group.

    ``nodes.json``, which lies beside records and is not one, is skipped.

    Raises:
        FileFormatError: a file is not a record.
        ArgumentError: two files are of the same training.
    """
    groups: dict[str, dict[int, Path]] = {}
    for path in paths:
        if path.name == NODES:
            continue
        record = load_record(path)
        if record.fixed is None:
            raise ArgumentError(
                f"{path} has scores of decisions, and none of single nodes, which a report needs; `rarenode fit "
                f"{record.dataset} --out RUN` trains a model with a report, and `rarenode paper table` shows the record"
            )
        same = {name: value for name, value in decisive(record.settings).items() if name != "seed"}
        same |= {**record.cell.of_pictures, **record.cell.own}
        group = groups.setdefault(f"{record.dataset} {sorted(same.items())}", {})
        if record.settings.seed in group:
            raise ArgumentError(f"{path} and {group[record.settings.seed]} are of the same training; give one of them")
        group[record.settings.seed] = path
    return [list(group.values()) for group in groups.values()]


def report_on_records(paths: Sequence[Path], *, name: str | None = None, root: Path | None = None) -> RunReport:
    """Join the records of one training with one or several seeds.

    Args:
        paths: the files; ``nodes.json`` is beside them.
        name: the name of the run; by default what differs from the paper's hyperparameters.
        root: the folder that holds the datasets, from which the hierarchy is read.

    Raises:
        FileFormatError: a file is damaged or inconsistent.
        DataError: the hierarchy on disk is not that of the training, or the records are of different data.
        MissingFileError: the dataset is not on disk.
    """
    records = [load_record(path) for path in paths]
    first = records[0]
    shared = _nodes_beside(paths)
    hierarchy = _hierarchy(first, shared, paths[0], root)
    if (hierarchy.fingerprint, hierarchy.nodes) != (shared.hierarchy, shared.names):
        raise DataError(f"{paths[0].with_name(NODES)} is of another hierarchy than {first.dataset} has on disk")
    scores = _over_seeds(records, paths, shared)
    seeds = ", ".join(str(record.settings.seed) for record in records)
    return RunReport(
        name=name or _name(first),
        about=f"{first.dataset}, test rows; nodes decided at 0.5; {'seed' if len(records) == 1 else 'seeds'} {seeds}",
        summary=_mean(records),
        deviations=_deviations(records) if len(records) > 1 else None,
        deviations_of=f"{len(records)} trainings with different seeds" if len(records) > 1 else "",
        nodes=diagnose_counts(
            hierarchy,
            scores,
            Thresholds(np.full(len(hierarchy), 0.5), strategy="fixed"),
            np.array(shared.training_rows, dtype=np.int64),
            np.array(shared.scored, dtype=np.bool_),
        ),
        card=_card(records, hierarchy),
        curves={},
        reliability={},
        history=(),
        unsure_rows=(),
    )


def _name(record: Record) -> str:
    """What differs from the paper's hyperparameters."""
    usual = settings_for_own() if "data" in record.cell.own else settings_for(record.dataset)
    ours, paper = record.settings.decisive, usual.decisive
    differing = [name for name in sorted(ours) if ours[name] != paper[name] and name not in ("seed", "engine")]
    shown = [f"{name}={ours[name]}" for name in differing]
    shown += [f"{name}={value:g}" for name, value in record.cell.of_pictures.items()]
    shown += [f"{key}={code.partition(' ')[0]}" for key, code in record.cell.own.items() if key in CODE]
    return ", ".join(shown) or "as in the paper"


def _hierarchy(record: Record, nodes: DatasetNodes, path: Path, root: Path | None) -> Hierarchy:
    """That of the dataset on disk; of pictures, the one that the names of the nodes tell; or that of the nodes."""
    dataset = record.dataset
    if dataset in PICTURES or nodes.parents is not None:
        hierarchy = hierarchy_of(nodes, path.with_name(NODES))
        if hierarchy is None:
            raise DataError(f"{path.with_name(NODES)}: the names of the nodes do not tell their hierarchy")
        return hierarchy
    try:
        return load_dataset(dataset, root, "none").hierarchy
    except UnknownDatasetError as error:
        raise FileFormatError(path, None, str(error)) from None


def _nodes_beside(paths: Sequence[Path]) -> DatasetNodes:
    """The content of ``nodes.json``, which must be the same in all folders."""
    folders = list(dict.fromkeys(path.parent for path in paths))
    first, *others = (read_nodes(folder.parent, folder.name) for folder in folders)
    for folder, nodes in zip(folders[1:], others, strict=True):
        if nodes != first:
            raise DataError(
                f"{folder / NODES} and {folders[0] / NODES} are of different data, so their records are not one run"
            )
    return first


def _over_seeds(records: Sequence[Record], paths: Sequence[Path], shared: DatasetNodes) -> NodeScores:
    """Means of the scores, and the (upper) medians of the counts."""
    nodes = len(shared.names)
    rows = np.array(shared.test_rows, dtype=np.int64)
    hits, claimed = (np.zeros((len(records), nodes), dtype=np.int64) for _ in range(2))
    for place, (record, path) in enumerate(zip(records, paths, strict=True)):
        counts = record.at_half.nodes
        columns = np.array(counts.column, dtype=np.int64)
        if len(columns) and columns.max() >= nodes:
            raise FileFormatError(path, None, f"it has columns beyond the {counted(nodes, 'node')} of {NODES}")
        if len(np.unique(columns)) < len(columns):
            raise FileFormatError(path, None, "it has a column twice")
        hits[place, columns], claimed[place, columns] = counts.true_positives, counts.predicted
        if (hits[place] > np.minimum(claimed[place], rows)).any():
            raise FileFormatError(path, None, "a node has more true positives than predictions or labels")
    middle = len(records) // 2
    return NodeScores(
        precision=np.mean([divide(h, c) for h, c in zip(hits, claimed, strict=True)], axis=0),
        recall=np.mean([divide(h, rows) for h in hits], axis=0),
        f1=np.mean([divide(2 * h, c + rows) for h, c in zip(hits, claimed, strict=True)], axis=0),
        true_positives=np.sort(hits, axis=0)[middle],
        predicted=np.sort(claimed, axis=0)[middle],
        support=rows,
    )


def _mean(records: Sequence[Record]) -> Summary:
    def mean(name: str) -> float:
        return fmean(getattr(record.at_half.summary, name) for record in records)

    return Summary(
        f1=mean("f1"),
        precision=mean("precision"),
        recall=mean("recall"),
        bin_ap=mean("bin_ap"),
        ap=mean("ap"),
        nodes=round(mean("nodes")),
        nodes_predicted=round(mean("nodes_predicted")),
        nodes_found=round(mean("nodes_found")),
    )


def _deviations(records: Sequence[Record]) -> Deviations:
    return Deviations(
        **{f.name: stdev(getattr(record.at_half.summary, f.name) for record in records) for f in fields(Deviations)}
    )


def _command(record: Record) -> Card:
    dataset = record.dataset
    if dataset in PICTURES or record.own:
        return (Paragraph("`rarenode paper run` with a spec that has these settings:"),)
    command = f"rarenode fit {plain(dataset)} --settings settings.toml --out RUN"
    return Code(command, "sh"), Paragraph("where `settings.toml` is")


def _card(records: Sequence[Record], hierarchy: Hierarchy) -> Card:
    first = records[0]
    return (
        Paragraph(
            f"{len(records)} of the paper's trainings on {code(first.dataset)}, with the {plain(first.engine)} engine "
            f"on {plain(first.machine)}. Their records were kept, and their models were not."
        ),
        Heading("Limits"),
        Paragraph(
            "Scores are those of the test rows at the threshold 0.5. Records contain no probabilities, so there are no "
            "curves, no uncertainty, and few reasons for missed nodes; a run of `rarenode fit` has them."
        ),
        Heading("Reproducing it"),
        *_command(first),
        Code(first.settings.to_toml().strip(), "toml"),
        table(
            ("what", "value"),
            [
                (plain(name), code(value))
                for name, value in [
                    *first.versions.items(),
                    ("hierarchy", hierarchy.fingerprint),
                    *first.cell.own.items(),
                ]
            ],
        ),
    )
