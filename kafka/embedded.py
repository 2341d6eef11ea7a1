"""A Kafka of one node on this machine, for trying Branchline out and for tests; not for production.

Theory of operation. The data folder holds everything, so a start on the same folder finds it all again:

    log/               Kafka's own files; formatted once, before the first start
    ports.json         the last ports, taken again if they are free, so that clients find the way back
    server.properties  written at each start (for its owner only: it may hold passwords)
    owner.lock         held by the process that runs this Kafka

The owner's lock matters more than Kafka's own `.lock`: a second broker takes that one only after it has
written to the metadata log, and by then it has hurt the first. Kafka's is looked at as well. If it is held
while the owner's is free, the owner died and its keeper is about to end Java (see `keeper.py`): that takes
seconds and is waited for.

Ready means that a metadata request was answered by this very cluster, told by its id: on a port that
another Kafka has taken in the meantime, an answer alone would prove nothing.
"""

import base64
import contextlib
import fcntl
import json
import re
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import IO

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from branchline.kafka.class_archives import ClassArchive, class_archive
from branchline.kafka.errors import KafkaDataInUse, KafkaFailed
from branchline.kafka.jars import Jars
from branchline.kafka.java import Java
from branchline.kafka.keeper import KeptProcess
from branchline.kafka.kraft import (
    ADDRESS,
    Detour,
    Ports,
    Seat,
    escape,
    free_ports,
    is_free,
    server_properties,
)

START_DEADLINE_S = 60  # 5 s on an idle machine with two cores
RECORD_DEADLINE_S = 120  # as long as it may take to write down all classes on a busy machine
STOP_DEADLINE_S = 15  # 1-3 s as a rule; Kafka itself would try for five minutes
PORT_ATTEMPTS = 4  # another program may take a port between our look and Kafka's bind
POLL_S = 0.05
LOG4J_FILE = Path(__file__).with_name("log4j2.properties")

_EXCEPTION = re.compile(
    r"^(?:Exception in thread \S+ |Caused by: )?[\w.$]+(?:Exception|Error): (?P<reason>.+)"
)


class _PortTaken(Exception):
    """Somebody was faster; the next attempt takes other ports."""


