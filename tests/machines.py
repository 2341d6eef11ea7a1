"""A home folder and the `branchline up` that runs in it, as several test modules share them."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from processes import await_end, family
from waiting import wait_until
from workload import EVENTS

from branchline.kafka.home import Home
from branchline.ops.cli import main
from branchline.ops.running import running_bootstrap
from branchline.ops.settings import SETTINGS

COMMAND = Path(sys.executable).with_name("branchline")

START_DEADLINE_S = 120
STOP_DEADLINE_S = 60
ANSWER_DEADLINE_S = 60


@dataclass
class Machine:
    """A home folder, and the `branchline up` that runs in it."""

    home: Home
    process: subprocess.Popen[bytes] | None = None
    _starts: int = field(default=0)

    @property
    def output(self) -> str:
        """All that this `up` has printed."""
        return self._file.read_text()

    @property
    def _file(self) -> Path:
        return self.home.root / f"up-{self._starts}.output"

    def start(self) -> None:
        """Start `up` unless it runs; returns at once."""
        if self.process is None or self.process.poll() is not None:
            self._starts += 1
            with self._file.open("wb") as output:
                # Small batches, so that a crash in the middle of the events is one between batches too.
                options = ("up", "--max-events-per-batch", str(EVENTS // 10))
                self.process = self.popen(*options, stdout=output, stderr=output)

    def end(self) -> None:
        """End `up`, if it runs, and all that it started."""
        if self.process is not None and self.process.poll() is None:
            everything = family(self.process.pid)
            self.process.terminate()
            self.process.wait(STOP_DEADLINE_S)
            await_end(everything, STOP_DEADLINE_S)

    def await_router(self) -> None:
        self._await(lambda: "router: running" in self.output, "the router runs")

    def await_kafka(self) -> None:
        self._await(lambda: running_bootstrap(self.home), "Kafka's address is announced")

    def _await(self, condition: Any, what: str) -> None:
        assert self.process is not None
        wait_until(lambda: condition() or self.process.poll() is not None, START_DEADLINE_S, what)  # type: ignore[union-attr]
        assert self.process.poll() is None, self.output

    def popen(self, *arguments: str, **streams: Any) -> subprocess.Popen[bytes]:
        """The command as a process that leads a group of its own, as a shell would start it."""
        return subprocess.Popen(
            [COMMAND, *arguments], env=self.environment(), start_new_session=True, **streams
        )

    def run(self, *arguments: str, input: str | bytes | None = None) -> Result:
        """The command in this process; it must end in its own way, not in a stack trace."""
        unset: dict[str, str | None] = {setting.variable: None for setting in SETTINGS}
        env = {**unset, "BRANCHLINE_HOME": str(self.home.root)}
        result = CliRunner().invoke(main, arguments, input=input, env=env, catch_exceptions=False)
        assert "Traceback" not in result.output
        return result

    def ask(self, *arguments: str, exit_code: int = 0, input: str | bytes | None = None) -> list[Any]:
        """The same with --json: the objects that it prints."""
        result = self.run(*arguments, "--json", input=input)
        assert result.exit_code == exit_code, result.output
        return [json.loads(line) for line in result.stdout.splitlines()]

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("BRANCHLINE_")}
        return {**kept, "BRANCHLINE_HOME": str(self.home.root)}


def linked_home(root: Path) -> Home:
    """A home of its own that has its jars from the usual one."""
    root.mkdir()
    (root / "jars").symlink_to(Home.default().jars)
    return Home(root)
