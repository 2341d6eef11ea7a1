"""Runs the whole suite, as `make test` does: in three parts, two at a time, since much of it waits.

    python tests/side_by_side.py [arguments for pytest]

What shares one Spark session is one part, what starts processes of its own another, and what needs no Java
the third, which never waits: it begins when one of the others has ended, or it would hold them up past their
deadlines. What a part printed is shown when it has ended; the exit code is that of the first that failed.
"""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PARTS = {
    "on one Spark session": "spark and not slow",
    "with processes of their own": "slow or (kafka and not spark)",
    "without Java": "not kafka and not spark and not slow",
}
NOTHING_SELECTED = 5
"""What pytest ends with if the arguments leave nothing of a part."""

AT_ONCE = 2
"""Parts that run at the same time."""

TELL_EVERY_S = 60.0

SLOWEST = ("--durations", "20", "--durations-min", "5")
"""What of a part takes longest is told with it."""


class Part:
    """One pytest. What it prints goes to a file: a pipe that nobody reads would stop it."""

    def __init__(self, name: str, marks: str, arguments: list[str], folder: Path) -> None:
        self.name = name
        self._file = folder / f"{marks.split()[0]}.output"
        command = [sys.executable, "-m", "pytest", "-m", marks, *SLOWEST, *arguments]
        with self._file.open("wb") as output:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=output, cwd=Path(__file__).parents[1]
            )

    def output(self) -> str:
        return self._file.read_text(errors="replace")

    def progress(self) -> str:
        """How far it is, as pytest says."""
        return (re.findall(r"\[ *(\d+%)\]", self.output()) or ["begun"])[-1]


def main(arguments: list[str]) -> int:
    began = told = time.monotonic()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="branchline-tests-") as folder:
        left, running = list(PARTS.items()), list[Part]()
        print(f"running the tests in {len(PARTS)} parts, {AT_ONCE} at a time: {', '.join(PARTS)}", flush=True)
        try:
            while left or running:
                while left and len(running) < AT_ONCE:
                    running.append(Part(*left.pop(0), arguments, Path(folder)))
                time.sleep(0.2)
                for part in [each for each in running if each.process.poll() is not None]:
                    running.remove(part)
                    after = time.monotonic() - began
                    print(f"\n=== tests {part.name}, after {after:.0f} s\n{part.output()}", flush=True)
                    code = part.process.returncode
                    failed = failed or (0 if code == NOTHING_SELECTED else code)
                if time.monotonic() - told > TELL_EVERY_S:
                    told = time.monotonic()
                    print("; ".join(f"{each.name}: {each.progress()}" for each in running), flush=True)
        except KeyboardInterrupt:
            # They were interrupted too, and end what they have started.
            for part in running:
                part.process.wait()
            failed = failed or 130
    print(f"\n{'FAILED, see above' if failed else 'all tests passed'}, in {time.monotonic() - began:.0f} s")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
