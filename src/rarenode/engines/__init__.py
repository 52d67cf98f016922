"""How a training step is computed: `torch` (any model, any device) and `fused` (CPU, at the memory-bandwidth limit)."""

from rarenode.engines.encoder_training import EncoderTraining
from rarenode.engines.engine import Adam, Engine, Objective
from rarenode.engines.selection import EngineName, make_engine, resolve_device
from rarenode.engines.threads import available_threads, limited_threads
from rarenode.engines.torchrun import several_processes

__all__ = [
    "Adam",
    "EncoderTraining",
    "Engine",
    "EngineName",
    "Objective",
    "available_threads",
    "limited_threads",
    "make_engine",
    "resolve_device",
    "several_processes",
]
