"""What holds for every test: one Hypothesis profile, and a clear word where the real data are absent."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.data.serving import Server, running_server
from tests.ray_cluster import ray_cluster, ray_session
from tests.report.browser.driver import browser

# One browser for all tests: playwright starts only once in a process.
__all__ = ["browser", "ray_cluster", "ray_session", "server"]

settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    max_examples=60,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],  # a busy machine must not fail a test
)
# As many examples, but new ones with every seed.
settings.register_profile("explore", settings.get_profile("ci"), derandomize=False)
settings.load_profile("ci")

# A process that is started in the background ignores Ctrl-C, and tests of what Ctrl-C does would never get it.
signal.signal(signal.SIGINT, signal.default_int_handler)


def why_no_real_data() -> str | None:
    """The reason to skip tests on real data, or None if the data are there."""
    folder = os.environ.get("RARENODE_DATA")
    if not folder:
        return "RARENODE_DATA is not set: it names the folder that holds HMC_data"
    if not Path(folder).is_dir():
        return f"RARENODE_DATA names {folder}, which is not a folder"
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = why_no_real_data()
    if reason is None:
        return
    for item in items:
        if item.get_closest_marker("real_data") is not None:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True, scope="session")
def _no_cache_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Embeddings of test pictures never reach the cache of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("RARENODE_CACHE", str(tmp_path_factory.mktemp("embeddings")))
        yield


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server on this machine, reached directly."""
    monkeypatch.setenv("no_proxy", "*")
    with running_server() as running:
        yield running


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """On a busy machine threads wait for each other far longer than tiny problems compute."""
    import numba
    import torch

    before = numba.get_num_threads(), torch.get_num_threads()
    numba.set_num_threads(1)
    torch.set_num_threads(1)
    yield
    numba.set_num_threads(before[0])
    torch.set_num_threads(before[1])
