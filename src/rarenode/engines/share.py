"""`Share`: which part of a training an engine computes, where several processes share one."""

from __future__ import annotations

from dataclasses import dataclass

from rarenode.objective.uncertainties import Total


@dataclass(frozen=True)
class Share:
    """Some members of an ensemble, or all members for some rows of every batch.

    The members of other processes count in an uncertainty of the ensemble, and the rows of other processes in the
    gradient; ``total`` adds both up. Nothing else crosses between processes in a step.
    """

    total: Total
    members: int
    """Of the whole ensemble."""
    first_member: int = 0
    """How many members the processes before this one have."""
    process: int = 0
    """The place of this process among those that share the rows of a batch."""
    row_processes: int = 1
    """How many processes share the rows of a batch."""

    @property
    def divides_rows(self) -> bool:
        """Whether rows are divided, and not members."""
        return self.row_processes > 1

    def rows(self, batch: int) -> slice:
        """The rows of a batch of that size that are computed here; the first process always has some."""
        first, stop = (-(-batch * place // self.row_processes) for place in (self.process, self.process + 1))
        return slice(first, stop)
