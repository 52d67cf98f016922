"""Predictions as a table on disk: one line for each row and node, as Parquet or CSV.

The file appears under its name only once it is whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars
from numpy.typing import NDArray

from rarenode._io.files import replacing
from rarenode.errors import ArgumentError

SUFFIXES = (".parquet", ".csv")


def check_suffix(path: Path) -> None:
    """Refuse a file whose name does not say in which form to write it."""
    if path.suffix.lower() not in SUFFIXES:
        raise ArgumentError(f"{path}: the name must end in {' or '.join(SUFFIXES)}, which says how to write it")


def write_predictions(
    path: Path,
    nodes: Sequence[str],
    probs: NDArray[np.float32],
    decided: NDArray[np.bool_],
    uncertainties: NDArray[np.float32],
    decided_only: bool,
) -> int:
    """Write (rows, nodes) arrays with the columns row, node, probability, decided and uncertainty.

    Rows count from 0, in the order of the data. With ``decided_only`` lines that are not decided are left out.

    Returns:
        How many lines were written.
    """
    check_suffix(path)
    rows = len(probs)
    table = polars.DataFrame(
        {
            "row": np.repeat(np.arange(rows, dtype=np.uint32), len(nodes)),
            "node": polars.Series(nodes, dtype=polars.Enum(nodes)).gather(np.tile(np.arange(len(nodes)), rows)),
            "probability": probs.ravel(),
            "decided": decided.ravel().astype(np.uint8),
            "uncertainty": uncertainties.ravel(),
        }
    )
    if decided_only:
        table = table.filter(decided.ravel())
    try:
        with replacing(path) as (part,):
            if path.suffix.lower() == ".csv":
                table.write_csv(part)
            else:
                table.write_parquet(part)
    except OSError as error:
        raise ArgumentError(f"{path} cannot be written: {error}") from None
    return len(table)
