"""The Java libraries: fetched once, by the Ivy that pyspark ships, into a folder of Branchline's home.

Theory of operation. `<home>/jars/<digest of ivy.xml>` is either whole or not there. Ivy retrieves into a
folder beside it, every jar in there is read to its end, and one rename makes it the real one; so whoever
sees the folder may use it without a lock and without starting Java. Fetching is under a file lock. Ivy
inherits the lock: should we be killed, its orphaned Java keeps the lock until it ends, and nobody else
works on the same cache in the meantime. Under the lock, every temporary folder is a dead run's.

Ivy's cache stays between runs, so a broken-off download goes on where it was. It is not trusted: a jar
that cannot be read is dropped from the cache too and fetched once more.
"""

import fcntl
import hashlib
import importlib.util
import os
import re
import selectors
import shutil
import subprocess
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from branchline.kafka.errors import JarsUnavailable
from branchline.kafka.home import Home
from branchline.kafka.java import find_java

IVY_FILE = Path(__file__).with_name("ivy.xml")
SETTINGS_VARIABLE = "BRANCHLINE_IVY_SETTINGS"
STALL_TIMEOUT_S = 120  # Ivy waits for a silent server for ever; it prints a dot for every few kB
REPORT_EVERY = 10  # libraries between two lines of progress
REASON_LINES = 6  # more does not help: one missing network fails every library alike

Report = Callable[[str], None]

_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s)]+")


@dataclass(frozen=True, slots=True)
class Jars:
    """`spark` goes into spark.jars one by one; `kafka` is a folder for a wildcard class path."""

    spark: tuple[Path, ...]
    kafka: Path


def find_jars(home: Home) -> Jars | None:
    """The Java libraries, if they are all there."""
    target = _target(home)
    if _missing(target):
        return None
    # By the one name that does not hang on links: an archive of classes is good for jars of the same name.
    target = target.resolve()
    return Jars(tuple(sorted((target / "spark").glob("*.jar"))), target / "kafka")


def ensure_jars(home: Home, report: Report) -> Jars:
    """The Java libraries, fetched if they are not there yet."""
    found = find_jars(home)
    if found is None:
        with _lock(home.make(home.jars) / ".lock", report) as lock:
            found = find_jars(home)  # another process may have fetched them while we waited
            if found is None:
                _fetch(home, _target(home), report, lock)
                found = find_jars(home)
    assert found is not None, "what was fetched is complete"
    return found


def _target(home: Home) -> Path:
    return home.jars / hashlib.sha256(IVY_FILE.read_bytes()).hexdigest()[:12]


def _asked_for() -> list[str]:
    """The jars that ivy.xml names, as conf/file; what they need in turn is for Ivy to know."""
    lines = ElementTree.parse(IVY_FILE).iter("dependency")
    return [
        f"{line.attrib['conf'].split('->')[0]}/{line.attrib['name']}-{line.attrib['rev']}.jar"
        for line in lines
    ]


def _missing(folder: Path) -> list[str]:
    return [name for name in _asked_for() if not (folder / name).is_file()]


@contextmanager
def _lock(path: Path, report: Report) -> Iterator[int]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("Another process is fetching the Java libraries; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def _fetch(home: Home, target: Path, report: Report, lock: int) -> None:
    started = time.monotonic()
    report("Fetching the Java libraries of Spark's Kafka connector and of Kafka (once, about 55 MB)")
    log = home.make(home.logs) / "ivy.log"
    for stale in home.jars.glob("*.tmp"):
        shutil.rmtree(stale)
    fetched = home.jars / f"{target.name}.{os.getpid()}.tmp"
    try:
        _run_ivy(home, fetched, log, report, lock)
        broken = _broken(fetched)
        if broken:
            report(f"{len(broken)} jars are damaged ({broken[0].name} …); fetching them again")
            _forget(home, broken)
            _run_ivy(home, fetched, log, report, lock)
            broken = _broken(fetched)
        if broken:
            names = ", ".join(jar.name for jar in broken)
            raise JarsUnavailable(f"These jars arrived damaged twice: {names}.", hint=_hint(home), log=log)
        lacking = _missing(fetched)
        if lacking:
            names = ", ".join(lacking)
            raise JarsUnavailable(f"Ivy ended well but did not bring {names}.", hint=_hint(home), log=log)
        jars = list(fetched.rglob("*.jar"))
        size_mb = sum(jar.stat().st_size for jar in jars) / 1e6
        # A target that is there but lacks jars was damaged by hand: nobody could use it.
        shutil.rmtree(target, ignore_errors=True)
        fetched.rename(target)
    finally:
        shutil.rmtree(fetched, ignore_errors=True)
    report(f"Fetched {len(jars)} jars, {size_mb:.0f} MB, in {time.monotonic() - started:.0f} s")


def _run_ivy(home: Home, folder: Path, log: Path, report: Report, lock: int) -> None:
    folder.mkdir(exist_ok=True)
    command: list[str | Path] = [find_java().path, f"-Divy.default.ivy.user.dir={home.make(home.ivy)}"]
    command += ["-jar", _ivy_jar(), "-ivy", IVY_FILE]
    # Relative to the working folder: Ivy reads brackets in the pattern, and a folder's name may hold some.
    command += ["-retrieve", "[conf]/[artifact]-[revision].[ext]"]
    # Some libraries call their jar a bundle; without the word the broker lacks classes.
    command += ["-types", "jar", "bundle", *_settings()]
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=[lock],
    )
    try:
        lines = _follow(process, log, report)
        code = process.wait()
    finally:
        process.kill()  # after an interrupt; does nothing to a process that has been waited for
        process.wait()
        if process.stdout:
            process.stdout.close()
    if code != 0:
        reason = "\n".join(f"  {line}" for line in _reasons(lines))
        raise JarsUnavailable(
            f"The Java libraries could not be fetched:\n{reason}", hint=_hint(home), log=log
        )


