"""Features of rows: an array of numbers, a sparse matrix, a data frame with categories, a file, or pictures.

A data frame whose columns are all numbers or booleans becomes an array. One with categories stays a polars data frame
of two types: Float64, NaN where missing, and String, null where missing. A `Preparation` turns them into numbers.
"""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np

from rarenode._io.text import storable
from rarenode.data.images import Images
from rarenode.data.stored import StoredFeatures
from rarenode.errors import DataError

LARGEST = 1e150
"""Squares of larger numbers overflow, and with them the standard deviation."""


def as_features(X: Any) -> tuple[Any, tuple[str, ...] | None]:
    """Features in one of the five forms, and the names of their columns, where they have any.

    Args:
        X: a polars or pandas data frame, a scipy sparse matrix, `Images`, `StoredFeatures`, or anything that numpy
            makes an array of.

    Raises:
        DataError: there are columns of dates, lists or objects; or values that are no numbers, or too large.
    """
    if isinstance(X, Images):
        return X, None
    if isinstance(X, StoredFeatures):
        return X, X.names
    if hasattr(X, "tocsr"):
        return X.tocsr(), None
    if is_frame(X):
        return _from_frame(X)
    if has_columns(X):
        return _from_frame(frame_from_pandas(X))
    try:
        array = np.asarray(X)
    except (TypeError, ValueError, RuntimeError) as error:  # ragged lists, tensors on another device
        raise DataError(f"X must be an array of numbers: {error}") from error
    if array.dtype.kind in "biuf":
        return array, None
    try:
        return array.astype(np.float64), None
    except (TypeError, ValueError) as error:
        raise DataError(f"X must be an array of numbers, NaN where missing: {error}") from error


def is_frame(X: Any) -> bool:
    """Whether X is a polars data frame."""
    return type(X).__module__.startswith("polars")


def has_columns(X: Any) -> bool:
    """Whether X is a pandas or polars data frame."""
    return is_frame(X) or (hasattr(X, "columns") and hasattr(X, "dtypes"))


def has_text(X: Any) -> bool:
    """Whether a data frame has columns that are neither numbers nor booleans."""
    if is_frame(X):
        return not all(kind.is_numeric() or str(kind) == "Boolean" for kind in X.dtypes)
    return not all(getattr(kind, "kind", "O") in "biuf" for kind in X.dtypes)


def select_columns(X: Any, names: tuple[str, ...]) -> Any:
    """Columns of a data frame by their names.

    Raises:
        DataError: some are not there.
    """
    there = set(map(str, X.columns))
    missing = [name for name in names if name not in there]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise DataError(f"the data frame lacks columns that the model needs: {missing[0]!r}{more}")
    return X[list(names)]


def text_features(X: Any) -> tuple[str, ...]:
    """The columns of a data frame that are categories."""
    if isinstance(X, StoredFeatures):
        return tuple((X.names or ())[place] for place in sorted(X.levels))
    return tuple(name for name in X.columns if not X[name].dtype.is_numeric()) if is_frame(X) else ()


def number_as_text(number: float) -> str:
    """A number where a category is expected: whole ones have no decimal point, others all their digits.

    >>> number_as_text(3.0), number_as_text(0.1)
    ('3', '0.1')
    """
    return str(int(number)) if number.is_integer() else repr(number)


def take_rows(X: Any, rows: Any) -> Any:
    """Some of the rows."""
    if isinstance(X, StoredFeatures):
        return X.take(rows)
    return X[rows.tolist()] if is_frame(X) else X[rows]


def stack_rows(first: Any, second: Any) -> Any:
    """The rows of both."""
    if isinstance(first, StoredFeatures) or isinstance(second, StoredFeatures):
        raise DataError("features on disk cannot be joined with others; name all files of the table together")
    if isinstance(first, Images) and isinstance(second, Images):
        return first.joined(second)
    if is_frame(first) or is_frame(second):
        if not (is_frame(first) and is_frame(second)):
            raise DataError("features of both parts must be data frames, or of neither")
        import polars as pl  # noqa: PLC0415 (only data frames need it)

        return pl.concat([first, second])
    if hasattr(first, "tocsr") or hasattr(second, "tocsr"):
        from scipy.sparse import vstack  # noqa: PLC0415 (only sparse features need it)

        return vstack([first, second], format="csr")
    return np.concatenate([first, second])


