"""`branchline explain` on real Kafka and Spark: the jobs answer from their own state."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession
from routers import Site, delivery_id, running
from waiting import wait_until

from branchline.kafka.asking import ask
from branchline.kafka.cluster import Cluster
from branchline.kafka.explaining import EXPLAIN
from branchline.kafka.messages import encode_tick
from branchline.ops.cli import main
from branchline.routing.codes import Code
from branchline.routing.control import Operation, Request, Status
from branchline.routing.overlay.topology import founded, link

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

LINE = founded(["a", "b", "c"], [link("a", "b"), link("b", "c")])


class Command:
    """The command, as somebody runs it against the suite's Kafka."""

    def __init__(self, cluster: Cluster, namespace: str, folder: Path) -> None:
        properties = folder / "client.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in cluster.properties.items()))
        where = ("--bootstrap", cluster.bootstrap, "--namespace", namespace)
        self._where = (*where, "--client-properties", str(properties))

    def run(self, *arguments: str, timeout_s: int = 120, exit_code: int | None = 0) -> str:
        """What it prints; it must exit with that code, if one is given."""
        patience = ("--timeout", str(timeout_s))
        result = CliRunner().invoke(main, ["explain", *arguments, *patience, *self._where])
        assert "Traceback" not in result.output
        assert exit_code in (None, result.exit_code), result.output
        return result.stdout

    def ask(self, *arguments: str, timeout_s: int = 120, exit_code: int | None = 0) -> dict[str, Any]:
        told = self.run(*arguments, "--json", timeout_s=timeout_s, exit_code=exit_code)
        found: dict[str, Any] = json.loads(told)
        return found


@contextmanager
def warm(site: Site) -> Iterator[None]:
    """A router that has handled a batch; why not, if its query has failed by then."""
    with running(site):
        site.write(site.topics.control, encode_tick())
        site.flush()
        site.settle()
        yield


def subscribe(site: Site) -> None:
    """Alice subscribes at the far end: her subscription takes several batches to be in force."""
    request = Request(Operation.SUBSCRIBE, "alice", "default", "c", filter="n > 5")
    ask(site.cluster, site.topics, [request], Status.IN_FORCE, 180)


def brokers(explanation: dict[str, Any]) -> list[str]:
    return [hop["broker"] for hop in explanation["hops"]]


def test_one_job_explains_all_its_brokers(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """By place, by delivery and as the last one; what is no event too. Nothing is counted, or delivered."""
    site = Site(spark, cluster, namespace, tmp_path / "checkpoint", brokers=("a", "b", "c"), topology=LINE)
    command = Command(cluster, namespace, tmp_path)
    with warm(site):
        subscribe(site)
        for value in (b'{"n": 7}', b'{"n": 1}'):
            site.publish(value, "k", at="a")
        assert site.delivered("alice") == [b'{"n": 7}']
        [delivered] = site.read(site.topics.out("alice"))
        accepted = sum(each["accepted"] for each in site.counts)

        found = command.ask(delivery_id(delivered))
        assert (found["subscriber"], found["delivered"]) == ("alice", True)
        assert brokers(found) == ["a", "b", "c"] and found["unasked"] == []
        assert [hop["deliveries"] for hop in found["hops"]] == [[], [], ["alice"]]

        last = command.ask("--last", "--broker", "a", "--subscriber", "alice")
        assert (last["delivered"], brokers(last)) == (False, ["a", "b", "c"]), "no tree: all is in doubt"
        [denial] = last["denials"]
        assert (denial["subscription"], denial["reasons"]) == ("c/alice/default", ["n > 5: n is 1"])

        site.publish(b"{", "k", [("content-type", b"application/json")], at="a")
        site.write(site.topics.control, json.dumps({"version": 1, "op": EXPLAIN}))
        site.flush()
        site.settle()
        bad = command.ask("--last", "--broker", "a")
        assert "rejected (json-invalid)" in bad["hops"][0]["stopped"]
        letters = {letter.code: letter for letter in site.dead_letters()}
        assert letters.keys() == {Code.JSON_INVALID, Code.CONTROL_INVALID}
        dead = letters[Code.JSON_INVALID].record.place
        assert command.ask(f"{dead.topic}:0:{dead.offset}")["event"] == bad["event"]
        for name, code in ((f"{namespace}.in.a:0:99", 4), (f"{namespace}.in.x:0:0", 4)):
            command.run(name, exit_code=code)
        assert sum(each["accepted"] for each in site.counts) == accepted == 2
        assert len(site.read(site.topics.out("alice"))) == 1


def test_what_goes_to_another_job_is_asked_there(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """The second job follows the copy from the header that it would get; without it, that is told."""
    first = Site(spark, cluster, namespace, tmp_path / "one", 1, brokers=("a",), topology=LINE)
    second = Site(spark, cluster, namespace, tmp_path / "two", 1, brokers=("b", "c"), topology=LINE)
    command = Command(cluster, namespace, tmp_path)
    with warm(first):
        with warm(second):
            subscribe(first)
            for value in (b'{"n": 1}', b'{"n": 7}'):
                first.publish(value, "k", at="a")
            first.flush()
            found = command.ask("--last", "--broker", "a", "--subscriber", "alice")
            assert (found["delivered"], brokers(found)) == (True, ["a", "b", "c"])
            assert [hop["how"] for hop in found["hops"]][1:] == ["its prefix is followed"] * 2
            event = first.read(first.topics.entry("a"))[0]
            shown = command.run(str(event.place), "--subscriber", "alice")
            assert shown.startswith(f"{event.place}\na: the event enters here, for a, b, c;")
            assert "c: the event comes from b" in shown, "no tree: all is in doubt"
            assert "alice does not get the event:" in shown and "    n > 5: n is 1\n" in shown
            assert "now" in shown.splitlines()[-1]
        left: dict[str, Any] = {}

        def is_told() -> bool:
            left.update(command.ask("--last", "--broker", "a", timeout_s=3, exit_code=None))
            return "unasked" in left  # else the first job was too slow as well

        wait_until(is_told, 60, "only the job that runs answers")
        assert brokers(left) == ["a"] and [each["broker"] for each in left["unasked"]] == ["b"]