class EmbeddedKafka:
    """One Kafka node. `properties` are added to the server's; `client` signs in, if they ask for it.

    With a `seat` it is one of several, which must be started at the same time: none is ready alone. With
    `record` it writes that archive when it stops.
    """

    def __init__(
        self,
        data_dir: Path,
        jars: Jars,
        java: Java,
        port: int | None = None,
        log_file: Path | None = None,
        heap_mb: int = 256,
        properties: Mapping[str, str] | None = None,
        client: Mapping[str, str] | None = None,
        seat: Seat | None = None,
        detour: Detour | None = None,
        record: ClassArchive | None = None,
    ) -> None:
        self.data_dir = data_dir.absolute()
        self.log_file = (log_file or data_dir / "kafka.log").absolute()
        self._output_file = self.log_file.with_suffix(".out")  # what Java says before there is a log
        self._jars = jars
        self._java = java
        self._port = port
        self._heap_mb = heap_mb
        self._properties = dict(properties or {})
        self._client = dict(client or {})
        self._seat = seat
        self._detour = detour
        self._archive = record or class_archive("kafka", jars.kafka)
        self._records = record is not None
        self._ports: Ports | None = None
        self._owner_lock: IO[str] | None = None
        self._process: KeptProcess | None = None
        self._log_start = 0

    @property
    def bootstrap(self) -> str:
        if self._ports is None:
            raise RuntimeError("the embedded Kafka has not been started")
        return f"{ADDRESS}:{self._ports.client}"

    @property
    def pid(self) -> int | None:
        """The process id of Java, while it runs."""
        return self._process.pid if self._process is not None and self.is_running() else None

    def is_running(self) -> bool:
        return self._process is not None and self._process.is_running()

    def start(self) -> None:
        """Start, and return when Kafka answers. Does nothing if it runs."""
        if self.is_running():
            return
        self.stop()  # what a crashed run has left
        try:
            self._take_data()
            for attempt in range(PORT_ATTEMPTS):
                self._ports = self._choose_ports(again=attempt == 0)
                self._write_properties(self._ports)
                self._format()
                try:
                    self._process = self._launch()
                    self._await_ready(self._ports)
                except _PortTaken:
                    continue
                (self.data_dir / "ports.json").write_text(json.dumps(asdict(self._ports)))
                return
            raise KafkaFailed(f"Kafka found its ports taken {PORT_ATTEMPTS} times.", log=self.log_file)
        except BaseException:  # Ctrl-C too: half a start leaves nothing running
            self.stop()
            raise

    def stop(self) -> None:
        """Stop cleanly, by force past the deadline. Does nothing if it does not run."""
        if self._process is not None:
            self._process.stop()
        self._let_go()

    def kill(self) -> None:
        """End Java with SIGKILL, as a crash would."""
        if self._process is not None:
            self._process.kill()
        self._let_go()

    def __enter__(self) -> "EmbeddedKafka":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _let_go(self) -> None:
        self._process = None
        if self._owner_lock is not None:
            self._owner_lock.close()
            self._owner_lock = None

    def _take_data(self) -> None:
        if "," in str(self.data_dir):
            raise KafkaFailed(f"Kafka cannot keep data in {self.data_dir}: the name has a comma.")
        try:
            (self.data_dir / "log").mkdir(parents=True, exist_ok=True)
            self.log_file.parent.mkdir(parents=True, exist_ok=True)
            self._owner_lock = (self.data_dir / "owner.lock").open("w")
        except OSError as error:
            raise KafkaFailed(
                f"Kafka cannot keep data in {self.data_dir}: {error.strerror}.",
                hint="Check the folder's permissions and the free space, or choose another.",
            ) from None
        try:
            fcntl.flock(self._owner_lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise self._data_in_use() from None
        _poll(self._kafka_lock_is_free, STOP_DEADLINE_S, self._data_in_use)

    def _kafka_lock_is_free(self) -> bool:
        try:
            with (self.data_dir / "log" / ".lock").open("r+") as file:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # Java's kind of lock
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def _data_in_use(self) -> KafkaDataInUse:
        return KafkaDataInUse(
            f"Another Kafka runs on {self.data_dir}.", hint="Stop it first, or choose another data folder."
        )

    def _choose_ports(self, again: bool) -> Ports:
        last = None
        with contextlib.suppress(OSError, ValueError, TypeError):  # none yet, or not ours: any will do
            last = Ports(**json.loads((self.data_dir / "ports.json").read_text()))
        client, controller = free_ports(2)
        if again and last is not None:
            client = last.client if is_free(last.client) else client
            controller = last.controller if is_free(last.controller) else controller
        if self._port is not None:
            if not is_free(self._port):
                raise KafkaFailed(
                    f"Port {self._port} is taken.", hint="Choose another port, or leave it out."
                )
            client = self._port
        if self._seat is not None:
            controller = self._seat.controllers[self._seat.node]
        return Ports(client, controller)

    def _write_properties(self, ports: Ports) -> None:
        told = server_properties(self.data_dir / "log", ports, self._seat, self._detour) | self._properties
        lines = [f"{name}={escape(value)}" for name, value in told.items()]
        path = self.data_dir / "server.properties"
        path.touch(mode=0o600)
        path.chmod(0o600)  # also one that is there
        path.write_text("\n".join(lines) + "\n", encoding="ascii")

    def _format(self) -> None:
        if (self.data_dir / "log" / "meta.properties").exists():
            return
        cluster_id = self._seat.cluster_id if self._seat is not None else new_cluster_id()
        # An id that starts with a dash would be read as an option.
        command = self._command("kafka.tools.StorageTool", "format", f"--cluster-id={cluster_id}")
        command += ["-c", str(self.data_dir / "server.properties")]
        with self._output_file.open("w") as output:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=START_DEADLINE_S
            )
        if done.returncode != 0:
            reason = _reason(self._output_file.read_text(errors="replace").splitlines())
            raise KafkaFailed(f"Kafka's data folder could not be set up: {reason}", log=self._output_file)

    def _launch(self) -> KeptProcess:
        self._log_start = self.log_file.stat().st_size if self.log_file.exists() else 0
        command = self._command("kafka.Kafka", str(self.data_dir / "server.properties"))
        deadline_s = RECORD_DEADLINE_S if self._records else STOP_DEADLINE_S
        return KeptProcess(command, self._output_file, deadline_s)

    def _command(self, *main: str) -> list[str]:
        return [
            str(self._java.path),
            f"-Xmx{self._heap_mb}m",
            "-XX:+UseSerialGC",
            "-XX:+ExitOnOutOfMemoryError",
            *(self._archive.recording() if self._records else self._archive.options()),
            f"-Dlog4j2.configurationFile={LOG4J_FILE.as_uri()}",
            f"-Dbranchline.kafka.log={self.log_file}",
            "-cp",
            f"{self._jars.kafka}/*",  # Java expands it, and only Java
            *main,
        ]

    def _await_ready(self, ports: Ports) -> None:
        meta = (self.data_dir / "log" / "meta.properties").read_text().splitlines()
        cluster_id = next(line.removeprefix("cluster.id=") for line in meta if line.startswith("cluster.id="))
        quiet = {"log_level": 0, "socket.timeout.ms": 5000, "reconnect.backoff.max.ms": 200}
        admin: AdminClient | None = None
        last_answer = "nothing listens on its port yet"

        def answers() -> bool:
            nonlocal admin, last_answer
            if not self.is_running():
                raise self._early_exit()
            if admin is None:
                if is_free(ports.client):
                    return False  # asking librdkafka now would only make it back off
                admin = AdminClient({**quiet, **self._client, "bootstrap.servers": self.bootstrap})
            try:
                metadata = admin.list_topics(timeout=1.0)
            except KafkaException as error:
                last_answer = str(error.args[0])
                return False
            node = self._seat.node if self._seat is not None else 1
            return metadata.cluster_id == cluster_id and node in metadata.brokers

        _poll(
            answers,
            START_DEADLINE_S,
            lambda: KafkaFailed(
                f"Kafka did not answer within {START_DEADLINE_S} s: {last_answer}.", log=self.log_file
            ),
        )

    def _early_exit(self) -> Exception:
        """Why Java ended before it was ready: from this run's part of the log, or what Java itself said."""
        written = self.log_file.read_bytes() if self.log_file.exists() else b""
        # A log shorter than it was has been rolled over: all of it is new.
        fresh = written[self._log_start :] if len(written) >= self._log_start else written
        said = self._output_file.read_bytes()
        lines = (fresh + b"\n" + said).decode(errors="replace").splitlines()
        if any("Address already in use" in line for line in lines):
            return _PortTaken()
        if any("Failed to acquire lock" in line for line in lines):
            return self._data_in_use()
        log = self.log_file if fresh.strip() else self._output_file
        return KafkaFailed(f"Kafka ended while it was starting: {_reason(lines)}", log=log)


def new_cluster_id() -> str:
    """An id for a cluster that is about to be made."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()


def _reason(lines: list[str]) -> str:
    """The first exception is the nearest to the cause; without one, the first words of Java itself."""
    for line in lines:
        if found := _EXCEPTION.match(line):
            return found["reason"]
    said = [line for line in lines if line.strip() and not line.startswith("Picked up ")]
    return " ".join(said[:2]) or "it gave no reason"


def _poll(condition: Callable[[], bool], deadline_s: float, failure: Callable[[], Exception]) -> None:
    end = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > end:
            raise failure()
        time.sleep(POLL_S)
