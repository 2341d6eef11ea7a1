"""The peers' Java libraries: fetched once, by the Ivy that pyspark ships, as Branchline fetches its own.

A folder in Branchline's home, named after what `ivy.xml` says, is either whole or not there: Ivy retrieves
into a folder beside it, and one rename makes it the real one.
"""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from branchline.kafka.errors import JarsUnavailable
from branchline.kafka.home import Home
from branchline.kafka.jars import SETTINGS_VARIABLE
from branchline.kafka.java import find_java

IVY_FILE = Path(__file__).with_name("ivy.xml")
FETCH_TIMEOUT_S = 600

_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s)]+")


@dataclass(frozen=True, slots=True)
class PeerJars:
    """Folders for wildcard class paths."""

    ruler: Path
    lucene: Path


def find_peer_jars(home: Home) -> PeerJars | None:
    """The libraries, if they are there."""
    target = _target(home)
    return PeerJars(target / "ruler", target / "lucene") if target.is_dir() else None


def ensure_peer_jars(home: Home, report: Callable[[str], None]) -> PeerJars:
    """The libraries, fetched if they are not there yet."""
    found = find_peer_jars(home)
    if found is None:
        report("fetching the Java libraries of event-ruler and Lucene's monitor (once, about 10 MB)")
        _fetch(home, _target(home))
        found = find_peer_jars(home)
    assert found is not None, "what was fetched is there"
    return found


def _target(home: Home) -> Path:
    return home.jars / f"peers-{hashlib.sha256(IVY_FILE.read_bytes()).hexdigest()[:12]}"


def _fetch(home: Home, target: Path) -> None:
    fetched = home.make(home.jars) / f"{target.name}.{os.getpid()}.fetching"
    fetched.mkdir()
    try:
        command: list[str | Path] = [find_java().path, f"-Divy.default.ivy.user.dir={home.make(home.ivy)}"]
        command += ["-jar", _ivy_jar(), "-ivy", IVY_FILE]
        command += ["-retrieve", "[conf]/[artifact]-[revision].[ext]", "-types", "jar", "bundle"]
        settings = os.environ.get(SETTINGS_VARIABLE)
        if settings:
            command += ["-settings", Path(settings).expanduser().absolute()]
        done = subprocess.run(
            command, cwd=fetched, stdin=subprocess.DEVNULL, capture_output=True, timeout=FETCH_TIMEOUT_S
        )
        if done.returncode:
            # Without addresses, which are nobody's business but the settings'.
            lines = _ADDRESS.sub("…", done.stdout.decode(errors="replace")).splitlines()
            reasons = [line.strip() for line in lines if line.strip().endswith(": not found")]
            raise JarsUnavailable(
                "the peers' libraries could not be fetched: " + "; ".join(dict.fromkeys(reasons)),
                hint=f"check the network, or set {SETTINGS_VARIABLE}",
            )
        if not target.is_dir():  # another process may have been faster
            fetched.rename(target)
    finally:
        shutil.rmtree(fetched, ignore_errors=True)


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")  # finds it without the seconds that importing takes
    for folder in spec.submodule_search_locations or () if spec else ():
        for jar in sorted(Path(folder, "jars").glob("ivy-*.jar")):
            return jar
    raise JarsUnavailable("pyspark, which brings Ivy, is not installed", hint="make setup")
