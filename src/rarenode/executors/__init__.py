"""Where tasks run: in this process, in worker processes of this machine, or on Ray. Only `on_ray` imports ray."""

from rarenode.executors.choose import make_executor
from rarenode.executors.executor import ATTEMPTS, GRACE, Executor, Result, Task
from rarenode.executors.here import Here
from rarenode.executors.on_ray import OnRay
from rarenode.executors.processes import Processes

__all__ = ["ATTEMPTS", "GRACE", "Executor", "Here", "OnRay", "Processes", "Result", "Task", "make_executor"]
