"""The Java that runs Ivy, Kafka and Spark.

`JAVA_HOME` decides if it is set, even where a better Java is on the path: Spark's own start script
does the same, and two parts of one system on two Javas would be a riddle to whoever debugs it.
"""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from branchline.kafka.errors import JavaMissing, JavaTooOld

OLDEST_MAJOR = 17  # the oldest that Spark 4 and Kafka 4 run on
VERSION_TIMEOUT_S = 30  # a cold disk may take seconds; a launcher that hangs must not hang us

_VERSION = re.compile(r'version "([^"]+)"')
# Before Java 9 the major version came second: 1.8.0_402 is Java 8.
_MAJOR = re.compile(r"(?:1\.)?(\d+)")

_HINT = (
    f"Install a JDK {OLDEST_MAJOR} or newer (for example the package openjdk-17-jre-headless, or openjdk@17 "
    "with Homebrew), or set JAVA_HOME to the folder of one that is already there."
)


@dataclass(frozen=True, slots=True)
class Java:
    path: Path
    version: str
    major: int


def find_java() -> Java:
    """The Java to use, run once to ask for its version."""
    path = locate_java()
    version = _version_of(path)
    major = _major_of(version)
    if major is None:
        raise JavaMissing(f"{path} gives a version that cannot be read: {version!r}.", hint=_HINT)
    if major < OLDEST_MAJOR:
        raise JavaTooOld(f"{path} is Java {version}; {OLDEST_MAJOR} or newer is needed.", hint=_HINT)
    return Java(path, version, major)


def locate_java() -> Path:
    """Where the Java to use is; it has not been asked yet what it is."""
    java_home = os.environ.get("JAVA_HOME")
    if java_home:
        path = Path(java_home) / "bin" / "java"
        if not os.access(path, os.X_OK):
            raise JavaMissing(f"JAVA_HOME is {java_home}, but {path} is not a program.", hint=_HINT)
        return path
    found = shutil.which("java")
    if found is None:
        raise JavaMissing("There is no Java: JAVA_HOME is not set and java is not on the PATH.", hint=_HINT)
    return Path(found).absolute()


def _version_of(path: Path) -> str:
    try:
        answer = subprocess.run(
            [path, "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=VERSION_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        raise JavaMissing(f"{path} -version gave no answer in {VERSION_TIMEOUT_S} s.", hint=_HINT) from None
    except OSError as error:
        raise JavaMissing(f"{path} does not run: {error.strerror}.", hint=_HINT) from error
    # macOS has a java that only says that there is none, and exits with 1.
    said = (answer.stderr + answer.stdout).strip()
    # Searched for, not taken from the first line: JAVA_TOOL_OPTIONS is announced before it.
    version = _VERSION.search(said)
    if answer.returncode != 0 or version is None:
        first = said.splitlines()[0] if said else "nothing"
        raise JavaMissing(f"{path} -version does not tell a version; it says: {first}", hint=_HINT)
    return version[1]


def _major_of(version: str) -> int | None:
    major = _MAJOR.match(version)
    return int(major[1]) if major else None
