"""Archives of classes: what one Java has loaded and verified, for all later ones to map.

Theory of operation. About half of the time in which Spark or Kafka starts goes into reading some ten thousand
classes out of jars and verifying them, the same ones each time. Java can write those that it has loaded to a
file when it ends, and map that file the next time (class data sharing). `branchline setup` lets both run for
a moment to make the files (`streaming/recording.py`).

An archive only saves time, and nothing hangs on it: Java compares it with itself and with the jars, and does
without it where they differ. It stands beside the jars and is named after the Java and the folders that it is
of, so that other ones have others.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from branchline.kafka.java import locate_java

FOLDER = "archives"

# Java's warnings go to standard output unless told otherwise, where they would be taken for its answer.
_QUIETLY = ("-Xlog:disable", "-Xlog:all=error:stderr")


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """One program's file, there or not."""

    file: Path

    def is_there(self) -> bool:
        return self.file.is_file()

    def options(self) -> Sequence[str]:
        """Of a Java that is to use it, if it is there."""
        return (f"-XX:SharedArchiveFile={self.file}", *_QUIETLY) if self.is_there() else ()

    def recording(self) -> Sequence[str]:
        """Of a Java that is to write it when it ends; `keep` then makes it the one that is used."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        return (f"-XX:ArchiveClassesAtExit={self._unfinished}", *_QUIETLY)

    def keep(self) -> bool:
        """Use what was written from now on; whether there is anything."""
        if self._unfinished.is_file():
            self._unfinished.rename(self.file)
        return self.is_there()

    @property
    def _unfinished(self) -> Path:
        return self.file.with_suffix(".unfinished")


def class_archive(program: str, *folders: Path) -> ClassArchive:
    """The archive of a program whose jars are in these folders; it stands beside the first."""
    java = locate_java().resolve()
    # Says which build it is: another one in the same place has another.
    release = java.parents[1] / "release"
    digest = hashlib.blake2b(" ".join(map(str, (java, *folders))).encode(), digest_size=8)
    digest.update(release.read_bytes() if release.is_file() else b"")
    return ClassArchive(folders[0].parent / FOLDER / f"{program}-{digest.hexdigest()}.jsa")
