"""The other matchers as processes: started once with filters and events, then asked pass by pass.

So rounds can take turns with ours, and whoever is not asked does nothing. Each has a heap of its own that is
large enough, and the collector with the highest throughput.
"""

import json
import os
import selectors
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from branchline.kafka.java import find_java
from branchline.ops.matchers import Pass

JAVA = Path(__file__).with_name("java")
HEAP_MB = 6_144
_PIECE = 1 << 16


class PeerFailed(Exception):
    """It ended, or took too long."""


def class_path(*folders: Path) -> str:
    """All jars of the folders, which Java itself looks up."""
    return os.pathsep.join(f"{folder}/*" for folder in folders)


class Java:
    """A single-file program that answers each line that it is told with a line of JSON."""

    def __init__(
        self, program: str, jars: str, arguments: Sequence[str], log: Path, heap_mb: int = HEAP_MB
    ) -> None:
        command = [str(find_java().path), f"-Xmx{heap_mb}m", "-XX:+UseParallelGC", "-cp", jars]
        self._log = log.open("ab")
        self._program = program
        self._process = subprocess.Popen(
            [*command, str(JAVA / f"{program}.java"), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        self._rest = b""

    def __enter__(self) -> "Java":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, command: str, timeout_s: float) -> dict[str, Any]:
        """Its answer to a command."""
        self.tell(command)
        return self.hear(timeout_s)

    def tell(self, command: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(command.encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise PeerFailed(f"{self._program} has ended: see {self._log.name}") from None

    def hear(self, timeout_s: float) -> dict[str, Any]:
        """The next thing that it says."""
        assert self._process.stdout is not None
        deadline = time.monotonic() + timeout_s
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    raise PeerFailed(f"{self._program} gave no answer within {timeout_s:.0f} s")
                piece = os.read(self._process.stdout.fileno(), _PIECE)
                if not piece:
                    raise PeerFailed(f"{self._program} has ended: see {self._log.name}")
                self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End it, at once if it does not end by itself."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.close()
            self._process.wait(2)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log.close()


class PeerMatcher:
    """A matcher in a process of its own, with the same face as `Run`."""

    def __init__(self, java: Java, timeout_s: float) -> None:
        self._java = java
        self._timeout_s = timeout_s
        built = java.hear(timeout_s)
        self.build_s: float = built["build_ns"] / 1e9
        self.heap_bytes: int = built["heap_bytes"]
        self.filters: int = built["filters"]

    def check(self) -> tuple[int, str]:
        """How many pairs match, and their checksum."""
        answer = self._java.ask("check", self._timeout_s)
        return answer["matches"], answer["checksum"]

    def run(self, passes: int) -> Pass:
        """Match all events so many times."""
        answer = self._java.ask(f"pass {passes}", self._timeout_s)
        return Pass(answer["ns"] / 1e9, answer["cpu_ns"] / 1e9, answer["matches"])
