"""Reader for pictures: those that a column of a table names, or all in a folder or zip archive.

A folder of folders has labels: the path of a picture's folder is its label, ``corals/acropora/17.jpg`` that of
``corals > acropora``. Each folder is one node, so a name that would read as several is refused. The layout of
BenthicNet is known too: its table has the columns ``dataset``, ``site`` and ``image``, its pictures are
``dataset/site/image.jpg``, and its labels are lists of node numbers such as ``[0, 3]``.
"""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from rarenode._io.files import exists, identity, is_dir
from rarenode._io.text import counted, shortened, storable
from rarenode.data.archives import is_archive
from rarenode.data.dataset import Dataset
from rarenode.data.decoding import SUFFIXES
from rarenode.data.images import ImageFile, Images, find_names, list_names
from rarenode.data.readers.columns import is_label_file, matching_columns
from rarenode.data.readers.frames import Table
from rarenode.data.table_options import Expected, TableOptions
from rarenode.errors import ArgumentError, DataError, FileFormatError
from rarenode.hierarchy import HierarchyLike, as_hierarchy
from rarenode.hierarchy.construction import DEFAULT_SEPARATOR

COLUMNS = ("image", "file", "filename", "file_name", "path", "photo", "picture", "image_path")
"""What the column that names pictures is usually called."""
SITE = ("dataset", "site")
"""Columns of BenthicNet that are part of a picture's path."""
UNSAID = (".jpg", ".png", ".jpeg")
"""Suffixes that a table may leave out."""
COPY = ".jpg"
"""BenthicNet's copies are JPEG, whatever the original was."""
LABEL = "folder"
"""The column of labels that folders make."""
CONTROL = ("Cc", "Zl", "Zp")
"""Unicode categories of characters that end lines or control a terminal."""


def image_columns(options: TableOptions, expected: Expected | None, names: Sequence[str]) -> list[str]:
    """The existing columns that may, together, name a picture; empty if rows are not pictures."""
    if not (options.has_images if expected is None else expected.images):
        return []
    return [*_likely_columns(options, names), *(name for name in SITE if name in names)]


def images_of(
    table: Table, options: TableOptions, in_training: str | None = None
) -> tuple[Images, TableOptions, Table]:
    """The pictures that a table names, one in each row; and the options with their column, which is also the id.

    They are where the options say, or beside the table; if not one is, and all are where those of the training were,
    they are these, with a warning.

    Missing files are reported when they are read, and a blank cell is a missing file. Where only dataset, site and
    image together are unique, they are the ids, which the table that is returned then has.

    Raises:
        ArgumentError: the column of pictures is not there.
        DataError: no row names a picture, or two rows the same one; or not one of the files is there.
    """
    names = table.frame.columns
    column = image_column(options, names, table.name)
    if column is None:
        shown = ", ".join(repr(name) for name in names[:8])
        raise ArgumentError(f"say which column of {table.name} names the pictures (--image); it has {shown}")
    cells = table.frame[column].cast(pl.String)
    blank = cells.is_null().arg_true().to_list()
    if len(blank) == len(cells):
        raise DataError(f"{table.name}: column {column!r}, which should name the pictures, is blank")
    if blank:  # such rows are named by their places, as others are by their pictures
        cells = cells.scatter(blank, table.places(blank))
        table = replace(table, frame=table.frame.with_columns(cells.alias(column)))
    wanted = cells.to_list()
    sites = [table.frame[name].cast(pl.String).to_list() for name in SITE] if set(SITE) <= set(names) else None
    update = {"image": column}
    if options.id is None:
        keys = (
            cells if sites is None else pl.Series("/".join(map(str, each)) for each in zip(*sites, wanted, strict=True))
        )
        if keys.n_unique() < len(keys):
            row = int((~keys.is_first_distinct()).arg_max() or 0)
            problem = f"the picture {keys[row][:80]!r} in column {column!r} appears twice"
            advice = "write all its labels in one row, or name a column of unique ids (--id)"
            raise table.error(row, f"{problem}; {advice}")
        if sites is None:
            update["id"] = column
        else:
            table = replace(table, ids=tuple(keys.to_list()))
    root = _root(table, options)
    is_blank = set(blank)
    candidates = [
        _candidates(name, None if sites is None else (sites[0][row], sites[1][row])) if row not in is_blank else []
        for row, name in enumerate(wanted)
    ]
    archive = identity(root) if is_archive(root) else None
    found = _find(table, candidates, root, copies=sites is not None)
    if not any(found) and options.images is None and in_training is not None and exists(in_training):
        there = _find(table, candidates, Path(in_training), copies=sites is not None)
        if all(name is not None or row in is_blank for row, name in enumerate(there)):
            found, root = there, Path(in_training)
            archive = identity(root) if is_archive(root) else None
            text = f"{table.name}: its pictures are not beside it, but in {root}, as in training; those are used"
            warnings.warn(f"{text} (--images names another folder)", RuntimeWarning, stacklevel=2)
    if not any(found):
        tried = ", ".join(shortened(root / name) for name in next(filter(None, candidates))[:3])
        where = "" if options.images is not None else "; --images names the folder or zip archive that has them"
        what = f"none of its {counted(len(wanted), 'picture')} is there; looked for {tried} and so on"
        raise DataError(f"{table.name}: {what}{where}")
    named = [name or next(iter(candidates[row]), wanted[row]) for row, name in enumerate(found)]
    files = (ImageFile(root, name, row in is_blank, archive) for row, name in enumerate(named))
    return Images(files), options.model_copy(update=update), table


