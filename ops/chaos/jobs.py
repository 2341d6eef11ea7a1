"""The jobs of a run, each a process of its own, started as an operator would, and again when it ends.

A job below a keeper (`kafka/keeper.py`) does not outlive this process. Every process that was ever seen below
a job is remembered, so that none is left at the end, whoever has lost its parents meanwhile.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from branchline.kafka.errors import JobFailed
from branchline.kafka.home import HOME_VARIABLE
from branchline.kafka.keeper import KeptProcess
from branchline.ops.chaos.processes import Process, family
from branchline.ops.chaos.progress import Checkpoint

START_DEADLINE_S = 120.0
STOP_DEADLINE_S = 60.0
POLL_S = 0.05
COMMAND = (sys.executable, "-P", "-c", "from branchline.ops.cli import main; main()")
DAEMON = "branchline.streaming.daemon"
"""The process that Spark's Python workers are forked from."""


@dataclass
class Job:
    """One job: how it is started, and the process that runs it now."""

    name: str
    options: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    served: Sequence[str]
    """What it must say that it runs."""
    checkpoint: Checkpoint
    starts: int = 0
    seen: set[Process] = field(default_factory=set)
    _process: KeptProcess | None = None

    @property
    def output(self) -> str:
        """What this life of it has said."""
        file = self.folder / f"{self.name}-{self.starts}.output"
        return file.read_text(errors="replace") if file.exists() else ""

    def start(self, *more: str, environment: Mapping[str, str] | None = None) -> None:
        """Start it; returns at once. Later options win."""
        self.starts += 1
        self._process = KeptProcess(
            [*COMMAND, self.name, *self.options, *more],
            self.folder / f"{self.name}-{self.starts}.output",
            STOP_DEADLINE_S,
            {**self.environment, **(environment or {})},
        )

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it runs."""
        return self._process.exit_code if self._process is not None else None

    def is_up(self) -> bool:
        """Whether its queries run."""
        said = self.output
        return self.exit_code is None and all(f"{each}: running" in said for each in self.served)

    def family(self) -> list[Process]:
        """Its processes now."""
        pid = self._process.pid if self._process is not None else None
        found = family(pid) if pid is not None else []
        self.seen.update(found)
        return found

    def head(self) -> Process | None:
        """The process that the operator has started."""
        return next(iter(self.family()), None)

    def java(self) -> Process | None:
        """The driver's JVM, in which local executors run too."""
        return next((each for each in self.family() if each.name() == "java"), None)

    def workers(self) -> list[Process]:
        """Spark's Python workers."""
        daemon = next((each for each in self.family() if DAEMON in each.command()), None)
        return [each for each in family(daemon.pid)[1:] if DAEMON in each.command()] if daemon else []

    def kill(self) -> bool:
        """SIGKILL of all its processes at once, as when a machine fails."""
        struck = [each.kill() for each in self.family()]
        return any(struck)

    def await_end(self) -> int:
        """Its exit code, once it has ended."""
        _wait(lambda: self.exit_code is not None, START_DEADLINE_S, f"the {self.name} ends")
        code = self.exit_code
        assert code is not None
        return code

    def stop(self) -> None:
        """SIGTERM, and by force past a deadline; nothing that it ever started is left."""
        for each in self.family():
            each.signal(signal.SIGCONT)
        if self._process is not None:
            self._process.stop()
        for each in self.seen:
            each.kill()


def environment(home: Path, folder: Path) -> dict[str, str]:
    """What the jobs find: no setting of the user's own, and all that they write in one folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BRANCHLINE_")}
    spark = folder / "spark"
    spark.mkdir(exist_ok=True)
    return {
        # A JVM here lives for a minute: the optimising compiler would only take its time away.
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1",
        **kept,
        HOME_VARIABLE: str(home),
        "BRANCHLINE_IMAGES": str(folder / "images"),
        "SPARK_LOCAL_DIRS": str(spark),
        "TMPDIR": str(spark),
    }


def await_up(jobs: Sequence[Job]) -> None:
    """Return when all of them run; raises if one cannot."""

    def are_up() -> bool:
        for job in jobs:
            if job.exit_code is not None:
                raise JobFailed(f"the {job.name} did not start: {job.output.strip()[-500:]}")
        return all(job.is_up() for job in jobs)

    _wait(are_up, START_DEADLINE_S, "the jobs run")


def _wait(condition: Callable[[], bool], deadline_s: float, what: str) -> None:
    end = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > end:
            raise JobFailed(f"waited {deadline_s:.0f} s in vain until {what}", hint="look, with --keep")
        time.sleep(POLL_S)
