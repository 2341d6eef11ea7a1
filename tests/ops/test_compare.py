"""`branchline compare`: one workload by several methods, from the command line."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from every_method import every_name_once
from machines import START_DEADLINE_S, Machine, linked_home
from waiting import wait_until

from branchline.kafka.admin import ensure_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import EventMissing
from branchline.kafka.letters import encode_recorded
from branchline.kafka.topics import Topics
from branchline.ops import compare_runs
from branchline.ops.cli import main
from branchline.ops.compare_loads import NAMES, Entering, drawn, read_load, taken
from branchline.ops.compare_runs import FIGURES, disagreement, simulate
from branchline.ops.output import exit_code
from branchline.routing.compiling import Compiled, compile_filter
from branchline.routing.control import Identity, Number, Subscribed
from branchline.routing.event import Event
from branchline.routing.methods.choosing import spelled
from branchline.routing.methods.naming import Methods

LINES = """
{"filter": "price < 100", "subscriber": "alice", "home": "b2"}
{"filter": "price > 10"}
{"event": {"price": 42}}
{"event": {"price": 5}, "broker": "b3"}
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["compare", *arguments], catch_exceptions=False)


def compared(*arguments: str) -> dict[str, Any]:
    result = run("--json", *arguments)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_all_methods_are_compared_and_deliver_the_same(tmp_path: Path) -> None:
    """Every name once: each has all figures, and the table and the plot are written."""
    words = [spelled(methods) for methods in every_name_once()]
    chosen = [part for word in words for part in ("--methods", word)]
    size = ("--brokers", "3", "--subscriptions", "60", "--events", "30", "--workload", "mixed")
    found = compared(*chosen, *size, "--out", str(tmp_path / "out"))
    assert [row["methods"] for row in found["results"]] == words
    assert found["same"] is True and found["workload"] == "mixed" and found["events"] == 30
    for row in found["results"]:
        assert row.keys() == {"methods", "counts", *FIGURES}
        assert row["content_matches"] == 30
        assert row["deliveries"] == found["results"][0]["deliveries"] > 0
        assert row["cpu_us_per_visit"] > 0 < row["memory_bytes"] and row["table_entries"] >= 60
        assert row["control_messages"] > 0 and row["link_bytes"] > row["copies"] > 0
    assert found["results"][0]["afresh_matches"] == 0
    assert (tmp_path / "out" / "mixed.svg").read_text(encoding="utf-8").count("<svg") == 1
    assert all(word in (tmp_path / "out" / "mixed.txt").read_text(encoding="utf-8") for word in words)


def test_subscribers_spare_work_and_publishers_advertise() -> None:
    """Whatever a dissemination asks of clients is done, so its own counts move; who gets what is the same."""
    words = (
        "tell-covering",
        "tell-poset",
        "tell-rto(5)",
        "tell-ff",
        "tell-advertised",
        "tell-advertised-counted",
    )
    methods = [f"rematch+table+{'+'.join(dict.fromkeys(('tell-covering', word)))}" for word in words]
    chosen = [part for word in methods for part in ("--methods", word)]
    found = compared(
        *chosen, "--subscriptions", "450", "--events", "50", "--brokers", "5", "--workload", "ranges"
    )
    rows = dict(zip(words, found["results"], strict=True))
    assert found["same"] is True and rows["tell-covering"]["deliveries"] > 0
    alone, counts = rows["tell-poset"]["counts"], {word: row["counts"] for word, row in rows.items()}
    assert counts["tell-rto(5)"]["slices_offloaded"] > 0
    assert counts["tell-ff"]["filters_claimed"] > 0
    for word in ("tell-rto(5)", "tell-ff"):
        assert not counts[word].get("claims_refuted"), "all are honest"
        assert counts[word]["covering_tests"] < alone["covering_tests"], f"{word} spares the router tests"
    for word in ("tell-advertised", "tell-advertised-counted"):
        assert counts[word]["events_unadvertised"] == 0, "what enters is advertised"


