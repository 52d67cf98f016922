"""`Predictions`: probabilities and decisions for rows, as arrays, as a table, or as a file.

Four layouts of a table:

========  =============================================================================================================
long      a line for each row and node: id, node, title, probability, decided, uncertainty
wide      a line for each row, a column for each node: its probability, blank if that is below ``min_probability``; or,
          with ``decided_only``, 0 or 1
sets      a line for each row: the deepest decided labels (all of guaranteed sets) in one cell, the most probable
          first, with their titles and probabilities
cafa      the format of the CAFA challenges: id, term and score, separated by tabs, without a header
========  =============================================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rarenode._io.cells import guarded_frame
from rarenode._io.delimited import COMMA_SEPARATED, Dialect
from rarenode._io.files import replacing
from rarenode._io.text import counted, storable
from rarenode.errors import ArgumentError, RarenodeError
from rarenode.hierarchy import Hierarchy

Layout = Literal["long", "wide", "sets", "cafa"]
OWN_COLUMNS = ("row", "node", "title", "probability", "decided", "uncertainty", "labels", "titles", "probabilities")
SUFFIXES = (".csv", ".tsv", ".parquet", ".jsonl")
MOST_TERMS = 1500
"""CAFA takes at most so many terms for each target."""
LEAST_SCORE = 0.001
"""CAFA's scores have three decimals; a smaller one would be 0, which is not allowed."""


