"""The embedded Kafka keeps its data and leaves no process behind, whoever dies first."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from processes import pid_is_alive
from waiting import wait_until

from branchline.kafka.embedded import EmbeddedKafka
from branchline.kafka.errors import KafkaDataInUse, KafkaFailed
from branchline.kafka.home import Home
from branchline.kafka.jars import Jars, ensure_jars
from branchline.kafka.java import Java, find_java
from branchline.kafka.keeper import KeptProcess

OWNER = """
import pathlib, signal, sys
from branchline.kafka.embedded import EmbeddedKafka
from branchline.kafka.home import Home
from branchline.kafka.jars import ensure_jars
from branchline.kafka.java import find_java
kafka = EmbeddedKafka(pathlib.Path(sys.argv[1]), ensure_jars(Home.default(), print), find_java())
kafka.start()
print(kafka.pid, flush=True)
signal.pause()
"""

OWNER_OF_SLEEP = """
import pathlib, signal, sys
from branchline.kafka.keeper import KeptProcess
print(KeptProcess(["sleep", "60"], pathlib.Path(sys.argv[1]), 5).pid, flush=True)
signal.pause()
"""


@pytest.fixture(scope="module")
def jars() -> Jars:
    return ensure_jars(Home.default(), print)


@pytest.fixture(scope="module")
def java() -> Java:
    return find_java()


def start_owner(script: str, argument: Path) -> tuple[subprocess.Popen[str], int]:
    owner = subprocess.Popen(
        [sys.executable, "-c", script, str(argument)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert owner.stdout is not None
    return owner, int(owner.stdout.readline())


def publish(bootstrap: str, topic: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, value)
    assert producer.flush(20) == 0


def read_first(bootstrap: str, topic: str) -> bytes | None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        message = consumer.poll(20)
        return message.value() if message else None
    finally:
        consumer.close()


@pytest.mark.kafka
@pytest.mark.slow
def test_data_and_address_survive_a_restart(tmp_path: Path, jars: Jars, java: Java) -> None:
    """Start, publish, stop, start, read, kill: nothing is lost, and no process is left after stop or kill."""
    kafka = EmbeddedKafka(tmp_path / "dätä 1", jars, java)
    with kafka:
        first, bootstrap = kafka.pid, kafka.bootstrap
        assert first is not None
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result(20)
        publish(bootstrap, "orders", b"kept")
        with pytest.raises(KafkaDataInUse, match="Another Kafka"):
            EmbeddedKafka(kafka.data_dir, jars, java).start()
        assert kafka.is_running()  # the refused one has not hurt it
        del admin
    assert not pid_is_alive(first)
    assert not kafka.is_running()
    assert "INFO" in kafka.log_file.read_text()

    kafka.start()
    second = kafka.pid
    assert second is not None
    assert kafka.bootstrap == bootstrap
    assert read_first(bootstrap, "orders") == b"kept"
    kafka.kill()
    assert not pid_is_alive(second)
    assert kafka.pid is None


@pytest.mark.kafka
@pytest.mark.slow
def test_killed_owner_takes_java_along(tmp_path: Path, jars: Jars) -> None:
    """SIGKILL lets the owner do nothing more; the keeper ends Java, cleanly."""
    owner, pid = start_owner(OWNER, tmp_path)
    assert pid_is_alive(pid)
    owner.kill()
    owner.communicate()
    wait_until(lambda: not pid_is_alive(pid), 20, "Java ends after its owner")
    assert "shut down" in (tmp_path / "kafka.log").read_text()


@pytest.mark.kafka
@pytest.mark.slow
def test_failed_start_says_why(tmp_path: Path, jars: Jars, java: Java) -> None:
    """The reason is Java's own, the log is named, and nothing runs afterwards."""
    kafka = EmbeddedKafka(tmp_path, jars, java, heap_mb=1)
    with pytest.raises(KafkaFailed, match="heap") as caught:
        kafka.start()
    assert caught.value.log is not None
    assert "heap" in caught.value.log.read_text()
    assert not kafka.is_running()


@pytest.mark.slow
def test_kept_process_ends_on_stop_and_on_kill(tmp_path: Path) -> None:
    """Both return only when it is gone."""
    for end in (KeptProcess.stop, KeptProcess.kill):
        process = KeptProcess(["sleep", "60"], tmp_path / "out", 5)
        assert process.pid is not None
        assert pid_is_alive(process.pid)
        end(process)
        assert not pid_is_alive(process.pid)
        assert not process.is_running()
        end(process)  # once more does no harm


@pytest.mark.slow
def test_kept_process_that_will_not_stop_is_killed(tmp_path: Path) -> None:
    """Past the deadline, SIGKILL follows SIGTERM."""
    ready = tmp_path / "ready"
    script = f"trap '' TERM; : > {ready}; while :; do sleep 0.1; done"
    process = KeptProcess(["sh", "-c", script], tmp_path / "out", 0.3)
    assert process.pid is not None
    wait_until(ready.exists, 10, "the trap is set")
    process.stop()
    assert not pid_is_alive(process.pid)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_kept_process_follows_its_owner(tmp_path: Path, number: signal.Signals) -> None:
    """However the owner ends. Its whole group gets the signal, as from Ctrl-C at a terminal."""
    owner, pid = start_owner(OWNER_OF_SLEEP, tmp_path / "out")
    os.killpg(owner.pid, number)
    owner.communicate()
    wait_until(lambda: not pid_is_alive(pid), 10, "the kept process ends after its owner")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a process to its parent's end")
def test_kept_process_follows_a_killed_keeper(tmp_path: Path) -> None:
    """The keeper is a process like any other and may be killed too."""
    process = KeptProcess(["sleep", "60"], tmp_path / "out", 5)
    pid = process.pid
    assert pid is not None
    psutil.Process(psutil.Process(pid).ppid()).kill()
    wait_until(lambda: not pid_is_alive(pid), 10, "the kept process ends after its keeper")
    process.stop()


@pytest.mark.slow
def test_program_that_does_not_exist_has_no_pid(tmp_path: Path) -> None:
    """The keeper ends at once, and its words are in the output."""
    process = KeptProcess([str(tmp_path / "no-java")], tmp_path / "out", 5)
    assert process.pid is None
    wait_until(lambda: not process.is_running(), 10, "the keeper ends")
    assert "no-java" in (tmp_path / "out").read_text()
    process.stop()
