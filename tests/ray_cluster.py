"""A small Ray cluster on this machine, whose second node can be killed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

STORE = 80 << 20
"""Bytes of memory for objects, on each node."""
LITTLE, MUCH = 2 << 30, 8 << 30
"""Bytes of memory for tasks, of the first and of the second node."""


class RayCluster:
    """Two nodes of one processor each. The tests' process is connected to it, so that workers need not start anew."""

    def __init__(self) -> None:
        import ray
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(
            initialize_head=True,
            head_node_args={
                "num_cpus": 1,
                "memory": LITTLE,
                "object_store_memory": STORE,
                "include_dashboard": False,
            },
        )
        self.second: Any = None
        self.add_second()
        self.address: str = self.cluster.address
        ray.init(self.address, log_to_driver=False, logging_level="error")

    def add_second(self) -> None:
        """Add the second node, unless it is there."""
        if self.second is None:
            self.second = self.cluster.add_node(num_cpus=1, num_gpus=1, memory=MUCH, object_store_memory=STORE)

    def kill_second(self) -> None:
        """Kill the second node, as a power failure would."""
        self.cluster.remove_node(self.second, allow_graceful=False)
        self.second = None

    def close(self) -> None:
        import ray

        ray.shutdown()
        self.cluster.shutdown()


@pytest.fixture(scope="session")
def ray_session() -> Iterator[RayCluster]:
    project = Path(__file__).parent.parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_worker_niceness", "0")  # on a busy machine workers would wait for everything else
        patch.setenv("PYTHONPATH", os.pathsep.join([str(project), os.environ.get("PYTHONPATH", "")]))
        cluster = RayCluster()
        yield cluster
        cluster.close()


@pytest.fixture
def ray_cluster(ray_session: RayCluster) -> RayCluster:
    """The cluster, with both of its nodes."""
    ray_session.add_second()
    return ray_session
