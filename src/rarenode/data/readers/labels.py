"""Labels of the rows of a table: in a column of sets, a column per level, indicator columns, or a file of their own.

All four become `Stated`: which row is said to have, or not to have, which label. `LabelNames` finds the node that a
label stands for; without a hierarchy, paths and levels make one.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rarenode._io.delimited import read_records
from rarenode._io.text import by_normal_form, counted, normal_form
from rarenode.data.readers.frames import Table
from rarenode.errors import DataError, FileFormatError, RarenodeError
from rarenode.hierarchy import Hierarchy
from rarenode.hierarchy.construction import DEFAULT_SEPARATOR
from rarenode.hierarchy.files import guess_separator, split_path
from rarenode.hierarchy.labels import MOST_DENSE_CELLS, Labels, dense_rows, sparse_labels
from rarenode.hierarchy.three_valued import complete_labels

YES = frozenset({"1", "1.0", "true", "yes", "y", "t", "present", "x", "+"})
NO = frozenset({"0", "0.0", "false", "no", "n", "f", "absent", "-"})
UNSURE = frozenset({"", "?", "na", "nan", "unknown"})
BRACKETS = r"""^\[\s*(|(\d+|'[^',\[\]]*'|"[^",\[\]]*")(\s*,\s*(\d+|'[^',\[\]]*'|"[^",\[\]]*"))*)\s*\]$"""
"""A list of numbers or of quoted texts."""
NEARLY_ALL = 0.8
"""If at least this share of the cells of columns is yes or no, the others are mistakes, and the columns no levels."""
LONGEST_SHOWN = 200
"""Characters of a label that a message shows."""
MOST_DETAILS = 50
"""So many labels that are not in the hierarchy, or contradictions, are listed."""
MOSTLY = 0.5
"""Of distinct labels, at least this share must contain a separator that is only guessed."""
MOST_TO_COMPARE = 200_000
"""Characters of names that are searched for a similar one; a suggestion must not make an error slow."""

Bools = NDArray[np.bool_]
Place = Callable[[int, str], RarenodeError]
"""Makes an error about a statement: its number, and what is wrong."""


@dataclass(frozen=True, eq=False)
class Stated:
    """Statements about rows."""

    rows: NDArray[np.int64]
    labels: list[str]
    """For each statement, the label as it is written, or the steps of a path, joined by `` > ``."""
    values: NDArray[np.int8]
    """For each statement: 1 present, 0 absent, -1 unknown."""
    labelled: Bools
    """(rows of the table,): whether anything is stated about a row."""
    error: Place
    is_path: bool = False
    """Whether the labels are paths already, joined by `` > ``."""
    notes: tuple[str, ...] = ()
    """What is worth knowing about the file of labels."""


# --- reading ---------------------------------------------------------------------------------------------------------


def from_sets(table: Table, column: str, separator: str) -> Stated:
    """A column whose cells are lists of labels, or contain labels that are separated by ``separator``.

    A blank cell is a row without labels.
    """
    cells = table.frame[column]
    if isinstance(cells.dtype, pl.List | pl.Array):
        sets = cells.cast(pl.List(pl.String))
    else:
        text = cells.cast(pl.String)
        sets = _from_brackets(text) if are_lists(text) else text.str.split(separator.strip() or separator)
    parts = (
        pl.DataFrame({"row": np.arange(len(cells)), "label": sets})
        .explode("label")
        .with_columns(pl.col("label").str.strip_chars())
        .filter(pl.col("label").is_not_null() & (pl.col("label") != ""))
    )
    rows = parts["row"].to_numpy().astype(np.int64)
    labelled = np.zeros(len(cells), dtype=np.bool_)
    labelled[rows] = True

    def error(statement: int, problem: str) -> RarenodeError:
        return table.error(int(rows[statement]), f"column {column!r}: {problem}")

    return Stated(rows, parts["label"].to_list(), np.ones(len(rows), dtype=np.int8), labelled, error)


def are_lists(cells: pl.Series) -> bool:
    """Whether all cells are lists such as ``[0, 3]`` or ``['a', 'b']``, as data frames write them into text."""
    known = cells.drop_nulls()
    return len(known) > 0 and bool(known.str.contains(BRACKETS).all())


def _from_brackets(cells: pl.Series) -> pl.Series:
    """The lists that such cells are."""
    inner = cells.str.strip_chars("[] ").str.split(",")
    return inner.list.eval(pl.element().str.strip_chars(" '\""))


def from_levels(table: Table, columns: Sequence[str]) -> Stated:
    """One column for each level, the highest first; the cells of a row make a path, and blanks end it."""
    cells = [table.frame[column].cast(pl.String).str.strip_chars().fill_null("").to_list() for column in columns]
    rows, labels = [], []
    for row, steps in enumerate(zip(*cells, strict=True)):
        filled = [step for step in steps if step]
        if not filled:
            continue
        if any(not step for step in steps[: len(filled)]):
            gap = next(place for place, step in enumerate(steps) if not step)
            deeper = next(place for place in range(gap, len(steps)) if steps[place])
            above = f"the level above it, {columns[gap]!r}, is blank"
            what = "fill it in, or leave the deeper levels blank as well"
            raise table.error(row, f"column {columns[deeper]!r} is {steps[deeper]!r}, but {above}; {what}")
        odd = next((place for place, step in enumerate(filled) if DEFAULT_SEPARATOR in step), None)
        if odd is not None:
            problem = f"{filled[odd][:80]!r} contains {DEFAULT_SEPARATOR!r}, which separates levels; rename it"
            raise table.error(row, f"column {columns[odd]!r}: {problem}")
        rows.append(row)
        labels.append(DEFAULT_SEPARATOR.join(filled))
    numbers = np.array(rows, dtype=np.int64)
    labelled = np.zeros(len(table.frame), dtype=np.bool_)
    labelled[numbers] = True

    def error(statement: int, problem: str) -> RarenodeError:
        return table.error(rows[statement], f"columns {columns[0]!r} to {columns[-1]!r}: {problem}")

    return Stated(numbers, labels, np.ones(len(rows), dtype=np.int8), labelled, error, is_path=True)


def from_indicators(table: Table, columns: Sequence[str]) -> Stated:
    """One column for each label, named after it: 1 or yes, 0 or no, blank where it is unknown."""
    rows: list[NDArray[np.int64]] = []
    values: list[NDArray[np.int8]] = []
    labels: list[str] = []
    for column in columns:
        found = _indicator_values(table.frame[column])
        rows.append(np.arange(len(found)))
        values.append(found)
        labels.extend([column] * len(found))
    all_values = np.concatenate(values)
    labelled: Bools = np.any(np.stack(values) >= 0, axis=0)

    def error(statement: int, problem: str) -> RarenodeError:
        return table.error(statement % len(table.frame), f"column {labels[statement]!r}: {problem}")

    return Stated(np.concatenate(rows), labels, all_values, labelled, error)


def are_indicators(table: Table, columns: Sequence[str]) -> bool:
    """Whether the columns contain yes or no, and nothing else but blanks.

    Raises:
        DataError: nearly all cells do, and some do not.
    """
    meant, odd = 0, None
    for column in columns:
        words = table.frame[column].cast(pl.String).str.strip_chars().str.to_lowercase()
        for word, times in words.value_counts().iter_rows():
            if word in YES | NO:
                meant += times
            elif word is not None and word not in UNSURE:
                odd = (column, word, times, odd[3] + times if odd is not None else times)
    if odd is None:
        return meant > 0
    column, word, _, others = odd
    if meant < NEARLY_ALL * (meant + others):
        return False
    row = int((table.frame[column].cast(pl.String).str.strip_chars().str.to_lowercase() == word).arg_max() or 0)
    problem = f"expected 1, 0, yes, no or blank for unknown, as in most cells, got {word[:80]!r}"
    raise table.error(row, f"column {column!r}: {problem}")


def _indicator_values(column: pl.Series) -> NDArray[np.int8]:
    words = column.cast(pl.String).str.strip_chars().str.to_lowercase().to_list()
    meaning = dict.fromkeys(YES, 1) | dict.fromkeys(NO, 0)
    return np.array([-1 if word is None else meaning.get(word, -1) for word in words], dtype=np.int8)


def from_long_file(table: Table, ids: Sequence[str], path: Path) -> Stated:
    """A file with the columns id, label and, if it has a third, value: yes, no or unknown; 1 where there is none.

    It may have a header; without one, its first id is one of the table's.
    """
    records = read_records(path)
    if len(records.header) not in (2, 3):
        got = counted(len(records.header), "column")
        raise FileFormatError(path, 1, f"expected the columns id, label and perhaps value, got {got}")
    entries = list(records.rows)
    if records.header[0] in set(ids):
        entries.insert(0, (1, list(records.header)))
    meaning = dict.fromkeys(YES, 1) | dict.fromkeys(NO, 0) | dict.fromkeys(UNSURE, -1)
    statements = []
    for line, fields in entries:
        if not fields[0] or not fields[1]:
            raise FileFormatError(path, line, "the id or the label is blank")
        value = 1
        if len(fields) > 2:
            word = fields[2].lower()
            if word not in meaning:
                raise FileFormatError(path, line, f"expected 1, 0, yes, no or unknown as value, got {fields[2][:80]!r}")
            value = meaning[word]
        statements.append((line, fields[0], fields[1], value))
    return match_ids(table, ids, path, statements)


def match_ids(table: Table, ids: Sequence[str], path: Path, statements: Iterable[tuple[int, str, str, int]]) -> Stated:
    """Statements (line, id, label, value) of a file, about the rows of a table with these ids.

    Raises:
        DataError: no id of the file is one of the table's.
    """
    row_of = {key: row for row, key in enumerate(ids)}
    given = list(statements)
    kept = [(line, row_of[key], label, value) for line, key, label, value in given if key in row_of]
    if not given:
        raise FileFormatError(path, None, "it has no labels")
    if not kept:
        raise DataError(
            f"no id of {path} is one of the ids of {table.name}: the first are {given[0][1][:80]!r} and "
            f"{ids[0][:80]!r}; choose the column of ids (--id) that the labels have"
        )
    rows = np.array([row for _, row, _, _ in kept], dtype=np.int64)
    labelled = np.zeros(len(ids), dtype=np.bool_)
    labelled[rows] = True

    def error(statement: int, problem: str) -> RarenodeError:
        return FileFormatError(path, kept[statement][0], problem)

    values = np.array([value for *_, value in kept], dtype=np.int8)
    others = dict.fromkeys(key for _, key, _, _ in given if key not in row_of)
    share = f"{len(others):,} of {len(others) + int(labelled.sum()):,} ids of {path}"
    notes = tuple(f"{share} are not in {table.name}, such as {key[:80]!r}" for key in [*others][:1])
    return Stated(rows, [label for _, _, label, _ in kept], values, labelled, error, notes=notes)


# --- from labels to nodes --------------------------------------------------------------------------------------------


class LabelNames:
    """Finds the node that a label stands for: its name, an alias, a path to it, or a title that no other node has."""

    def __init__(self, hierarchy: Hierarchy, path_separator: str = DEFAULT_SEPARATOR) -> None:
        self.hierarchy, self.path_separator = hierarchy, path_separator
        terms = hierarchy.terms
        self.aliases: Mapping[str, str] = {} if terms is None else terms.aliases
        self.obsolete = frozenset[str]() if terms is None else terms.obsolete
        self.excluded = frozenset[str]() if terms is None else terms.excluded
        count = Counter(hierarchy.titles)
        self.titles = {
            title: node for node, title in zip(hierarchy.nodes, hierarchy.titles, strict=True) if count[title] == 1
        }
        self.ambiguous = {title for title, times in count.items() if times > 1}

    def column(self, label: str, is_path: bool = False) -> int | None:
        """The column of a label's node; None for one that was left out on purpose.

        Raises:
            DataError: there is no such node; the message suggests one.
        """
        node = self.node(label, is_path)
        if node is not None:
            return self.hierarchy.index[node]
        if label in self.excluded:
            return None
        raise DataError(self._unknown(label, self._steps(label, is_path)))

    def node(self, label: str, is_path: bool = False) -> str | None:
        """The node that a label stands for; None if there is none, or it was left out on purpose."""
        if label in self.hierarchy:
            return label
        if label in self.aliases:
            return self.aliases[label]
        if label in self.excluded:
            return None
        steps = self._steps(label, is_path)
        if len(steps) > 1:
            joined = DEFAULT_SEPARATOR.join(steps)
            node = joined if joined in self.hierarchy else self._walk(steps)
            if node is not None:
                return node
        if label in self.titles:
            return self.titles[label]
        return self._in_another_form(DEFAULT_SEPARATOR.join(steps) if len(steps) > 1 else label)

    def _steps(self, label: str, is_path: bool) -> list[str]:
        return path_steps(label, DEFAULT_SEPARATOR if is_path else self.path_separator, is_path)

    def _walk(self, steps: list[str]) -> str | None:
        """The node at the end of a path of names or titles, where nodes are not named by paths."""
        here = self.titles.get(steps[0], steps[0])
        if here not in self.hierarchy:
            return None
        for step in steps[1:]:
            below = [node for node in self.hierarchy.children(here) if step in (node, self._title(node))]
            if len(below) != 1:
                return None
            here = below[0]
        return here

    def _in_another_form(self, label: str) -> str | None:
        """The node whose name or title differs from a label only in how Unicode stores accents."""
        form = normal_form(label)
        if form in self._forms:
            return self._forms[form]
        title = self._title_forms.get(form)
        return None if title is None else self.titles[title]

    @cached_property
    def _forms(self) -> Mapping[str, str]:
        return by_normal_form(self.hierarchy.nodes)

    @cached_property
    def _title_forms(self) -> Mapping[str, str]:
        return by_normal_form(set(self.hierarchy.titles) - self.ambiguous)

    def _title(self, node: str) -> str:
        return self.hierarchy.titles[self.hierarchy.index[node]]

    def _unknown(self, label: str, steps: list[str]) -> str:
        shown = repr(label[:LONGEST_SHOWN]) + ("..." if len(label) > LONGEST_SHOWN else "")
        if label in self.obsolete:
            return f"the label {shown} is obsolete, and nothing replaces it; remove it or choose another"
        if label in self.ambiguous:
            return f"the label {shown} is the name of several nodes; write the path to it"
        near = self._nearest(label, steps)
        hint = f"; did you mean {near!r}?" if near is not None else ""
        return f"the label {shown} is not in the hierarchy of {len(self.hierarchy)} nodes{hint}"

    def _nearest(self, label: str, steps: list[str]) -> str | None:
        """The node that is spelled most like a label."""
        nodes, titles = self.hierarchy.nodes, self.hierarchy.titles
        if sum(map(len, nodes)) > MOST_TO_COMPARE:
            return None
        if len(steps) == 1:
            near = difflib.get_close_matches(label[:LONGEST_SHOWN], [*self.titles, *nodes], n=1)
            return near[0] if near else None
        # Nodes that are named by paths resemble each other; the last step tells more, and the whole path decides.
        last = set(difflib.get_close_matches(steps[-1][:LONGEST_SHOWN], sorted(set(titles)), n=3))
        path = DEFAULT_SEPARATOR.join(steps)[:LONGEST_SHOWN]
        ends_alike = [node for node, title in zip(nodes, titles, strict=True) if title in last]
        near = difflib.get_close_matches(path, ends_alike, n=1) or difflib.get_close_matches(path, nodes, n=1)
        return near[0] if near else next(iter(ends_alike), None)


def path_steps(label: str, separator: str, is_path: bool) -> list[str]:
    """The steps of a label that is, or may be, a path."""
    return label.split(separator) if is_path else split_path(label, separator)


def derive_hierarchy(stated: Stated, path_separator: str | None) -> tuple[Hierarchy, str]:
    """The hierarchy that paths make, and the separator of their steps.

    Raises:
        DataError: the labels are not paths.
    """
    distinct = list(dict.fromkeys(stated.labels))
    separator = DEFAULT_SEPARATOR if stated.is_path else (path_separator or guess_separator(distinct))
    paths = []
    for label in distinct:
        steps = path_steps(label, separator, stated.is_path)
        if not all(steps):
            raise stated.error(stated.labels.index(label), f"the path {label[:80]!r} has an empty step")
        paths.append(DEFAULT_SEPARATOR.join(steps))
    several = sum(DEFAULT_SEPARATOR in path for path in paths)
    is_guess = path_separator is None and separator != DEFAULT_SEPARATOR
    if not several or (is_guess and several < MOSTLY * len(paths)):  # a name or two with a slash are no paths
        raise DataError(
            f"the labels, such as {distinct[0][:80]!r}, are single names and say nothing of a hierarchy; give one "
            "(--hierarchy FILE), or write paths such as 'Biota > Corals' (--path-separator names another separator)"
        )
    return Hierarchy.from_paths(paths, DEFAULT_SEPARATOR), separator


def to_matrix(
    stated: Stated, hierarchy: Hierarchy, path_separator: str | None, *, below: bool
) -> tuple[Labels, Bools | None]:
    """Labels (rows, nodes), and where they are known, or None if they are everywhere.

    Labels of very many cells are sparse, unless some are unknown in rows where others are not.

    Raises:
        RarenodeError: a label is not in the hierarchy, or a row contradicts itself; the message names the place.
    """
    distinct = dict.fromkeys(stated.labels)
    if path_separator is None:
        path_separator = guess_separator(label for label in distinct if label not in hierarchy)
    names = LabelNames(hierarchy, path_separator)
    column_of: dict[str, int] = {}
    unknown: dict[str, str] = {}
    for label in distinct:
        try:
            column = names.column(label, stated.is_path)
        except DataError as error:
            unknown[label] = str(error)
        else:
            column_of[label] = -1 if column is None else column
    if unknown:
        label, problem = next(iter(unknown.items()))
        more = len(unknown) - 1
        rest = f" ({counted(more, 'more label')} {'is' if more == 1 else 'are'} not in it either)" if more else ""
        wrong = stated.error(stated.labels.index(label), f"{problem}{rest}")
        places = list(unknown.items())[:MOST_DETAILS]
        wrong.details = tuple(str(stated.error(stated.labels.index(each), text)) for each, text in places)
        raise wrong
    columns = np.array([column_of[label] for label in stated.labels], dtype=np.int64)
    shape = len(stated.labelled), len(hierarchy)
    labelled = np.zeros(shape[0], dtype=np.bool_)
    labelled[stated.rows[columns >= 0]] = True  # a label that was left out on purpose says nothing
    labelled &= stated.labelled
    present = (stated.values == 1) & (columns >= 0)
    if shape[0] * shape[1] > MOST_DENSE_CELLS and not below and not (stated.values == -1).any():
        some = sparse_labels(stated.rows[present], columns[present], shape)
        _check_contradictions(stated, hierarchy, columns, some)
        return hierarchy.close(some), None if labelled.all() else np.broadcast_to(labelled[:, None], shape)
    matrices: dict[int, Any] = {}
    for value in (1, 0, -1):
        chosen = present if value == 1 else (stated.values == value) & (columns >= 0)
        if value == 1 or chosen.any():
            matrices[value] = np.zeros(shape, dtype=np.bool_)
            matrices[value][stated.rows[chosen], columns[chosen]] = True
    if 0 in matrices:
        _check_contradictions(stated, hierarchy, columns, matrices[1])
    Y, known = complete_labels(hierarchy, matrices[1], matrices.get(0), matrices.get(-1), below=below)
    if not labelled.all():
        known = np.ones(shape, dtype=np.bool_) if known is None else known
        known[~labelled] = False
    return Y, known


def _check_contradictions(stated: Stated, hierarchy: Hierarchy, columns: NDArray[np.int64], present: Labels) -> None:
    """Refuse a row that is said not to have a node, but to have it, or a node below it."""
    absent = np.flatnonzero((stated.values == 0) & (columns >= 0))
    closed = hierarchy.close(present)
    wrong = absent[np.asarray(closed[stated.rows[absent], columns[absent]]).ravel()] if len(absent) else absent
    if not len(wrong):
        return
    problems = []
    for statement in wrong[:MOST_DETAILS].tolist():
        row, node = stated.rows[statement], hierarchy.nodes[columns[statement]]
        has = [hierarchy.nodes[column] for column in np.flatnonzero(dense_rows(present, np.array([row]))[0]).tolist()]
        below = next((each for each in has if node in hierarchy.ancestors(each)), None)
        why = "present as well" if node in has or below is None else f"{below!r}, which is below it, present"
        problems.append(f"{node!r} is said to be absent, but {why}; remove one of the two")
    rest = f" ({counted(len(wrong) - 1, 'more contradiction')})" if len(wrong) > 1 else ""
    error = stated.error(int(wrong[0]), problems[0] + rest)
    error.details = tuple(str(stated.error(int(each), text)) for each, text in zip(wrong, problems, strict=False))
    raise error
