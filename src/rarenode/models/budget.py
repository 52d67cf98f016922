"""Limits on the cost of building and running a network, measured on torch's meta device, where tensors have no memory.

The description of a network is a few numbers, and its cost may grow with any power of them: layers, tables of
positions, loops over pairs of pixels. So the cost is measured, not estimated. The network is built and run on the meta
device, and stopped as soon as it exceeds a limit: on torch operations, on the numbers in the tensors that they return,
or on function calls, since plain Python code takes as long on the meta device as on any other.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from rarenode.errors import ArgumentError

MOST_CALLS = 5_000_000
"""Several times what the largest encoders take; some seconds."""


@dataclass(frozen=True)
class Budget:
    """The largest allowed cost."""

    operations: int
    """Torch operations."""
    total: int
    """Numbers in all tensors that they return."""
    largest: int = sys.maxsize
    """Numbers in any one of these tensors."""
    calls: int = MOST_CALLS
    """Function calls."""


class _Exceeded(BaseException):
    """A limit was exceeded. It is a `BaseException`, so that ``except Exception`` in the library does not catch it."""


@contextmanager
def within(budget: Budget, what: str) -> Iterator[None]:
    """Stop the code of a ``with`` block, in this thread, when it exceeds a budget.

    Args:
        budget: the limits.
        what: what the block does, for the error message.

    Raises:
        ArgumentError: a limit was exceeded.
    """
    left = budget.calls

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal left
        left -= event in ("call", "c_call")
        if left < 0:
            raise _Exceeded(f"{what} takes more than {budget.calls:,} steps")

    before = sys.getprofile()
    try:
        sys.setprofile(count)
        try:
            with _Counting(budget, what):
                yield
        finally:
            sys.setprofile(before)
    except _Exceeded as error:
        raise ArgumentError(str(error)) from None


class _Counting(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees every operation of torch, those inside of others too."""

    def __init__(self, budget: Budget, what: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.budget, self.what = budget, what
        self.operations = self.total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        budget = self.budget
        sizes = [each.numel() for each in tree_leaves(result) if isinstance(each, torch.Tensor)]
        self.operations += 1
        self.total += sum(sizes)
        if self.operations > budget.operations:
            raise _Exceeded(f"{self.what} takes more than {budget.operations:,} operations")
        if max(sizes, default=0) > budget.largest:
            raise _Exceeded(f"{self.what} takes an array of {max(sizes):,} numbers; {budget.largest:,} are allowed")
        if self.total > budget.total:
            raise _Exceeded(f"{self.what} takes arrays of more than {budget.total:,} numbers")
        return result