@dataclass(frozen=True)
class Choice:
    """Which predictions to write, and how."""

    layout: Layout = "long"
    decided_only: bool = False
    """Only the decided nodes."""
    min_probability: float = 0.0
    """Only nodes that are at least so probable."""
    all_labels: bool = False
    """In ``sets``: also the ancestors of the deepest labels. Without coherence all labels are written anyway."""
    separator: str = ";"
    """In ``sets``: between the labels of a cell."""
    most_terms: int = MOST_TERMS
    """In ``cafa``: the most probable terms of each row, at most so many."""
    dialect: Dialect = COMMA_SEPARATED
    """How a CSV file is written."""
    raw: bool = False
    """In CSV and TSV: names as they are, also those that a spreadsheet takes for formulas."""

    def __post_init__(self) -> None:
        if self.layout not in get_args(Layout):
            raise ArgumentError(f"unknown layout {self.layout!r}; choose one of {', '.join(get_args(Layout))}")
        if not 0 <= self.min_probability <= 1:
            raise ArgumentError(f"min_probability must lie between 0 and 1, got {self.min_probability}")
        if not self.separator:
            raise ArgumentError("the separator must not be empty")
        if storable(self.separator) != self.separator:
            raise ArgumentError(f"the separator {self.separator!r} is not valid Unicode text")
        if self.most_terms < 1:
            raise ArgumentError(f"most_terms must be at least 1, got {self.most_terms}")


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions for rows and scored nodes; an artificial root is left out."""

    hierarchy: Hierarchy
    scored: NDArray[np.bool_]
    """(all nodes,): which nodes these are."""
    probs: NDArray[np.float32]
    """(rows, nodes): a parent's probability is never below its child's."""
    decided: NDArray[np.bool_]
    """(rows, nodes): whether the probability reaches the node's threshold; with a node, all its ancestors, if
    ``coherent``."""
    uncertainty: NDArray[np.float32]
    """(rows, nodes)."""
    thresholds: str
    """How the thresholds were chosen, in words."""
    ids: tuple[str, ...] | None = None
    """The names of the rows, if they have any."""
    first_row: int = field(default=0, repr=False)
    """The number of the first row, if these are a part of more."""
    id_name: str = "id"
    """What the column of ids is called, unless another column of the table is called so."""
    coherent: bool = True
    """Whether all ancestors of decided labels are decided; not so in guaranteed sets."""

    def __len__(self) -> int:
        return len(self.probs)

    def __repr__(self) -> str:
        return (
            f"<Predictions of {counted(len(self), 'row')} x {counted(len(self.nodes), 'node')}: "
            f"{np.count_nonzero(self.decided):,} decided, thresholds {self.thresholds}>"
        )

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes, in the order of columns."""
        return tuple(np.array(self.hierarchy.nodes, dtype=object)[self.scored].tolist())

    @property
    def titles(self) -> tuple[str, ...]:
        """Their names for people."""
        return tuple(np.array(self.hierarchy.titles, dtype=object)[self.scored].tolist())

    @property
    def deepest(self) -> NDArray[np.bool_]:
        """(rows, nodes): decided nodes none of whose children is decided; if ``coherent``, they imply all others."""
        return self._deepest_of(self.decided)

    def _deepest_of(self, labels: NDArray[np.bool_]) -> NDArray[np.bool_]:
        every = np.zeros((len(self.hierarchy), len(self)), dtype=np.bool_)
        every[self.scored] = labels.T
        parents, starts = self.hierarchy.families
        if len(parents):
            below = np.logical_or.reduceat(every[self.hierarchy.edge_children], starts[:-1], axis=0)
            every[parents] &= ~below
        return np.ascontiguousarray(every[self.scored].T)

    def to_frame(self, choice: Choice | None = None, **changes: Any) -> Any:
        """A polars data frame in one of the layouts of this module.

        Rows without ids are numbered from 0. Keyword arguments are those of `Choice`: ``layout``, ``decided_only``,
        ``min_probability``, ...
        """
        choice = Choice(**changes) if choice is None else choice
        match choice.layout:
            case "long":
                return self._long(choice)
            case "wide":
                return self._wide(choice)
            case "sets":
                return self._sets(choice)
        return self._cafa(choice)

    def write(self, path: Path | str, choice: Choice | None = None, **changes: Any) -> int:
        """Write `to_frame` as CSV, TSV, Parquet or JSON lines; see `write_predictions`."""
        return write_predictions([self], path, Choice(**changes) if choice is None else choice)

    # --- layouts -------------------------------------------------------------------------------------------------

    def _keys(self, rows: NDArray[np.int64]) -> dict[str, Any]:
        if self.ids is None:
            return {"row": (rows + self.first_row).astype(np.uint32)}
        import polars as pl  # noqa: PLC0415

        name = "id" if self.id_name in OWN_COLUMNS else storable(self.id_name)
        return {name: pl.Series([storable(self.ids[row]) for row in rows.tolist()], dtype=pl.String)}

    def _chosen(self, choice: Choice) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        kept = self.probs >= choice.min_probability
        if choice.decided_only:
            kept &= self.decided
        rows, columns = np.nonzero(kept)
        return rows, columns

    def _long(self, choice: Choice) -> Any:
        import polars as pl  # noqa: PLC0415 (it takes a tenth of a second to load)

        rows, columns = self._chosen(choice)
        named = {"node": self._named(self.nodes, columns)}
        if self.hierarchy.terms is not None:
            named["title"] = self._named(self.titles, columns)
        return pl.DataFrame(
            self._keys(rows)
            | named
            | {
                "probability": self.probs[rows, columns],
                "decided": self.decided[rows, columns].astype(np.uint8),
                "uncertainty": self.uncertainty[rows, columns],
            }
        )

    @staticmethod
    def _named(names: tuple[str, ...], columns: NDArray[np.int64]) -> Any:
        import polars as pl  # noqa: PLC0415

        distinct = dict.fromkeys(storable(name) for name in names)
        place = {name: number for number, name in enumerate(distinct)}
        codes = np.array([place[storable(name)] for name in names], dtype=np.uint32)[columns]
        return pl.Series(list(distinct), dtype=pl.Enum(list(distinct))).gather(codes)

    def _wide(self, choice: Choice) -> Any:
        import polars as pl  # noqa: PLC0415

        likely = self.probs >= choice.min_probability
        shown = np.where(likely, self.probs, np.float32(np.nan))
        values: NDArray[Any] = (self.decided & likely).astype(np.uint8) if choice.decided_only else shown
        columns = {storable(node): np.ascontiguousarray(values[:, place]) for place, node in enumerate(self.nodes)}
        keys = self._keys(np.arange(len(self)))
        clash = next((name for name in keys if name in columns), None)
        if clash is not None:
            raise ArgumentError(f"the node {clash!r} is called like the column that names the rows; choose layout long")
        return pl.DataFrame(keys | columns).with_columns(pl.col(pl.Float32).fill_nan(None))

    def _sets(self, choice: Choice) -> Any:
        import polars as pl  # noqa: PLC0415

        chosen = self.decided & (self.probs >= choice.min_probability)
        if self.coherent and not choice.all_labels:
            chosen = self._deepest_of(chosen)
        nodes, titles = self.nodes, self.titles
        core = choice.separator.strip() or choice.separator  # at which readers split
        odd = next((node for node in nodes if f"{node}{choice.separator}".index(core) < len(node)), None)
        if odd is not None:
            what = "contains" if core in odd else "overlaps"
            problem = f"the node {odd!r} {what} the separator {core!r}; choose another one (--separator)"
            raise ArgumentError(problem)
        found = [_by_probability(np.flatnonzero(row), self.probs[number]) for number, row in enumerate(chosen)]
        columns: dict[str, Any] = {
            "labels": [choice.separator.join(storable(nodes[node]) for node in row) for row in found]
        }
        if self.hierarchy.terms is not None:
            columns["titles"] = [choice.separator.join(storable(titles[node]) for node in row) for row in found]
        point = "," if choice.dialect.decimal_comma else "."
        columns["probabilities"] = [
            choice.separator.join(f"{self.probs[number, node]:.3f}".replace(".", point) for node in row)
            for number, row in enumerate(found)
        ]
        return pl.DataFrame(self._keys(np.arange(len(self))) | columns)

    def _cafa(self, choice: Choice) -> Any:
        import polars as pl  # noqa: PLC0415

        kept = self.probs >= max(choice.min_probability, LEAST_SCORE)
        if choice.decided_only:
            kept &= self.decided
        if self.probs.shape[1] > choice.most_terms:
            order = np.argsort(np.where(kept, -self.probs, 1), axis=1, kind="stable")[:, : choice.most_terms]
            among = np.zeros_like(kept)
            np.put_along_axis(among, order, True, axis=1)
            kept &= among
        rows, columns = np.nonzero(kept)
        scores = self.probs[rows, columns]
        order = np.lexsort((columns, -scores, rows))
        rows, columns, scores = rows[order], columns[order], scores[order]
        keys = self._keys(rows)
        for what, names in (("node", self.nodes), ("id", map(str, next(iter(keys.values()))))):
            odd = next((name for name in names if any(each in name for each in "\t\n\r")), None)
            if odd is not None:
                problem = "contains a tab or a line break, which the layout cafa cannot have"
                raise ArgumentError(f"the {what} {odd!r} {problem}")
        return pl.DataFrame(
            {"id": [str(key) for key in next(iter(keys.values()))]}
            | {"term": self._named(self.nodes, columns)}
            | {"score": [f"{score:.3f}" for score in scores.tolist()]}
        )


