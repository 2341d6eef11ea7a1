"""Runs the whole suite, as `make test` does: in parts, two at a time, since much of it waits.

    python tests/side_by_side.py [arguments for pytest]

What shares one Spark session is one part, and what starts processes of its own another. What needs no Java
never waits; it is divided by files into several parts, so that the cores have work to the end. While others
wait, one of them runs beside the two, so politely that it takes only what they leave, or it would hold them
up past their deadlines. What a part printed is shown when it has ended; the exit code is that of the first
that failed.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

FAST = "not kafka and not spark and not slow"
FAST_PARTS = 4

NOTHING_SELECTED = 5
"""What pytest ends with if the arguments leave nothing of a part."""

AT_ONCE = 2
"""Parts that run at the same time, and besides one that takes what they leave."""

NICE = 10
"""How polite that one is: of what others want as well it gets a tenth."""

PATIENT = ("--timeout", "1800")
"""So its tests may take longer."""

TELL_EVERY_S = 60.0

SLOWEST = ("--durations", "20", "--durations-min", "5")
"""What of a part takes longest is told with it."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the tests."""

    name: str
    marks: str
    options: tuple[str, ...] = ()
    waits: bool = False
    """For processes, and so leaves time to others."""


PARTS = [
    Part("on one Spark session", "spark and not slow", waits=True),
    Part("with processes of their own", "slow or (kafka and not spark)", waits=True),
    *(
        Part(f"without Java, {share} of {FAST_PARTS}", FAST, ("--share", f"{share}/{FAST_PARTS}"))
        for share in range(1, FAST_PARTS + 1)
    ),
]


def share_of(file: str, shares: int) -> int:
    """Which of so many shares a file is in: its name alone decides, so that every file is in one."""
    return zlib.crc32(file.encode()) % shares + 1


class Run:
    """A part's pytest. What it prints goes to a file: a pipe that nobody reads would stop it."""

    def __init__(self, part: Part, arguments: list[str], folder: Path, *, politely: bool) -> None:
        self.part, self.politely = part, politely
        self._file = folder / f"{part.name}.output"
        more = (*SLOWEST, *part.options, *(PATIENT if politely else ()))
        with self._file.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "pytest", "-m", part.marks, *more, *arguments],
                stdout=output,
                stderr=output,
                cwd=Path(__file__).parents[1],
                preexec_fn=(lambda: os.nice(NICE)) if politely else None,  # type: ignore[arg-type,return-value]
            )

    def output(self) -> str:
        return self._file.read_text(errors="replace")

    def progress(self) -> str:
        """How far it is, as pytest says."""
        return (re.findall(r"\[ *(\d+%)\]", self.output()) or ["begun"])[-1]


def may_begin(part: Part, running: list[Run]) -> bool | None:
    """Whether the part may begin beside these, and if so, whether politely; None if it may not."""
    impolite = sum(not each.politely for each in running)
    if len(running) < AT_ONCE or (impolite < AT_ONCE and any(each.part.waits for each in running)):
        return False
    fills = not part.waits and len(running) == impolite and any(each.part.waits for each in running)
    return True if fills else None


def main(arguments: list[str]) -> int:
    began = told = time.monotonic()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="branchline-tests-") as folder:
        left, running = list(PARTS), list[Run]()
        names = ", ".join(part.name for part in PARTS)
        print(f"running the tests in {len(PARTS)} parts: {names}", flush=True)
        try:
            while left or running:
                while left and (politely := may_begin(left[0], running)) is not None:
                    running.append(Run(left.pop(0), arguments, Path(folder), politely=politely))
                time.sleep(0.2)
                for run in [each for each in running if each.process.poll() is not None]:
                    running.remove(run)
                    after = time.monotonic() - began
                    print(f"\n=== tests {run.part.name}, after {after:.0f} s\n{run.output()}", flush=True)
                    code = run.process.returncode
                    failed = failed or (0 if code == NOTHING_SELECTED else code)
                if time.monotonic() - told > TELL_EVERY_S:
                    told = time.monotonic()
                    print("; ".join(f"{each.part.name}: {each.progress()}" for each in running), flush=True)
        except KeyboardInterrupt:
            # They were interrupted too, and end what they have started.
            for run in running:
                run.process.wait()
            failed = failed or 130
    print(f"\n{'FAILED, see above' if failed else 'all tests passed'}, in {time.monotonic() - began:.0f} s")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
