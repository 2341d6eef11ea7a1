"""The end of a running `branchline up`, and what a crash in the middle of its work leaves behind."""

import os
import signal
from collections import defaultdict

import pytest
from machines import STOP_DEADLINE_S, Machine
from processes import family, living, named
from routers import as_published, delivery_id, ends, read_all
from waiting import wait_until
from workload import EVENTS, SEED, SUBSCRIPTIONS, make_workload

from branchline.kafka.asking import ask
from branchline.kafka.cluster import Cluster
from branchline.kafka.dead_letters import decode_dead_letter
from branchline.kafka.record import Record
from branchline.kafka.topics import Topics
from branchline.ops.running import running_bootstrap
from branchline.routing.control import Status

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

TOPICS = Topics()


def test_a_kill_in_the_middle_loses_nothing(up: Machine) -> None:
    """SIGKILL of the driver among the events, and start again: nothing is missing or too much.

    What came twice has the same id and the same bytes. None of its processes outlives the killed one, and
    subscriptions made before stand after.
    """
    workload = make_workload(EVENTS, SUBSCRIPTIONS, SEED)
    outputs = [TOPICS.out(name) for name in workload.subscribers()]
    cluster = Cluster(str(running_bootstrap(up.home)))
    ask(cluster, TOPICS, workload.requests(), Status.IN_FORCE, 60)
    standing = up.ask("subscriptions")
    broken_before = ends(cluster, [TOPICS.dead_letters])
    producer = cluster.producer()
    for event in workload.events:
        producer.produce(TOPICS.entry("main"), event.value, event.key, headers=list(event.headers))
        producer.poll(0)
    assert producer.flush(60) == 0

    def written() -> int:
        return sum(ends(cluster, outputs).values())

    wait_until(lambda: written() > workload.deliveries() // 10, 60, "the router is at work")
    assert up.process is not None
    everything = family(up.process.pid)
    assert len(named(everything, "java")) == 2
    at_the_kill = written()
    up.process.kill()
    up.process.wait()
    assert at_the_kill < workload.deliveries(), "killed too late to show anything"
    wait_until(lambda: not living(everything), STOP_DEADLINE_S, "all its processes are gone")
    assert running_bootstrap(up.home) is None

    up.start()
    up.await_router()
    cluster = Cluster(str(running_bootstrap(up.home)))
    assert up.ask("subscriptions") == standing

    def letters() -> dict[str, str]:
        records = read_all(cluster, [TOPICS.dead_letters], since=broken_before)
        return {str(letter.place): letter.code for letter in map(decode_dead_letter, records)}

    wait_until(lambda: written() >= workload.deliveries(), 180, "as much is written as is owed")
    wait_until(lambda: len(_once(cluster, outputs)) >= workload.deliveries(), 60, "no delivery is missing")
    wait_until(lambda: len(letters()) >= len(workload.broken), 60, "no dead letter is missing")
    delivered: dict[str, list[Record]] = defaultdict(list)
    for record in _once(cluster, outputs).values():
        delivered[str(TOPICS.named(record.place.topic))].append(record)
    workload.check(delivered)
    print(
        f"{EVENTS:,} events, {SUBSCRIPTIONS} subscriptions, {workload.deliveries():,} deliveries owed: "
        f"driver killed after {at_the_kill:,}; in the end {written():,} written, "
        f"{written() - workload.deliveries():,} of them repeats with the same id, 0 missing, 0 too much"
    )
    assert sorted(letters().values()) == sorted(code for code, _ in workload.broken)


def _once(cluster: Cluster, outputs: list[str]) -> dict[str, Record]:
    """The deliveries in their order, repeats dropped; a repeat must be the same to the byte."""
    once: dict[str, Record] = {}
    for record in read_all(cluster, outputs):
        first = once.setdefault(delivery_id(record), record)
        assert as_published(first) == as_published(record)
    return once


def test_ctrl_c_stops_all_of_it(up: Machine) -> None:
    """Ctrl-C at a terminal, which signals the whole group, ends with 0 and leaves no process and no noise."""
    assert up.process is not None
    everything = family(up.process.pid)
    os.killpg(up.process.pid, signal.SIGINT)
    assert up.process.wait(STOP_DEADLINE_S) == 0, up.output
    assert living(everything) == []
    assert "Traceback" not in up.output and "WARN" not in up.output
    assert up.run("status").exit_code == 2
