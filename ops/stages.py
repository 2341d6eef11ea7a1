"""What the stages of routing take, for measuring: chosen functions are timed while a block of code runs.

The core reads no clock, so the clock is put around its functions from here, and taken away again. What a
stage calls of another stage is counted there and not twice.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

Place = tuple[Any, str]
"""A module or class, and the name of a function in it."""


class Stages:
    """Seconds of CPU time by stage, of what is called while it is entered."""

    def __init__(self, stages: Mapping[str, Sequence[Place]]) -> None:
        self._stages = stages
        self._before: list[tuple[Any, str, Any]] = []
        self._inner = 0.0
        """What stages took that were called from the one that runs."""
        self.took_s: dict[str, float] = {}

    def __enter__(self) -> "Stages":
        self.took_s = {}
        for stage, places in self._stages.items():
            for owner, name in places:
                function = getattr(owner, name)
                self._before.append((owner, name, function))
                setattr(owner, name, self._timed(stage, function))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._before:
            setattr(*self._before.pop())

    def _timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **named: Any) -> Any:
            outer, self._inner = self._inner, 0.0
            began = time.process_time()
            try:
                return function(*arguments, **named)
            finally:
                took = time.process_time() - began
                self.took_s[stage] = self.took_s.get(stage, 0.0) + took - self._inner
                self._inner = outer + took

        return timed
