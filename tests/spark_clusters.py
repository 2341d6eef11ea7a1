"""A Spark standalone cluster of processes on this machine, whose Python has never heard of the package."""

import os
import re
import subprocess
import venv
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pyspark
from processes import family, is_alive, living
from waiting import wait_until

SPARK_HOME = Path(pyspark.__file__).parent
HOST = "127.0.0.1"
START_DEADLINE_S = 60
STOP_DEADLINE_S = 30

_CLASSES = "org.apache.spark.deploy"
_MASTER = re.compile(r"spark://[\w.]+:\d+")


def foreign_python(folder: Path, libraries: bool = True) -> Path:
    """An environment with the libraries of this one, but not the package; or with nothing at all.

    It finds the libraries by a folder on its path. What is installed in place is not found by a folder but
    by a finder, which only the environment that it is installed in starts.
    """
    venv.create(folder, symlinks=True)
    if libraries:
        [packages] = folder.glob("lib/python*/site-packages")
        (packages / "libraries.pth").write_text(str(Path(pyspark.__file__).parent.parent) + "\n")
    return folder / "bin" / "python"


def imports(python: Path, module: str) -> bool:
    """Whether that Python finds a module by itself."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([python, "-c", f"import {module}"], env=clean, cwd="/", capture_output=True)
    return done.returncode == 0


@dataclass
class SparkCluster:
    """A master and its workers; used as a context, it ends everything that it started."""

    folder: Path
    cores: int = 1
    memory: str = "1g"
    workers: list[psutil.Process] = field(default_factory=list)
    _started: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _seen: set[psutil.Process] = field(default_factory=set)
    """Also of those that were killed: what they leave behind is ended too."""

    def __enter__(self) -> "SparkCluster":
        self.folder.mkdir()
        try:
            log = self._start("master", "master.Master", "--host", HOST, "--port", "0", "--webui-port", "0")
            self.url = self._said(log, _MASTER)
            self.master = psutil.Process(self._started[0].pid)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.look()
        for process in reversed(self._started):
            process.terminate()
        # Not psutil's own way to wait: of one that is gone just then it says that there is no such file.
        with suppress(AssertionError):
            wait_until(lambda: not living(list(self._seen)), 5, "all of it has ended")
        for left in living(list(self._seen)):
            with suppress(psutil.NoSuchProcess):
                left.kill()
        for process in self._started:
            process.kill()
            process.wait(STOP_DEADLINE_S)

    def add_workers(self, count: int) -> None:
        """Start so many more, and return when they are registered."""
        first = len(self.workers)
        logs = []
        for number in range(first, first + count):
            options = ["--host", HOST, "--port", "0", "--webui-port", "0"]
            options += ["--cores", str(self.cores), "--memory", self.memory]
            options += ["--work-dir", str(self.folder / f"worker-{number}" / "work"), self.url]
            logs.append(self._start(f"worker-{number}", "worker.Worker", *options))
            self.workers.append(psutil.Process(self._started[-1].pid))
        for log in logs:
            self._said(log, re.compile("Successfully registered with master"))

    def machines(self) -> list[Path]:
        """The folders of the workers, each with all that its executors have and make."""
        return [self.folder / f"worker-{number}" for number in range(len(self.workers))]

    def executors(self, worker: int) -> list[psutil.Process]:
        """The worker's executors that live."""
        self.look()
        if not is_alive(self.workers[worker]):
            return []
        return [each for each in self.workers[worker].children() if is_alive(each)]

    def look(self) -> None:
        """Remember every process that belongs to the cluster now."""
        for process in self._started:
            if process.poll() is None:
                with suppress(psutil.NoSuchProcess):
                    self._seen.update(family(process.pid))

    def _start(self, name: str, main: str, *options: str) -> Path:
        folder = self.folder / name
        (folder / "tmp").mkdir(parents=True)
        log = folder / "log"
        kept = ("PATH", "JAVA_HOME", "JAVA_TOOL_OPTIONS", "HOME", "LANG")
        environment = {each: os.environ[each] for each in kept if each in os.environ}
        environment |= {
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": HOST,
            "TMPDIR": str(folder / "tmp"),
            "SPARK_DAEMON_MEMORY": "128m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC",
        }
        with log.open("wb") as output:
            process = subprocess.Popen(
                [SPARK_HOME / "bin" / "spark-class", f"{_CLASSES}.{main}", *options],
                env=environment,
                cwd=folder,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._started.append(process)
        return log

    def _said(self, log: Path, words: re.Pattern[str]) -> str:
        process = self._started[-1]

        def found() -> re.Match[str] | None:
            assert process.poll() is None, log.read_text()
            return words.search(log.read_text())

        wait_until(found, START_DEADLINE_S, f"{log.parent.name} says {words.pattern}")
        match = found()
        assert match is not None
        return match[0]