def test_what_is_advertised_holds_for_all_that_enters() -> None:
    """Of numbers their range, of texts the one there is, if all have them, whatever their names."""
    events = [{"a b": 5, 'q"': "it's", "t": "x", "n": True}, {"a b": -0.5, 'q"': "it's", "t": "y", "n": True}]
    load = replace(
        drawn("cw", 2, 1, 1, 1),
        events=[Entering("main", events[0]), Entering("main", {**events[1], "more": 1})],
    )
    assert load.advertised() == {"main": '"a b" BETWEEN -0.5 AND 5 AND "q""" = \'it\'\'s\''}
    for each in [*events, {"a b": 6, 'q"': "it's"}]:
        compiled = compile_filter("sql", load.advertised()["main"])
        assert isinstance(compiled, Compiled)
        assert Event(each).may_match(compiled.cover) is (each in events)
    nothing = replace(load, events=[Entering("main", {"a": 1}), Entering("main", {})])
    assert nothing.advertised() == {"main": "TRUE"}


def test_the_same_seed_gives_the_same_figures() -> None:
    """But for processor time and memory; and another seed gives others."""

    def figures(seed: str) -> list[dict[str, Any]]:
        sizes = ("--brokers", "2", "--subscriptions", "20", "--events", "20", "--workload", "reuse")
        rows = compared("--methods", "rematch+table", "--seed", seed, *sizes)["results"]
        return [{**row, "cpu_us_per_visit": 0, "memory_bytes": 0} for row in rows]

    assert figures("1") == figures("1") != figures("2")


@pytest.mark.parametrize("name", NAMES)
def test_every_workload_has_filters_that_can_be_read(name: str) -> None:
    """As many as asked for, at all brokers, and the same for the same seed."""
    load = drawn(name, 3, 40, 20, 1)
    assert (len(load.subscriptions), len(load.events)) == (40, 20)
    for wanted in load.subscriptions:
        assert isinstance(compile_filter(wanted.spelling, wanted.text), Compiled), wanted.text
    assert {wanted.identity.home for wanted in load.subscriptions} == set(load.brokers)
    assert load == drawn(name, 3, 40, 20, 1) != drawn(name, 3, 40, 20, 2)


def test_a_file_is_a_workload(tmp_path: Path) -> None:
    """Subscriptions and events, at the brokers that it says, or in turn."""
    file = tmp_path / "mine.jsonl"
    file.write_text(LINES)
    load = read_load(file, 3)
    assert [each.identity for each in load.subscriptions] == [
        Identity("b2", "alice", "id0"),
        Identity("b2", "s1", "id1"),
    ]
    assert [(each.at, each.attributes) for each in load.events] == [
        ("main", {"price": 42}),
        ("b3", {"price": 5}),
    ]
    found = compared("--file", str(file), "--brokers", "3", "--methods", "prefix", "--methods", "rematch")
    assert [row["deliveries"] for row in found["results"]] == [3, 3]


def test_methods_that_deliver_other_things_are_told() -> None:
    """Nobody can make one from the command line; whoever compares sees it and exits with 1."""
    load = drawn("gaussian-10", 2, 20, 20, 1)
    right = simulate(load, Methods(), 1, lambda _: None)
    assert disagreement([right, right]) is None
    fewer = replace(right, methods=Methods("rematch"), deliveries=frozenset(list(right.deliveries)[1:]))
    assert disagreement([right, fewer]) == "rematch delivers other than prefix: 1 deliveries fewer, 0 more"
    assert disagreement([right, replace(right, wrong="lost: 1")]) == "prefix: lost: 1"


