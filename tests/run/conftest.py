from __future__ import annotations

from tests.commands import catalogued
from tests.ray_cluster import ray_cluster, ray_session

__all__ = ["catalogued", "ray_cluster", "ray_session"]
