"""The data of all tests of engines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from rarenode import make_hierarchical
from rarenode.data.dataset import DatasetSplits


@pytest.fixture(scope="package")
def data() -> DatasetSplits:
    return make_hierarchical(200, nodes=30, depth=4, shape="dag", features=9)


@pytest.fixture(autouse=True, scope="package")
def one_torch_thread() -> Iterator[None]:
    """On a busy machine torch's threads wait for each other far longer than tiny problems compute."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
