"""`Predictions`: probabilities and decisions for rows, as arrays, as a table, or as a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarenode._io.files import replacing
from rarenode._io.text import counted, storable
from rarenode.errors import ArgumentError

SUFFIXES = (".parquet", ".csv")


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions for rows and scored nodes; an artificial root is left out."""

    nodes: tuple[str, ...]
    probs: NDArray[np.float32]
    """(rows, nodes): a parent's probability is never below its child's."""
    decided: NDArray[np.bool_]
    """(rows, nodes): whether the probability reaches the node's threshold; with a node, all its ancestors."""
    uncertainty: NDArray[np.float32]
    """(rows, nodes)."""
    thresholds: str
    """How the thresholds were chosen, in words."""

    def __len__(self) -> int:
        return len(self.probs)

    def __repr__(self) -> str:
        return (
            f"<Predictions of {counted(len(self), 'row')} x {counted(len(self.nodes), 'node')}: "
            f"{np.count_nonzero(self.decided):,} decided, thresholds {self.thresholds}>"
        )

    def to_frame(self, *, decided_only: bool = False) -> Any:
        """A polars data frame with a line for each row and node: row, node, probability, decided, uncertainty.

        Rows count from 0. With ``decided_only`` it has only the decided nodes.
        """
        import polars  # noqa: PLC0415 (it takes a tenth of a second to load)

        lines = np.flatnonzero(self.decided.ravel()) if decided_only else np.arange(self.decided.size)
        rows, columns = np.divmod(lines, len(self.nodes))
        names = [storable(node) for node in self.nodes]
        return polars.DataFrame(
            {
                "row": rows.astype(np.uint32),
                "node": polars.Series(names, dtype=polars.Enum(names)).gather(columns),
                "probability": self.probs.ravel()[lines],
                "decided": self.decided.ravel()[lines].astype(np.uint8),
                "uncertainty": self.uncertainty.ravel()[lines],
            }
        )

    def write(self, path: Path | str, *, decided_only: bool = False) -> int:
        """Write `to_frame` as CSV or Parquet; the file appears under its name only when it is complete.

        Names of nodes are data and are written as they are, so that they can be read back. A spreadsheet takes a name
        that begins with ``=``, ``+``, ``-`` or ``@`` for a formula; if names come from others, import them as text.

        Returns:
            How many lines were written.

        Raises:
            ArgumentError: the name ends in neither .csv nor .parquet, or the file cannot be written.
        """
        path = Path(path)
        check_suffix(path)
        table = self.to_frame(decided_only=decided_only)
        try:
            # An open file: polars takes no path that is not UTF-8.
            with replacing(path) as (part,), part.open("wb") as file:
                if path.suffix.lower() == ".csv":
                    table.write_csv(file)
                else:
                    table.write_parquet(file)
        except OSError as error:
            raise ArgumentError(f"{path} cannot be written: {error}") from None
        return len(table)


def check_suffix(path: Path) -> None:
    """Refuse a file whose name does not say in which format to write it."""
    if path.suffix.lower() not in SUFFIXES:
        raise ArgumentError(f"{path}: the name must end in {' or '.join(SUFFIXES)}")
