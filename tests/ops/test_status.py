"""What `status` makes of what jobs have told and Kafka has, as JSON and as text."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from branchline.kafka.listing import Known
from branchline.kafka.methods import methods_fields
from branchline.kafka.topics import Topics
from branchline.ops.status import SILENT_AFTER_S, assemble
from branchline.ops.status_text import describe
from branchline.routing.control import Identity, Number, Subscribed
from branchline.routing.dissemination.adverts import Advertised
from branchline.routing.methods.naming import Methods
from branchline.routing.overlay.topology import founded, link

TOPICS = Topics("branchline")
NOW_S = 1_700_000_000.0
LINE = founded(["a", "b", "c"], [link("a", "b", 3), link("b", "c")]).left("c")

ROUTER = {
    "job": "router",
    "broker": "a",
    "brokers": ["a", "b"],
    "state": "running",
    "at_ms": NOW_S * 1000 - 1_000,
    "batches": 12,
    "batch_ms": 120,
    "restarts": 0,
    "topology": 2,
    "topologies": {"a": 2, "b": 1},
    "joining": ["b"],
    "waiting": [],
    "tree": [{"part": 0, "version": [1_700, 3], "nodes": 40, "beside": 2}],
    "pending": {
        "count": 25,
        "first": [{"subscription": "a/alice/one", "waits_for": ["b", "c"], "more": 5}],
    },
    "rates": {
        "10s": {"accepted": 12.5, "delivered": 30.0},
        "60s": {"accepted": 2.0, "delivered": 4.0},
    },
    "counts": {
        "accepted": 1_234,
        "delivered": 99,
        "content_matches": 7,
        "afresh_matches": 8,
        "exact_checks": 9,
        "older_walks": 10,
    },
    "positions": {
        TOPICS.control: {"0": 5},
        TOPICS.entry("a"): {"0": 3, "1": 0},
        TOPICS.link("a"): {"0": 1},
        TOPICS.broker("a"): {"0": 0, "1": 0},
        TOPICS.link("b"): {"0": 0},
    },
}
OPTIMIZER = {
    "job": "optimizer",
    "state": "running",
    "at_ms": NOW_S * 1000,
    "batches": 3,
    "restarts": 0,
    "parts": [{"part": 0, "version": [1_700, 4], "nodes": 41, "beside": 1, "difference": 0.25}],
    "counts": {"updates": 4, "snapshots": 1},
    "positions": {TOPICS.filters: {"0": 6}},
}
BRIDGE = {
    "job": "bridge",
    "from": "main",
    "to": "far",
    "brokers": ["c"],
    "state": "running",
    "at_ms": NOW_S * 1000,
    "restarts": 1,
    "counts": {"records": 70, "bytes": 7_000},
    "lag": {TOPICS.link("c"): 4, TOPICS.broker("c"): 40, TOPICS.rt_updates: 9},
    "positions": {TOPICS.link("c"): {"0": 0}},
}
ENDS = {
    TOPICS.control: [(0, 5)],
    TOPICS.rt_updates: [(0, 2)],
    TOPICS.entry("a"): [(1, 4), (0, 2)],
    TOPICS.link("a"): [(0, 3)],
    TOPICS.broker("a"): [(0, 0), (0, 1)],
    TOPICS.link("b"): [(0, 0)],
    TOPICS.link("c"): [(0, 4)],
    TOPICS.broker("c"): [(0, 30), (0, 10)],
    TOPICS.filters: [(0, 8)],
    TOPICS.out("alice"): [(10, 20)],
    TOPICS.dead_letters: [(3, 5)],
}
STATS = {"optimizer/branchline": OPTIMIZER, "router/a": ROUTER, "bridge/main-far": BRIDGE}
KNOWN = Known([Subscribed(Identity("a", "alice", "one"), Number(1, 1), "sql", "TRUE")], LINE)


def found(
    stats: dict[str, Any] = STATS, known: Known = KNOWN, methods: Methods | None = None
) -> dict[str, Any]:
    return {"bootstrap": "localhost:9092"} | assemble(TOPICS, ENDS, stats, known, NOW_S, methods)


def test_methods_are_told_and_whoever_does_not_use_the_namespaces() -> None:
    """Those of the namespace and of each router; one that has others is told to be started anew."""
    rematch = Methods("rematch", "table")
    job = {**ROUTER, "methods": methods_fields(rematch), "counts": {"keys_used": 1_234, "filters_hidden": 0}}
    told = found({"router/a": job}, methods=rematch)
    assert told["methods"] == told["jobs"][0]["methods"] == methods_fields(rematch)
    assert "  methods: rematch+table\n" in describe(told)
    assert "  counts of its methods: keys_used 1,234, filters_hidden 0\n" in describe(told)
    lags = describe(found({"router/a": job}, methods=Methods()))
    assert "  methods: rematch+table; the namespace's are prefix: start it anew" in lags
    assert found()["methods"] is None and "methods:" not in describe(found())


def test_lag_is_by_topic_and_of_its_reader() -> None:
    """Each input has the lag of whoever reads it; mail that nobody reads has all its records."""
    told = {each["topic"]: (each["lag"], each["reader"]) for each in found()["inputs"]}
    assert told == {
        TOPICS.control: (0, "router a"),
        TOPICS.rt_updates: (2, None),
        TOPICS.entry("a"): (1 + 2, "router a"),
        TOPICS.link("a"): (2, "router a"),
        TOPICS.broker("a"): (1, "router a"),
        TOPICS.link("b"): (0, "router a"),
        TOPICS.link("c"): (4, "bridge main-far"),
        TOPICS.broker("c"): (40, "bridge main-far"),
    }
    router, bridge, optimizer = found()["jobs"]
    assert (router["lag"], optimizer["lag"], bridge["lag"]) == (3 + 2 + 1, 2, 53)


def test_of_two_jobs_that_read_a_topic_the_slower_counts_if_it_runs() -> None:
    """Two jobs read all control; one that was stopped for good says nothing of what is read now."""
    slow = {**ROUTER, "brokers": ["b"], "positions": {TOPICS.control: {"0": 2}}}
    told = found({"router/a": ROUTER, "router/b": slow})["inputs"]
    assert next(each["lag"] for each in told if each["topic"] == TOPICS.control) == 3
    told = found({"router/a": ROUTER, "router/b": {**slow, "state": "stopped"}})["inputs"]
    assert next(each["lag"] for each in told if each["topic"] == TOPICS.control) == 0


def test_brokers_have_their_topology_and_state() -> None:
    """Those of the topology and those that are served; who joins, leaves, or is served elsewhere."""
    assert [tuple(each.values()) for each in found()["brokers"]] == [
        ("a", "main", "a", "running", 2, False, False, 0, None),
        ("b", "main", "a", "running", 1, True, False, 0, None),
        ("c", "main", None, None, None, False, True, 0, None),
    ]
    assert [each["broker"] for each in found(known=Known([]))["brokers"]] == ["a", "b"]


def test_brokers_have_those_who_spare_them_work() -> None:
    """Volunteers and what waits for them, or the set that is given out; no column where nobody may."""
    rounds = {"placed": 1_000, "waiting": 12, "volunteers": 3}
    told = found({"router/a": {**ROUTER, "offloading": {"a": rounds, "b": {**rounds, "waiting": 0}}}})
    assert [each["offloading"] for each in told["brokers"]] == [rounds, {**rounds, "waiting": 0}, None]
    assert "3 volunteers, 12 filters wait  " in describe(told)
    assert describe(told).count("3 volunteers") == 2 and describe(told).count("filters wait") == 1
    fixed = found({"router/a": {**ROUTER, "offloading": {"a": {"placed": 5, "fixed": 4, "left": 3}}}})
    assert "claims about 4 filters, of which 3 stand" in describe(fixed)
    assert "SPARED" not in describe(found())


def test_brokers_have_their_advertisements() -> None:
    """How many stand at each; the text has them if there are any."""
    advertised = Advertised(Identity("b", "shop", "one"), Number(1, 1), "sql", "TRUE")
    known = replace(KNOWN, advertisements=[advertised])
    brokers = found(known=known)["brokers"]
    assert [each["advertisements"] for each in brokers] == [0, 1, 0]
    assert "BROKER  CLUSTER  TOPOLOGY  ADVERTISED  STATE" in describe(found(known=known))


def test_links_have_what_waits_at_either_end() -> None:
    """Letters and copies together."""
    assert found()["links"] == [
        {"between": ["a", "b"], "cost": 3, "waiting": {"a": 3, "b": 0}},
        {"between": ["b", "c"], "cost": 1, "waiting": {"b": 0, "c": 44}},
    ]


def test_the_text_tells_all() -> None:
    """Whatever the JSON has for people to know."""
    text = describe(found())
    for part in (
        "router of brokers a, b: running (told 1 s ago), 12 batches, the last in 120 ms, lag 6, 0 restarts",
        "its brokers have topology 2",
        "12.5 events/s accepted and 30.0 deliveries/s over 10s; 2.0 events/s",
        "1,234 events accepted",
        "7 of content, 8 afresh, 9 exact checks; 10 walks in older versions",
        "part 0 of the tree at 1700/3: 40 nodes, 2 filters beside it\n",
        "optimizer branchline: running",
        "4 updates of the tree, 1 snapshots",
        "part 0 of the tree at 1700/4: 41 nodes, 1 filters beside it, difference 0.25",
        "bridge main-far, for broker c: running (told 0 s ago), lag 53, 1 restarts",
        "b       main     1         running, joining",
        "c       main               not served here, leaving",
        "a - b  3     3 for a, 0 for b",
        "25 of them are not in force yet:",
        "a/alice/one waits for b, c and 5 more",
        "and 24 more",
        "alice       1              20",
        "1 subscriptions, 5 dead letters",
    ):
        assert part in text, f"{part!r} is not in\n{text}"


@pytest.mark.parametrize("what", ["status", "job"])
def test_the_json_is_documented(what: str) -> None:
    """The tables in docs/commands.md have exactly the fields that are there."""
    page = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
    head = {"status": "| in `status` |", "job": "| in a job |"}[what]
    rows = page.partition(head)[2].partition("\n\n")[0].splitlines()[2:]
    listed = {name.strip(" `") for row in rows for name in row.split("|")[1].split(",")}
    assert listed == (found() if what == "status" else found()["jobs"][0]).keys()


def test_a_job_of_another_version_that_tells_little_is_shown() -> None:
    """Nothing is taken for granted of what jobs tell; one that says nothing any more is silent."""
    for said in ({}, {"job": "router", "state": "running", "positions": None}, {"job": "later"}):
        told = found({"x": {"at_ms": (NOW_S - SILENT_AFTER_S - 1) * 1000, **said}})
        assert told["jobs"][0]["running"] is False
        assert told["jobs"][0]["state"] in ("silent", "unknown")
        assert describe(told)


def test_nothing_at_all_says_how_to_start() -> None:
    """No topics, no jobs."""
    told = {"bootstrap": "x"} | assemble(TOPICS, {}, {}, Known([]), NOW_S)
    assert "branchline up" in describe(told)