@pytest.mark.parametrize(
    ("arguments", "why", "hint"),
    [
        (["--workload", "none-such"], "there is no workload 'none-such'", "auctions"),
        (["--methods", "flood"], "'flood' is no method; there are prefix", "docs/methods.md"),
        (["--methods", "prefix+table"], "against the Routing Tree", "docs/methods.md"),
        (["--file", "none-such.jsonl"], "cannot be read: No such file", "check its path"),
        (["--workload", "cw", "--topic", "x"], "several workloads are named", "give one of"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_what_cannot_be_compared_is_refused_with_a_hint(arguments: list[str], why: str, hint: str) -> None:
    """Before anything runs, with exit code 2."""
    result = run(*arguments)
    assert result.exit_code == 2
    assert why in result.stderr and hint in result.stderr


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ('{"filter": "x = 1"}', "has no events"),
        ('{"event": {"x": 1}}', "has no subscriptions"),
        ("[]", "line 1: neither a subscription nor an event"),
        ('{"event": {"x": 1}, "broker": "far"}', "line 1: no broker 'far'"),
        ('{"filter": "x = 1", "home": "far"}\n{"event": {}}', "no broker 'far'"),
    ],
)
def test_a_file_that_is_none_is_refused(lines: str, why: str, tmp_path: Path) -> None:
    """With the line, and how lines are written."""
    (tmp_path / "mine.jsonl").write_text(lines)
    result = run("--file", str(tmp_path / "mine.jsonl"))
    assert result.exit_code == 2 and why in result.stderr and "hint: " in result.stderr


@pytest.mark.kafka
def test_what_has_entered_is_a_workload(cluster: Cluster, namespace: str) -> None:
    """The events of a topic since then, with the subscriptions that stand; an empty topic is refused."""
    topics = Topics(namespace)
    ensure_topics(cluster, topics.of_brokers(("main",)))
    entry = topics.entry("main")
    with pytest.raises(EventMissing, match="has no events since then") as empty:
        taken(cluster, topics, entry, 3_600_000, 100)
    with pytest.raises(EventMissing, match="there is no topic none-such"):
        taken(cluster, topics, "none-such", 3_600_000, 100)
    assert "--since" in empty.value.hint and exit_code(empty.value) == 4
    producer = cluster.producer()
    for number in range(5):
        producer.produce(entry, json.dumps({"x": number}).encode())
    change = Subscribed(Identity("main", "alice", "one"), Number(1, 1), "sql", "x >= 3")
    key, value = encode_recorded(change)
    producer.produce(topics.filters, value, key)
    assert producer.flush(30) == 0
    load = taken(cluster, topics, entry, 3_600_000, 100)
    assert sorted(str(each.attributes["x"]) for each in load.events) == list("01234")
    assert len(taken(cluster, topics, entry, 3_600_000, 3).events) == 3
    assert simulate(load, Methods(), 1, lambda _: None).figures["deliveries"] == 2


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.slow
def test_real_jobs_are_compared_as_well(tmp_path: Path) -> None:
    """On an embedded Kafka and Spark, as a process, with the same deliveries as on the simulator."""
    methods = (
        "prefix",
        "rematch+counting+covering",
        "rematch+table+tell-covering+tell-rto(2)+tell-advertised",
        "rematch+table+tell-covering+tell-ff",
    )
    words = [part for word in methods for part in ("--methods", word)]
    sizes = ("--subscriptions", "40", "--events", "30", "--workload", "mixed", "--brokers", "3")
    with (tmp_path / "found").open("wb") as out, (tmp_path / "said").open("wb") as said:
        machine = Machine(linked_home(tmp_path / "home"))
        process = machine.popen("compare", *words, *sizes, "--on", "spark", "--json", stdout=out, stderr=said)
    try:
        wait_until(lambda: process.poll() is not None, START_DEADLINE_S + 240, "the comparison is over")
    finally:
        process.kill()
    told = (tmp_path / "said").read_text()
    assert process.returncode == 0, told
    assert "  prefix: 30 events" in told and "all 4 deliver the same" in told
    real, simulated = json.loads((tmp_path / "found").read_text()), compared(*words, *sizes)
    assert real["same"] is True and real["on"] == "spark"
    for one, other in zip(real["results"], simulated["results"], strict=True):
        for name in ("methods", "content_matches", "afresh_matches", "deliveries", "table_entries"):
            assert one[name] == other[name], name
        assert one["cpu_us_per_visit"] is None and one["copies"] > 0
    *_, offloaded, fixed = (row["counts"] for row in real["results"])
    assert offloaded["answers_taken"] > 0 == offloaded["events_unadvertised"]
    assert fixed["filters_claimed"] > 0


@pytest.mark.parametrize(
    "told",
    [
        "identity",
        "covering",
        "covering+merging",
        "covering+rto(5)",
        "covering+ff",
        "covering+advertised",
        "identity+advertised",
        "covering+advertised-counted",
    ],
)
def test_entries_along_a_tree_are_those_that_brokers_have(told: str) -> None:
    """What is reckoned from the filters is what neighbours have told each other."""
    load, methods = drawn("cw", 5, 60, 10, 3), Methods("rematch", "table", told)
    world, _ = compare_runs._play(load, methods, 1, lambda _: None)
    brokers = world.runners[0].shards[0].brokers.values()
    kept = sum(len(broker.links) for broker in brokers if broker.links is not None)
    own = sum(
        len(compiled.cover)
        for wanted in load.subscriptions
        if isinstance(compiled := compile_filter(wanted.spelling, wanted.text), Compiled)
    )
    assert compare_runs.table_entries(load, methods) == own + kept