def _follow(process: subprocess.Popen[bytes], log: Path, report: Report) -> list[str]:
    """Ivy's output, which goes to the log only, since it is full of addresses; progress is reported."""
    assert process.stdout is not None
    lines: list[str] = []
    rest = b""
    found = fetched = 0
    with log.open("wb") as file, selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while selector.select(STALL_TIMEOUT_S):
            chunk = os.read(process.stdout.fileno(), 1 << 16)
            if not chunk:
                return lines
            file.write(chunk)
            file.flush()
            *whole, rest = (rest + chunk).split(b"\n")
            for line in (raw.decode(errors="replace").strip() for raw in whole):
                lines.append(line)
                if line.startswith("found "):
                    found += 1
                    if found % REPORT_EVERY == 0:
                        report(f"  {found} libraries found")
                elif line.startswith("[SUCCESSFUL"):
                    fetched += 1
                    if fetched % REPORT_EVERY == 0:
                        report(f"  {fetched} of {found} jars fetched")
    raise JarsUnavailable(
        f"Nothing came from the network for {STALL_TIMEOUT_S} s after {fetched} of {found} jars.",
        hint="What has come is kept: run it again, or check the network.",
        log=log,
    )


def _reasons(lines: list[str]) -> list[str]:
    """The lines that say why, once each, without the addresses."""
    plain = [_ADDRESS.sub("…", line) for line in lines if line]
    telling = [
        line
        for line in dict.fromkeys(plain)
        if line.endswith(": not found")
        or "error" in line.lower()
        or "exception" in line.lower()
        or "FAILED" in line
    ]
    # The list of failures is headed by a line of its own.
    telling = [line for line in telling if line.strip(": ") != "ERRORS"]
    return (telling or plain)[-REASON_LINES:]


def _broken(folder: Path) -> list[Path]:
    """The jars that cannot be read to their end, checksums and all."""
    return [jar for jar in sorted(folder.rglob("*.jar")) if not _readable(jar)]


def _readable(jar: Path) -> bool:
    try:
        with zipfile.ZipFile(jar) as archive:
            return archive.testzip() is None
    except (zipfile.BadZipFile, EOFError, OSError, ValueError):
        return False


def _forget(home: Home, broken: list[Path]) -> None:
    names = {jar.name for jar in broken}
    for cached in home.ivy.rglob("*.jar"):
        if cached.name in names:
            cached.unlink()
    for jar in broken:
        jar.unlink()


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")  # finds it without the seconds that importing takes
    for folder in spec.submodule_search_locations or () if spec else ():
        for jar in sorted(Path(folder, "jars").glob("ivy-*.jar")):
            return jar
    raise JarsUnavailable("pyspark, which brings Ivy, is not installed.", hint="pip install branchline")


def _settings() -> list[str | Path]:
    chosen = os.environ.get(SETTINGS_VARIABLE)
    if not chosen:
        return []
    path = Path(chosen).expanduser().absolute()
    if not path.is_file():
        raise JarsUnavailable(
            f"{SETTINGS_VARIABLE} is {chosen}, which is not a file.",
            hint=f"Set {SETTINGS_VARIABLE} to an Ivy settings file, or unset it.",
        )
    return ["-settings", path]


def _hint(home: Home) -> str:
    return (
        "Does this machine reach the network? Behind a company's mirror, set "
        f"{SETTINGS_VARIABLE} to an Ivy settings file that names it; a proxy goes into JAVA_TOOL_OPTIONS. "
        f"What has come is kept, so a second try goes on from there; to start afresh, remove {home.ivy}."
    )
