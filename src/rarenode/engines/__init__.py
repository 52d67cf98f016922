"""How a training step is computed: `torch` (any device) and `fused` (CPU, at the limit of memory)."""

from rarenode.engines.engine import Adam, Engine, Objective
from rarenode.engines.selection import EngineName, make_engine

__all__ = ["Adam", "Engine", "EngineName", "Objective", "make_engine"]