def content_arrays(X: Any) -> list[Any]:
    """Arrays that together determine the features, for a fingerprint."""
    if isinstance(X, Images):
        return [X.digests]
    if is_frame(X):
        parts: list[Any] = []
        for column in X.iter_columns():
            if column.dtype.is_numeric():
                parts.append(column.to_numpy())
            else:
                texts = [b"" if value is None else b"=" + value.encode() for value in column.to_list()]
                parts += [np.array([len(text) for text in texts]), np.frombuffer(b"".join(texts), dtype=np.uint8)]
        return parts
    if hasattr(X, "tocsr"):
        sparse = X.tocsr()
        return [sparse.data, sparse.indices, sparse.indptr, np.array(sparse.shape)]
    return [X]


def frame_from_pandas(X: Any) -> Any:
    """A pandas data frame as a polars one; the index is left out."""
    import polars as pl  # noqa: PLC0415 (it takes a tenth of a second to load)

    columns = {}
    for place, name in enumerate(X.columns):
        values = X.iloc[:, place]
        kind = getattr(values.dtype, "kind", "O")
        if kind in "iuf" or values.dtype == np.bool_:
            columns[str(name)] = pl.Series(np.asarray(values))
        elif kind in "Mm":
            columns[str(name)] = pl.Series(values.to_numpy(dtype=f"{'datetime' if kind == 'M' else 'timedelta'}64[ns]"))
        else:  # objects, strings, categories and nullable booleans
            columns[str(name)] = _from_objects(str(name), values.tolist())
    if len(columns) < X.shape[1]:
        raise DataError("two columns have the same name")
    odd = next((name for name in columns if storable(name) != name), None)
    if odd is not None:
        raise DataError(f"the name of the column {odd!r} is not valid Unicode text; rename it")
    return pl.DataFrame(columns)


def _from_objects(name: str, given: list[Any]) -> Any:
    """A column of objects; collections, such as sets of labels, become lists."""
    import polars as pl  # noqa: PLC0415

    values = [None if _is_missing(value) else _as_list(value) for value in given]
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) > 1 and all(issubclass(kind, Number) for kind in kinds):
        return pl.Series(values, dtype=pl.Float64, strict=False)
    try:
        return pl.Series(values)
    except UnicodeEncodeError as error:
        raise DataError(f"column {name!r}: {error.object[:80]!r} is not valid Unicode text; correct it") from None
    except (TypeError, pl.exceptions.PolarsError):
        several = " and ".join(sorted(kind.__name__ for kind in kinds))
        raise DataError(f"column {name!r} mixes values of several types ({several}); make them of one type") from None


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, Number) and value != value


def _as_list(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return list(value) if isinstance(value, tuple | np.ndarray) else value


def _from_frame(frame: Any) -> tuple[Any, tuple[str, ...]]:
    import polars as pl  # noqa: PLC0415

    names = tuple(frame.columns)
    columns = [_column(frame[name]) for name in names]
    if all(column.dtype == pl.Float64 for column in columns):
        dense = np.empty((len(frame), len(names)))
        for place, column in enumerate(columns):
            dense[:, place] = column.to_numpy()
        return dense, names
    return pl.DataFrame(columns), names


def _column(column: Any) -> Any:
    """A column as numbers or text."""
    import polars as pl  # noqa: PLC0415

    kind = column.dtype
    if kind.is_numeric() or kind in (pl.Boolean, pl.Null):
        numbers = column.cast(pl.Float64).fill_null(float("nan"))
        large = np.flatnonzero(np.abs(numbers.to_numpy()) > LARGEST)
        if len(large):
            got = column[int(large[0])]
            raise DataError(f"row {large[0]}, column {column.name!r}: expected a number up to {LARGEST:.0e}, got {got}")
        return numbers
    if kind in (pl.String, pl.Categorical, pl.Enum):
        return column.cast(pl.String)
    if kind.is_temporal():
        raise DataError(
            f"column {column.name!r} contains dates or times; replace it by numbers, such as the day of the year, or "
            "leave it out"
        )
    raise DataError(f"column {column.name!r} contains {kind}; expected numbers, booleans or categories")
