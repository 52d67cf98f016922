"""What building and running a network may cost, found out on torch's meta device, where tensors have no memory.

A description of a network is a few numbers, and what they ask for may grow with any power of them: layers, tables of
positions, loops over pairs of pixels. So the cost is not guessed from them. The network is built and run without
memory, and stopped as soon as it has taken more than it may: operations of torch, the numbers in the tensors that they
return, and calls of functions, because what Python does by itself takes as long as ever.
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
    """What may be taken."""

    operations: int
    """Of torch."""
    total: int
    """The numbers in all tensors that they return."""
    largest: int = sys.maxsize
    """Those in any one of them."""
    calls: int = MOST_CALLS
    """Functions that are called."""


class _Exceeded(BaseException):
    """Not an `Exception`, so that no code on the way takes it for an error of its own."""


@contextmanager
def within(budget: Budget, what: str) -> Iterator[None]:
    """Stop what is done meanwhile, in this thread, when it takes more than it may.

    Args:
        budget: what it may take.
        what: what is done, for the error.

    Raises:
        ArgumentError: it takes more.
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
