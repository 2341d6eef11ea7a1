"""Subscriptions as lines of files: what is exported reads back, and an import asks for what is missing."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import strategies as our
from click.testing import CliRunner, Result
from filter_texts import TEXTS
from hypothesis import given
from hypothesis import strategies as st

from branchline.kafka.asking import Answer
from branchline.kafka.cluster import Cluster
from branchline.ops import importing, subscriptions
from branchline.ops.cli import main
from branchline.ops.importing import Plan, plan, refusals
from branchline.ops.subscription_files import line_of, read_lines
from branchline.ops.subscriptions import waits_for
from branchline.routing.codes import Code
from branchline.routing.control import Identity, Number, Operation, Request, Status, Subscribed
from branchline.routing.limits import LEASE_MAX_MS, LEASE_MIN_MS
from branchline.routing.overlay.topology import founded, link
from branchline.routing.shard import EventBatch, Job, Shard

HOMES = ("dublin", "virginia")
JOB = Job(HOMES, founded(HOMES, [link(*HOMES)]))

filters = st.one_of(*(st.tuples(st.just(spelling), texts) for spelling, texts in TEXTS.items()))
requests = st.builds(
    lambda subscriber, id_, home, filter_, lease_ms: Request(
        Operation.SUBSCRIBE, subscriber, id_, home, filter_[0], filter_[1], lease_ms=lease_ms
    ),
    our.legal_names,
    our.legal_names,
    st.sampled_from(HOMES),
    filters,
    st.none() | st.integers(LEASE_MIN_MS, LEASE_MAX_MS),
)


def standing(asked: Sequence[Request]) -> list[Subscribed]:
    """What stands in a namespace that was empty before these requests."""
    shard = Shard(JOB, 0)
    shard.handle(1_000, [], asked, EventBatch())
    tables = [broker.table for broker in shard.brokers.values()]
    found = [change for table in tables for change in table.changes() if isinstance(change, Subscribed)]
    return sorted(found, key=lambda change: change.identity)


def asked_for(change: Subscribed) -> tuple[Any, ...]:
    return change.identity, change.spelling, change.filter, change.lease_ms


def exported(changes: Sequence[Subscribed]) -> bytes:
    return b"".join(line_of(change) + b"\n" for change in changes)


@given(st.lists(requests, min_size=1, max_size=4))
def test_what_is_exported_and_imported_elsewhere_is_the_same(asked: list[Request]) -> None:
    """Homes, spellings, filters in all of them, and leases; and importing it once more changes nothing."""
    there = standing(asked)
    if not there:  # a filter may be unsatisfiable
        return
    lines = read_lines("file", exported(there), None, None, None)
    assert not refusals(lines)
    planned = plan(lines, [])
    assert (len(planned.new), planned.replacing, planned.unchanged) == (len(there), [], 0)
    here = standing(planned.requests)
    assert [asked_for(change) for change in here] == [asked_for(change) for change in there]
    assert exported(here) == exported(there)
    assert plan(lines, here) == Plan([], [], len(there))


def subscribed(id_: str, filter_: str, home: str = "main", lease_ms: int | None = None) -> Subscribed:
    return Subscribed(Identity(home, "ann", id_), Number(1, 1), "sql", filter_, (), 0, lease_ms)


STANDING = [
    subscribed("same", "x = 1"),
    subscribed("other", "x = 1"),
    subscribed("lease", "x = 1", lease_ms=5_000),
]


def file_of(*lines: dict[str, Any]) -> bytes:
    return "".join(json.dumps({"subscriber": "ann", **line}) + "\n" for line in lines).encode()


@pytest.mark.parametrize("home", [None, "main"])
def test_only_what_differs_is_asked_for(home: str | None) -> None:
    """Another filter, spelling or lease replaces; another home is another subscription."""
    content = file_of(
        {"id": "same", "filter": "x = 1"},
        {"id": "other", "filter": "x = 2"},
        {"id": "lease", "filter": "x = 1", "lease_ms": 6_000},
        {"id": "new", "filter": "x = 1"},
    )
    planned = plan(read_lines("file", content, home, None, None), STANDING)
    assert [request.id for request in planned.new] == ["new"]
    assert [request.id for request in planned.replacing] == ["other", "lease"]
    assert planned.unchanged == 1
    elsewhere = plan(read_lines("file", content, "second", None, None), STANDING)
    assert len(elsewhere.new) == 4


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """What is asked of a router that refuses the id `no`, where STANDING stands."""
    made: list[Request] = []

    def ask(_: object, __: object, some: Sequence[Request], *___: object) -> list[Answer]:
        made.extend(some)
        return [
            Answer(Status.REFUSED, each.subscriber, each.id, "r", code="home-differs", reason="not here")
            if each.id == "no"
            else Answer(Status.IN_FORCE, each.subscriber, each.id, "r")
            for each in some
        ]

    for module in (importing, subscriptions):
        monkeypatch.setattr(module, "find_cluster", lambda *_: Cluster("127.0.0.1:1", {}))
        monkeypatch.setattr(module, "list_subscriptions", lambda *_: STANDING)
    monkeypatch.setattr(importing, "ask", ask)
    monkeypatch.setattr(importing, "BLOCK", 2)
    return made


def run(*arguments: str, input: bytes | None = None, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["subscriptions", *arguments], input=input, catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def told(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


CONTENT = file_of(
    {"id": "same", "filter": "x = 1"},
    {"id": "other", "filter": "x = 2"},
    {"id": "a", "filter": "x = 1"},
    {"id": "b", "filter": "x = 1"},
    {"id": "no", "filter": "x = 1"},
)


def test_an_import_says_what_became_of_each_line(asked: list[Request], tmp_path: Path) -> None:
    """New, replaced, unchanged and refused are counted; a dry run asks for nothing."""
    file = tmp_path / "subscriptions.jsonl"
    file.write_bytes(CONTENT)
    (dry,) = told(run("import", str(file), "--dry-run", "--json"))
    assert (dry["new"], dry["replaced"], dry["unchanged"], dry["refused"]) == (3, 1, 1, 0)
    assert asked == [] and "dry run" in dry["note"]
    refused, summary = told(run("import", "-", "--json", input=CONTENT, code=5))
    assert (refused["id"], refused["code"]) == ("no", "home-differs")
    assert summary == {"new": 2, "replaced": 1, "unchanged": 1, "refused": 1}
    assert [request.id for request in asked] == ["a", "b", "no", "other"]
    people = run("import", str(file), code=5).stderr
    assert "2 of 4 answered" in people and "2 new, 1 replaced, 1 unchanged, 1 refused" in people


def test_if_one_line_would_be_refused_nothing_is_asked_for(asked: list[Request]) -> None:
    """A bad filter, a lease out of bounds, a line that is there twice: all of them are named at once."""
    content = file_of(
        {"id": "a", "filter": "x = 1"},
        {"id": "b", "filter": "x = "},
        {"id": "c", "filter": "x = 1", "lease_ms": 1},
        {"id": "a", "filter": "x = 2"},
    )
    *wrong, summary = told(run("import", "-", "--json", input=content, code=5))
    assert [(each["line"].rpartition(" ")[2], each["code"]) for each in wrong] == [
        ("2", Code.FILTER_SYNTAX),
        ("3", Code.LEASE_INVALID),
        ("4", Code.CONTROL_INVALID),
    ]
    assert (summary["new"], summary["refused"]) == (0, 3) and asked == []
    assert (
        "standard input, line 2: refused [filter-syntax]" in run("import", "-", input=content, code=5).stderr
    )
    assert "line 1: not JSON" in run("import", "-", input=b"{", code=2).stderr


def test_export_writes_what_subscribe_reads(asked: list[Request]) -> None:
    """One line for each, as the file of `subscribe` has them; a subscriber's alone, if one is named."""
    lines = read_lines("file", run("export").stdout_bytes, None, None, None)
    assert [line.request.id for line in lines] == ["same", "other", "lease"]
    assert lines[2].request.lease_ms == 5_000 and lines[0].request.home == "main"
    assert run("export", "--subscriber", "bob").stdout == ""


