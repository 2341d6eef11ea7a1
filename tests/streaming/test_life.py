"""The life of subscriptions from the command to Kafka and back: limits, import, export, the end of all."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession
from routers import Site, running

from branchline.kafka.asking import ask
from branchline.kafka.client import Subscriber
from branchline.kafka.cluster import Cluster
from branchline.ops import importing, subscribing, subscriptions
from branchline.ops.cli import main
from branchline.routing.codes import Code
from branchline.routing.control import Operation, Request, Status

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

LINES: list[dict[str, Any]] = [
    {"subscriber": "ann", "id": "sql", "filter": "to = 'Málaga' AND price < 100"},
    {
        "subscriber": "ann",
        "id": "events",
        "filter": '{"exact": {"type": "flight"}}',
        "spelling": "cloudevents",
    },
    {
        "subscriber": "ann",
        "id": "words",
        "filter": "LENGTH(to) < 10",
        "spelling": "cesql",
        "lease_ms": 3_600_000,
    },
    {"subscriber": "bob", "filter": '{"price": [{"numeric": ["<", 7]}]}', "home": "main"},
]
FILE = "\n".join(map(json.dumps, LINES))


@contextmanager
def commands(site: Site) -> Iterator[Any]:
    """The command against a site: exit code, and what it says in JSON."""

    def run(*arguments: str, input: str | bytes | None = None) -> tuple[int, list[dict[str, Any]]]:
        line = [*arguments, "--namespace", site.namespace, "--json"]
        result = CliRunner().invoke(main, line, input=input, catch_exceptions=False)
        return result.exit_code, [json.loads(line) for line in result.stdout.splitlines()]

    yield run


def test_subscriptions_are_imported_limited_shown_exported_and_ended(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what was exported, imported into an empty namespace, stands there alike."""
    for module in (importing, subscribing, subscriptions):
        monkeypatch.setattr(module, "find_cluster", lambda *_: cluster)
    site = Site(spark, cluster, namespace, tmp_path / "first", max_subscriptions=3)
    with running(site), commands(site) as run:
        # The first batch of all may be the first that this Java ever ran.
        late = ("--timeout", "180")
        assert run("subscriptions", "import", "-", *late, input=FILE) == (0, [counts(new=4)])
        assert run("subscriptions", "import", "-", input=FILE) == (0, [counts(unchanged=4)])
        code, (refused,) = run("subscribe", "ann", "TRUE", "--id", "fourth")
        assert (code, refused["code"]) == (5, Code.SUBSCRIPTIONS_TOO_MANY)
        assert "has 3 subscriptions; the limit is 3" in refused["reason"]
        changed = FILE.replace("price < 100", "price < 90")
        assert run("subscriptions", "import", "-", input=changed) == (0, [counts(replaced=1, unchanged=3)])
        code, (shown,) = run("subscriptions", "show", "ann", "sql")
        assert (shown["filter"], shown["home"]) == ("to = 'Málaga' AND price < 90", "main")
        _, exported = run("subscriptions", "export")
        assert [each["id"] for each in exported] == ["events", "sql", "words", "default"]
        again = ended_by("ann", "once")
        assert again(site).note == "3 subscriptions ended"
        assert [each["subscriber"] for each in run("subscriptions")[1]] == ["bob"]
        site.subscribe("ann", "TRUE")
        assert again(site).note == "3 subscriptions ended", "a repeat is answered, and ends nothing"
        assert len(run("subscriptions")[1]) == 2
        code, (said,) = run("unsubscribe", "ann", "--all")
        assert (code, said["status"], said["note"]) == (0, "ended", "1 subscription ended")
        last = Subscriber(cluster, "ann", namespace=namespace).unsubscribe_all()
        assert last is not None and last.note == "0 subscriptions ended"
        assert run("unsubscribe", "nobody", "--all")[1][0]["code"] == Code.SUBSCRIPTION_UNKNOWN
    other = Site(spark, cluster, f"{namespace}b", tmp_path / "second")
    with running(other), commands(other) as run:
        lines = "\n".join(map(json.dumps, exported))
        assert run("subscriptions", "import", "-", *late, input=lines) == (0, [counts(new=4)])
        assert run("subscriptions", "export")[1] == exported


def counts(**some: int) -> dict[str, int]:
    return {"new": 0, "replaced": 0, "unchanged": 0, "refused": 0, **some}


def ended_by(subscriber: str, request: str) -> Any:
    """The same request for the end of all, as often as one likes."""
    asked = Request(Operation.UNSUBSCRIBE, subscriber, "", request=request, all=True)
    return lambda site: ask(site.cluster, site.topics, [asked], Status.ENDED, 60)[0]