# --- files -----------------------------------------------------------------------------------------------------------


def _by_probability(columns: NDArray[np.int64], probs: NDArray[np.float32]) -> list[int]:
    """Columns, the most probable first; of equal ones the one that comes first."""
    found: list[int] = columns[np.argsort(-probs[columns], kind="stable")].tolist()
    return found


def write_predictions(parts: Iterable[Predictions], path: Path | str, choice: Choice) -> int:
    """Write predictions, part after part, so that they need not be in memory together.

    The suffix of the name chooses the format: ``.csv``, ``.tsv``, ``.parquet``, or ``.jsonl`` (an object in each
    line). The layout ``cafa`` is always separated by tabs. The file appears under its name only when it is complete.
    In CSV and TSV, names that a spreadsheet would take for formulas begin with an apostrophe (see
    `rarenode._io.cells`), but for ``raw`` and the layout ``cafa``; rarenode reads them without it.

    Returns:
        How many lines were written.

    Raises:
        ArgumentError: the name has another suffix, or the file cannot be written.
    """
    path = Path(path)
    check_output(path, choice.layout)
    suffix = path.suffix.lower()
    try:
        with replacing(path) as (part,):
            if suffix == ".parquet":
                return _write_parquet(parts, part, choice)
            with part.open("wb") as file:
                lines = 0
                for number, each in enumerate(parts):
                    frame = each.to_frame(choice)
                    lines += len(frame)
                    if suffix == ".jsonl":
                        file.write("".join(f"{line}\n" for line in _json_lines(frame, each, choice)).encode("utf-8"))
                    else:
                        tabs = suffix == ".tsv" or choice.layout == "cafa"
                        is_csv = not tabs
                        shown = frame if choice.raw or choice.layout == "cafa" else guarded_frame(frame)
                        shown.write_csv(
                            file,
                            separator=choice.dialect.delimiter if is_csv else "\t",
                            include_header=number == 0 and choice.layout != "cafa",
                            include_bom=number == 0 and is_csv and choice.dialect.byte_order_mark,
                            decimal_comma=is_csv and choice.dialect.decimal_comma,
                            quote_style="never" if choice.layout == "cafa" else "necessary",
                        )
                return lines
    except RarenodeError:
        raise
    except OSError as error:
        raise ArgumentError(f"{path} cannot be written: {error.strerror or error}") from None


