from __future__ import annotations

from tests.ray_cluster import ray_cluster, ray_session

__all__ = ["ray_cluster", "ray_session"]
