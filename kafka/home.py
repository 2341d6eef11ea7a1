"""Where Branchline keeps things on this machine.

`BRANCHLINE_HOME`, or `.branchline` in the user's home folder:

    jars/         the Java libraries, one folder for each version of ivy.xml, with archives of their classes
    ivy/          Ivy's own cache of downloads
    logs/         one file for each part that writes one
    kafka/        the embedded Kafka's data
    checkpoints/  Spark's checkpoints, one folder for each query
    run/          what lives as long as a process: addresses, process ids, locks
"""

import os
from dataclasses import dataclass
from pathlib import Path

HOME_VARIABLE = "BRANCHLINE_HOME"


@dataclass(frozen=True, slots=True)
class Home:
    root: Path

    @classmethod
    def default(cls) -> "Home":
        chosen = os.environ.get(HOME_VARIABLE)
        # Absolute, since the paths are handed to processes with other working folders.
        return cls((Path(chosen).expanduser() if chosen else Path.home() / ".branchline").absolute())

    @property
    def jars(self) -> Path:
        return self.root / "jars"

    @property
    def ivy(self) -> Path:
        return self.root / "ivy"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def kafka(self) -> Path:
        return self.root / "kafka"

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    @property
    def run(self) -> Path:
        return self.root / "run"

    def make(self, folder: Path) -> Path:
        """Make one of the folders above; the root is for its owner only, since topics hold their data."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        return folder
