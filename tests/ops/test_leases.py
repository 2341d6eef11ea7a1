"""How `subscribe` and `renew` ask for leases: no cluster, no Java."""

import json
from collections.abc import Sequence
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from branchline.kafka.asking import Answer
from branchline.kafka.cluster import Cluster
from branchline.ops import subscribing, subscriptions
from branchline.ops.durations import duration_ms
from branchline.routing.control import Identity, Number, Operation, Request, Status, Subscribed

HOUR_MS = 60 * 60 * 1000
STATUS = {Operation.SUBSCRIBE: Status.IN_FORCE, Operation.RENEW: Status.RENEWED}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """What is asked of a router that says yes to everything."""
    requests: list[Request] = []

    def ask(
        _: object, __: object, some: Sequence[Request], wait: object, *___: object, own: bool
    ) -> list[Answer]:
        requests.extend(some)
        answers = [Answer(STATUS[each.operation], each.subscriber, each.id, "r") for each in some]
        assert wait is None or wait is answers[0].status
        return [] if wait is None else answers

    monkeypatch.setattr(subscribing, "ask", ask)
    monkeypatch.setattr(subscribing, "find_cluster", lambda *_: Cluster("127.0.0.1:1", {}))
    return requests


def run(command: click.Command, *arguments: str) -> Result:
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.parametrize(
    ("text", "expected"),
    [("500ms", 500), ("90s", 90_000), ("30m", 1_800_000), ("1h", HOUR_MS), ("7d", 604_800_000), ("0s", 0)],
)
def test_durations_are_read(text: str, expected: int) -> None:
    """A whole number and a unit."""
    assert duration_ms(text) == expected


@pytest.mark.parametrize("text", ["", "60", "h", "1 h", "1.5h", "-1h", "1H", "1h30m", "٣h", "1" * 13 + "s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """With an error about the option, not with a guess."""
    with pytest.raises(click.BadParameter, match="no duration"):
        duration_ms(text)


def test_subscribe_asks_for_a_lease(asked: list[Request], tmp_path: Path) -> None:
    """For one, and for all lines of a file that do not say their own."""
    run(subscribing.subscribe, "alice", "TRUE", "--lease", "1h")
    run(subscribing.subscribe, "alice", "TRUE")
    file = tmp_path / "subscriptions.jsonl"
    lines = [{"subscriber": "a", "filter": "TRUE"}, {"subscriber": "b", "filter": "TRUE", "lease_ms": 5_000}]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run(subscribing.subscribe, "--file", str(file), "--lease", "90s")
    assert [request.lease_ms for request in asked] == [HOUR_MS, None, 90_000, 5_000]


def test_renew_asks_for_the_same_lease_or_another(asked: list[Request]) -> None:
    """The answer is told, and with --no-wait that it was written."""
    assert "alice/x: renewed" in run(subscribing.renew, "alice", "--id", "x").stderr
    told = json.loads(run(subscribing.renew, "alice", "--lease", "2h", "--home", "main", "--json").stdout)
    assert told == {"status": "renewed", "subscriber": "alice", "id": "default"}
    assert "not waited for" in run(subscribing.renew, "alice", "--no-wait").stderr
    assert asked == [
        Request(Operation.RENEW, "alice", "x"),
        Request(Operation.RENEW, "alice", "default", "main", lease_ms=2 * HOUR_MS),
        Request(Operation.RENEW, "alice", "default"),
    ]


def test_subscriptions_say_until_when(monkeypatch: pytest.MonkeyPatch, asked: list[Request]) -> None:
    """People read a time, machines milliseconds; without a lease there is neither."""
    number = Number(1, 1)
    found = [
        Subscribed(Identity("main", "alice", "default"), number, "sql", "a = 1", (), 0, 5, 1_700_000_000_999),
        Subscribed(Identity("main", "bob", "default"), number, "sql", "b = 1"),
    ]
    monkeypatch.setattr(subscriptions, "list_subscriptions", lambda *_: found)
    monkeypatch.setattr(subscriptions, "find_cluster", lambda *_: Cluster("127.0.0.1:1", {}))
    lines = run(subscriptions.subscriptions).stdout.splitlines()
    assert lines[1].split() == ["alice", "default", "main", "2023-11-14T22:13:20Z", "a", "=", "1"]
    assert lines[2].split()[3] == "-"
    told = [json.loads(line) for line in run(subscriptions.subscriptions, "--json").stdout.splitlines()]
    assert [each.get("until_ms") for each in told] == [1_700_000_000_999, None]