def test_without_a_command_they_are_listed(asked: list[Request]) -> None:
    """As ever, with the options as ever; --help is the group's."""
    assert run().stdout == run("list").stdout
    assert [each["id"] for each in told(run("--subscriber", "ann", "--json"))] == ["same", "other", "lease"]
    assert "import" in run("--help").stdout


def test_show_tells_all_that_is_known(asked: list[Request], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also whom it waits for, if its home's job tells of that; without such a subscription it is refused."""
    stats: dict[str, dict[str, Any]] = {"router/main": {"job": "router", "brokers": ["main"]}}
    monkeypatch.setattr(subscriptions, "last_stats", lambda *_: stats)
    (shown,) = told(run("show", "ann", "lease", "--json"))
    assert (shown["home"], shown["filter"], shown["lease_ms"], shown["number"]) == (
        "main",
        "x = 1",
        5_000,
        [1, 1],
    )
    assert "waits_for" not in shown and "ann/lease: accepted" in run("show", "ann").stdout
    waiting = {"subscription": "main/ann/lease", "waits_for": ["second"], "more": 0}
    stats["router/main"]["pending"] = {"count": 1, "first": [waiting]}
    assert told(run("show", "ann", "lease", "--json"))[0]["waits_for"] == ["second"]
    people = run("show", "ann").stdout
    assert "ann/same: in force" in people and "waits for second" in people
    assert waits_for(stats, Identity("second", "ann", "same")) is None
    assert "subscription-unknown" in run("show", "bob", code=5).stderr
    assert "'none'" in run("show", "ann", "none", code=5).stderr