def _json_lines(frame: Any, predictions: Predictions, choice: Choice) -> Iterator[str]:
    """A line for each row of a frame; in ``sets``, with lists in place of cells."""
    title_of = {storable(node): title for node, title in zip(predictions.nodes, predictions.titles, strict=True)}
    for record in frame.iter_rows(named=True):
        if choice.layout == "sets":
            for name in ("labels", "probabilities"):
                record[name] = record[name].split(choice.separator) if record[name] else []
            record["probabilities"] = [float(each.replace(",", ".")) for each in record["probabilities"]]
            if "titles" in record:  # which may contain the separator
                record["titles"] = [storable(title_of[label]) for label in record["labels"]]
        yield json.dumps(record, ensure_ascii=False)


def _write_parquet(parts: Iterable[Predictions], path: Path, choice: Choice) -> int:
    """Parquet, part after part; polars pulls the parts while it writes."""
    from polars.exceptions import ComputeError  # noqa: PLC0415
    from polars.io.plugins import register_io_source  # noqa: PLC0415

    frames = (each.to_frame(choice) for each in parts)
    first = next(frames)
    lines = len(first)

    def pull(columns: list[str] | None, predicate: Any, n_rows: int | None, batch: int | None) -> Iterator[Any]:
        nonlocal lines
        yield first if columns is None else first[columns]
        for frame in frames:
            lines += len(frame)
            yield frame if columns is None else frame[columns]

    with path.open("wb") as file:  # polars takes no path that is not UTF-8
        try:
            register_io_source(pull, schema=first.schema).sink_parquet(file)
        except ComputeError as error:  # also if the disk is full
            raise OSError(str(error).rpartition("underlying IO error: ")[2]) from None
    return lines


def check_output(path: Path, layout: Layout = "long") -> None:
    """Refuse a file whose name does not say in which format to write it."""
    allowed = (*SUFFIXES, ".txt") if layout == "cafa" else SUFFIXES
    if path.suffix.lower() not in allowed:
        folder = "" if path.suffix else ", or in / for a folder with an output for each file"
        raise ArgumentError(f"{path}: the name must end in {', '.join(allowed)}{folder}")
    if layout == "cafa" and path.suffix.lower() in (".parquet", ".jsonl"):
        raise ArgumentError(f"{path}: the layout cafa is text; the name must end in .tsv or .txt")