def unused_columns(names: Sequence[str], options: TableOptions) -> tuple[str, ...]:
    """A note on the columns that are not used, because only pictures are."""
    used = {options.id, options.image, options.weight, options.partition, *options.labels, *options.ignore}
    used |= set(SITE) if set(SITE) <= set(names) else set()
    left = [name for name in names if name not in used]
    if not left:
        return ()
    shown = ", ".join(repr(name) for name in left[:8]) + (" and others" if len(left) > 8 else "")
    return (f"not used, because rows are pictures: {shown}",)


def _named_by(sources: Sequence[Any], *, labels: bool, is_new: bool) -> tuple[Path, Path, Images]:
    """The folder or archive of pictures, what messages call it, and the pictures."""
    root = Path(sources[0])
    if root.suffix.lower() in SUFFIXES and not is_dir(root):
        folder = root.parent
        if labels or any(Path(each).parent != folder for each in sources):
            folder, images = Path(), Images.from_paths(sources)  # whose folders are needed to tell them apart
        else:
            images = Images(ImageFile(folder, Path(each).name) for each in sources)
        return folder, folder if len(sources) > 1 else root, images
    if len(sources) > 1:
        raise ArgumentError("only one folder of pictures can be read; put the others below it")
    return root, root, _below(root, is_new=is_new)


def read_images(
    sources: Sequence[Any],
    *,
    options: TableOptions,
    hierarchy: HierarchyLike | None,
    expected: Expected | None,
    labels: bool,
) -> Dataset:
    """Read picture files, or all pictures in a folder or zip archive; with labels, those that folders or a file make.

    Raises:
        MissingFileError: there is no such folder.
        DataError: there is no picture in it, the name of a folder is not that of a node, or the model is not one for
            pictures.
        ArgumentError: there are no labels.
    """
    root = Path(sources[0])
    if expected is not None and not expected.images:
        what = "a folder of pictures" if is_dir(root) else "pictures"
        raise DataError(f"{root} is {what}, and the model was trained on tables")
    root, about, images = _named_by(sources, labels=labels, is_new=expected is None)
    _require_no_columns(root, options, is_new=expected is None)
    names = images.names
    odd = next((name for name in names if storable(name) != name), None)
    if odd is not None:
        raise DataError(f"{root}: the name {storable(odd)!r} is not UTF-8 text; rename the file or its folder")
    folders = [str(PurePosixPath(name).parent) for name in names]
    frame = pl.DataFrame({"image": names, LABEL: [None if folder == "." else [folder] for folder in folders]})
    table = Table(frame, ((about, len(frame)),))
    update: dict[str, Any] = {"id": "image", "image": "image", "images": str(root), "partition": None}
    notes: tuple[str, ...] = ()
    if labels and (not options.labels or options.labels == (LABEL,)):
        if all(folder == "." for folder in folders):
            raise ArgumentError(
                f"{root} has pictures but no folders, whose names could be labels. Name a table with the labels of the "
                f"pictures: rarenode fit labels.csv --images {root} --labels COLUMN"
            )
        if hierarchy is not None:  # paths in it are separated otherwise than folders
            hierarchy = as_hierarchy(
                hierarchy,
                separator=options.path_separator,
                relations=options.relations,
                namespaces=options.namespaces,
            )
        elif expected is None and not any("/" in folder for folder in folders) and not options.path_separator:
            first = next(folder for folder in folders if folder != ".")
            raise DataError(
                f"{root}: its folders, such as {first[:80]!r}, are labels, but say nothing of a hierarchy; put them "
                "into folders of their groups, or give one (--hierarchy FILE)"
            )
        tops = {folder.partition("/")[0] for folder in folders}
        if expected is None and hierarchy is None and is_archive(root) and len(tops) == 1:
            top = f"all pictures of the archive are in the folder {tops.pop()!r}, which is a node that every row has"
            notes = (f"{top}; pack what is in that folder if this is not meant",)
        separator = options.path_separator
        if expected is not None and expected.reading is not None and expected.reading.labels != (LABEL,):
            separator = None  # it is that of the table that the model was trained on
        update |= {"labels": (LABEL,), "path_separator": separator or "/"}
        if update["path_separator"] == "/":  # otherwise names are meant to be paths
            _require_names_of_nodes(root, folders, has_hierarchy=hierarchy is not None or expected is not None)
    from rarenode.data.readers.tables import make_dataset  # noqa: PLC0415 (it needs this module for its own pictures)

    has_file = labels and "labels" not in update
    if has_file and not is_label_file(options.labels[0], frame.columns):
        raise ArgumentError(
            f"{sources[0]}: pictures have no column {options.labels[0]!r} of labels. Name the table that has it, and "
            f"the folder with --images; or, with --labels, a file with ids and labels, or {LABEL!r} for the names of "
            "folders"
        )
    if has_file:
        table = replace(table, frame=frame.drop(LABEL))
    wants = Expected(expected.hierarchy, None, reading=expected.reading, images=True) if expected is not None else None
    data = make_dataset(table, options.model_copy(update=update), hierarchy=hierarchy, expected=wants, labels=labels)
    for note in data.notes if has_file else ():  # a name that is misspelled is a picture without labels
        warnings.warn(note, RuntimeWarning, stacklevel=2)
    return replace(data, notes=(*data.notes, *notes))


