"""Rounds that take turns: each contender does the same passes over the same events, one after the other.

So whatever else the machine does hits all of them, and a ratio is of one run on one machine. Before the
rounds each one warms up, for so long and one pass at least: Java compiles what it runs often.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any, Protocol

from branchline.ops.matchers import Pass


class Contender(Protocol):
    """Somebody who matches."""

    def run(self, passes: int) -> Pass: ...


@dataclass(frozen=True, slots=True)
class Timed:
    """What one contender's rounds gave, an event on average."""

    wall_us: tuple[float, ...]
    cpu_us: tuple[float, ...]
    matches: int

    @property
    def us(self) -> float:
        return median(self.wall_us)

    def fields(self) -> dict[str, Any]:
        """Medians, and how far rounds were apart."""
        return {
            "events_per_s": round(1e6 / self.us),
            "slowest": round(1e6 / max(self.wall_us)),
            "fastest": round(1e6 / min(self.wall_us)),
            "us_per_event": round(self.us, 3),
            "cpu_us_per_event": round(median(self.cpu_us), 3),
        }


def take_turns(
    contenders: Mapping[str, Contender],
    events: int,
    rounds: int,
    passes: int,
    warm_up_s: float,
    report: Callable[[str], None],
) -> dict[str, Timed]:
    """What each contender's rounds gave."""
    for name, contender in contenders.items():
        deadline = time.monotonic() + warm_up_s
        warmed = 1
        contender.run(1)
        while time.monotonic() < deadline:
            contender.run(1)
            warmed += 1
        report(f"  {name}: warmed up, {warmed} passes")
    taken: dict[str, list[Pass]] = {name: [] for name in contenders}
    for number in range(rounds):
        for name, contender in contenders.items():
            taken[name].append(contender.run(passes))
        rates = ", ".join(f"{name} {events * passes / taken[name][-1].wall_s:,.0f}" for name in contenders)
        report(f"  round {number + 1} of {rounds}, events/s: {rates}")
    return {name: _timed(each, events * passes) for name, each in taken.items()}


def _timed(passes: list[Pass], events: int) -> Timed:
    return Timed(
        tuple(each.wall_s * 1e6 / events for each in passes),
        tuple(each.cpu_s * 1e6 / events for each in passes),
        passes[0].matches,
    )
