"""`branchline explain` on real Kafka and Spark: the jobs answer from their own state."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession
from routers import Site, delivery_id, running

from branchline.kafka.cluster import Cluster
from branchline.kafka.explaining import EXPLAIN
from branchline.ops.cli import main
from branchline.routing.codes import Code
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

    def run(self, *arguments: str, exit_code: int = 0) -> str:
        result = CliRunner().invoke(main, [*arguments, *self._where], catch_exceptions=False)
        assert result.exit_code == exit_code, result.output
        return result.stdout

    def ask(self, *arguments: str, exit_code: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run(*arguments, "--json", exit_code=exit_code))
        return found


def brokers(explanation: dict[str, Any]) -> list[str]:
    return [hop["broker"] for hop in explanation["hops"]]


def test_one_job_explains_all_its_brokers(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """By place, by delivery and as the last one; what is no event too. Nothing is counted, or delivered."""
    site = Site(spark, cluster, namespace, tmp_path / "checkpoint", brokers=("a", "b", "c"), topology=LINE)
    command = Command(cluster, namespace, tmp_path)
    with running(site):
        site.subscribe("alice", "n > 5", home="c")
        for value in (b'{"n": 7}', b'{"n": 1}'):
            site.publish(value, "k", at="a")
        assert site.delivered("alice") == [b'{"n": 7}']
        [delivered] = site.read(site.topics.out("alice"))
        accepted = sum(each["accepted"] for each in site.counts)

        found = command.ask("explain", delivery_id(delivered))
        assert (found["subscriber"], found["delivered"]) == ("alice", True)
        assert brokers(found) == ["a", "b", "c"] and found["unasked"] == []
        assert [hop["deliveries"] for hop in found["hops"]] == [[], [], ["alice"]]
        place = f"{delivered.place.topic}:0:{delivered.place.offset}"
        assert command.ask("explain", place)["event"] == found["event"]

        last = command.ask("explain", "--last", "--broker", "a", "--subscriber", "alice")
        assert (last["delivered"], brokers(last)) == (False, ["a", "b", "c"]), "no tree: all is in doubt"
        [denial] = last["denials"]
        assert (denial["subscription"], denial["reasons"]) == ("c/alice/default", ["n > 5: n is 1"])
        shown = command.run("explain", last["event"], "--subscriber", "alice")
        assert "n > 5: n is 1" in shown and "now" in shown

        site.publish(b"{", "k", [("content-type", b"application/json")], at="a")
        site.write(site.topics.control, json.dumps({"version": 1, "op": EXPLAIN}))
        site.flush()
        site.settle()
        bad = command.ask("explain", "--last", "--broker", "a")
        assert "rejected (json-invalid)" in bad["hops"][0]["stopped"]
        letters = {letter.code: letter for letter in site.dead_letters()}
        assert letters.keys() == {Code.JSON_INVALID, Code.CONTROL_INVALID}
        dead = letters[Code.JSON_INVALID].record.place
        assert command.ask("explain", f"{dead.topic}:0:{dead.offset}")["event"] == bad["event"]
        for name, code in ((f"{namespace}.in.a:0:99", 4), (f"{namespace}.in.x:0:0", 4)):
            command.run("explain", name, exit_code=code)
        assert sum(each["accepted"] for each in site.counts) == accepted == 2
        assert len(site.read(site.topics.out("alice"))) == 1


def test_what_goes_to_another_job_is_asked_there(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """The second job follows the copy from the header that it would get; without it, that is told."""
    first = Site(spark, cluster, namespace, tmp_path / "one", 1, brokers=("a",), topology=LINE)
    second = Site(spark, cluster, namespace, tmp_path / "two", 1, brokers=("b", "c"), topology=LINE)
    command = Command(cluster, namespace, tmp_path)
    with running(first):
        with running(second):
            first.subscribe("alice", "n > 5", home="c")
            for value in (b'{"n": 1}', b'{"n": 7}'):
                first.publish(value, "k", at="a")
            first.flush()
            found = command.ask("explain", "--last", "--broker", "a", "--subscriber", "alice")
            assert (found["delivered"], brokers(found)) == (True, ["a", "b", "c"])
            assert [hop["how"] for hop in found["hops"]][1:] == ["its prefix is followed"] * 2
            event = first.read(first.topics.entry("a"))[0]
            other = command.ask("explain", str(event.place), "--subscriber", "alice")
            assert (other["delivered"], brokers(other)) == (False, ["a", "b", "c"]), (
                "no tree: all is in doubt"
            )
            assert other["denials"][0]["reasons"] == ["n > 5: n is 1"]
        left = command.ask("explain", "--last", "--broker", "a", "--timeout", "2", exit_code=1)
        assert brokers(left) == ["a"] and [each["broker"] for each in left["unasked"]] == ["b"]