def _require_no_columns(root: Path, options: TableOptions, *, is_new: bool) -> None:
    """Refuse options for tables. A model may have been trained on a table, so its own column options are ignored."""
    columns = ("id", "image", "features", "ignore", "weight", "partition") if is_new else ()
    given = next((name for name in ("images", *columns) if getattr(options, name)), None)
    if given is not None:
        raise ArgumentError(f"{root}: --{given} is for a table that names pictures, and these are pictures themselves")


def _require_names_of_nodes(root: Path, folders: Sequence[str], *, has_hierarchy: bool) -> None:
    """Refuse a folder whose name is not that of one node.

    Nodes that folders make are named by their paths. In a hierarchy that is given, `` > `` may be part of a name.

    Raises:
        DataError: a name has a separator, a line break or another control character, or begins or ends with a blank.
    """
    for folder in dict.fromkeys(folders):
        steps = folder.split("/")
        for step in steps:
            if DEFAULT_SEPARATOR in step and not (has_hierarchy and len(steps) == 1):
                why = f"contains {DEFAULT_SEPARATOR!r}, which separates the names of nodes"
            elif any(unicodedata.category(character) in CONTROL for character in step):
                why = "contains a line break or another control character"
            elif step != step.strip():
                why = "begins or ends with a blank"
            else:
                continue
            raise DataError(f"{root}: the name of the folder {step[:80]!r} {why}; rename it, as it is to be a label")


def _below(root: Path, *, is_new: bool) -> Images:
    """All pictures below a folder or in an archive; whoever trains may have meant a table in the folder."""
    try:
        return Images.below(root)
    except FileFormatError:
        raise
    except DataError:
        what = f"it is {'an archive' if is_archive(root) else 'a folder'} without pictures ({', '.join(SUFFIXES)})"
        if is_archive(root) or not is_new:
            raise FileFormatError(root, None, what) from None
        tables = sorted(name for name in list_names(root) if Path(name).suffix.lower() in (".csv", ".tsv", ".parquet"))
        table = f"such as {root / tables[0]}" if tables else f"or a pattern such as {root / '*.csv'}"
        raise FileFormatError(root, None, f"{what}; name a file in it, {table}") from None


def image_column(options: TableOptions, names: Sequence[str], table: str) -> str | None:
    """The column that names pictures; None if it is not given and no column is called as they usually are.

    Raises:
        ArgumentError: the one that is given is not there, or has another purpose, as all have that could be guessed.
    """
    if options.image is not None and options.image not in names:
        shown = ", ".join(repr(name) for name in names[:8])
        raise ArgumentError(f"{table} has no column {options.image!r} of pictures (--image); it has {shown}")
    purposes = {name: _other_purpose(name, options) for name in _likely_columns(options, names)}
    free = next((name for name, purpose in purposes.items() if purpose is None), None)
    if free is None and purposes:
        name, purpose = next(iter(purposes.items()))
        advice = "" if options.image is not None else "; say which column does (--image)"
        raise ArgumentError(f"{table}: the column {name!r} cannot name the pictures and {purpose}{advice}")
    return free


