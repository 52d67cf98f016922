"""`Here`: tasks run in this process, one after the other."""

from __future__ import annotations

from typing import ClassVar

from rarenode.errors import Interrupted
from rarenode.executors.executor import Executor, Lost, Result, Task
from rarenode.executors.worker import apply


class Here(Executor):
    """Runs tasks in this process, on its objects and with all of its threads. Ctrl-C interrupts a task directly."""

    here: ClassVar[bool] = True

    @property
    def _places(self) -> int:
        return 1

    def _begin(self, task: Task) -> None:
        """It runs when its result is waited for."""

    def _outcomes(self, seconds: float) -> list[tuple[Task, Result | Lost]]:
        return [(task, self._result(task)) for task in self.running]

    def _result(self, task: Task) -> Result:
        if self.is_stopping:
            return Result(task, error=Interrupted(f"{task.name}: stopped"))
        try:
            return Result(task, apply(task.function, task.all_arguments, task.folder))
        except Exception as error:
            return Result(task, error=error)