def _likely_columns(options: TableOptions, names: Sequence[str]) -> list[str]:
    """The column of pictures that is given, or else those that are called as such columns usually are."""
    if options.image is not None:
        return [options.image]
    usual = {name.casefold(): name for name in reversed(names)}
    return [usual[name] for name in COLUMNS if name in usual]


def _other_purpose(name: str, options: TableOptions) -> str | None:
    """What else the options want a column for; pictures may only be the ids as well."""
    if any(matching_columns([name], pattern) for pattern in options.labels):
        return "have the labels too (--labels)"
    if name == options.weight:
        return "have the weights too (--weight)"
    if name == options.partition:
        return "name the parts too (--partition)"
    if any(matching_columns([name], pattern) for pattern in options.ignore):
        return "be left out (--ignore)"
    return None


def require_no_features(options: TableOptions) -> None:
    """Refuse columns to learn from, where only pictures are learned from."""
    if options.features:
        raise ArgumentError("rows are pictures, and no other column is learned from; leave out --features")


def _root(table: Table, options: TableOptions) -> Path:
    if options.images is not None:
        return Path(options.images)
    return table.files[0][0].parent if table.files else Path()


def _candidates(name: str, site: tuple[str | None, str | None] | None) -> list[str]:
    """The paths that a picture may have, the most certain first."""
    plain = str(PurePosixPath(name.replace("\\", "/")))  # which has no ./ either
    places = list(dict.fromkeys([name, plain]))
    if site is not None and None not in site:
        places.insert(0, f"{site[0]}/{site[1]}/{plain}")
    if _has_suffix(plain):
        return places
    return [each for place in places for each in (place, *(f"{place}{suffix}" for suffix in UNSAID))]


def _has_suffix(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in SUFFIXES


def _find(table: Table, candidates: Sequence[Sequence[str]], root: Path, *, copies: bool) -> list[str | None]:
    """For each row the file that is its picture; None where there is none.

    Args:
        table: which names the pictures.
        candidates: for each row what `_candidates` returned; nothing, if it names no picture.
        root: the folder or archive.
        copies: whether JPEG copies count, as those of BenthicNet, whose table has the names of the originals. Such a
            copy is used, with a warning, only if it cannot be the picture of another row.

    Raises:
        FileFormatError: a name without a suffix may be that of several files.
    """
    found = find_names(candidates, root)
    _require_clear_names(table, candidates, found, root)
    if not copies:
        return found
    wanted = {
        row: [str(PurePosixPath(name).with_suffix(COPY)) for name in names]
        for row, names in enumerate(candidates)
        if found[row] is None and names and _has_suffix(names[0])
    }
    copy_of = dict(zip(wanted, find_names(list(wanted.values()), root), strict=True)) if wanted else {}
    originals: dict[str, set[str]] = {name: {name} for name in found if name is not None}
    for row, copy in copy_of.items():
        originals.setdefault(copy or "", set()).add(candidates[row][0])
    used = {row: copy for row, copy in copy_of.items() if copy is not None and len(originals[copy]) == 1}
    if used:
        row, copy = next(iter(used.items()))
        missing = f"{counted(len(used), 'picture')} of {len(found):,}"
        such = f"{shortened(copy)} for {shortened(candidates[row][0])}"
        text = f"{table.name}: JPEG copies are used in place of {missing} that the table names, such as {such}"
        warnings.warn(text, RuntimeWarning, stacklevel=3)
    return [used.get(row, name) for row, name in enumerate(found)]


def _require_clear_names(
    table: Table, candidates: Sequence[Sequence[str]], found: Sequence[str | None], root: Path
) -> None:
    """Refuse a name without a suffix that may be that of several files."""
    guessed = {
        row: (name, [name.removesuffix(suffix) + other for other in UNSAID if other != suffix])
        for row, name in enumerate(found)
        for suffix in UNSAID
        if name is not None and name.endswith(suffix) and not _has_suffix(candidates[row][0])
    }
    if not guessed:
        return
    others = find_names([names for _, names in guessed.values()], root)
    for (row, (name, _)), other in zip(guessed.items(), others, strict=True):
        if other is not None:
            both = f"{shortened(name)} or {shortened(other)}"
            raise table.error(row, f"the picture {candidates[row][0][:80]!r} may be {both}; write the whole name")
