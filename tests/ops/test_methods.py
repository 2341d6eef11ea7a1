"""The methods of a namespace: what its routers are told, what they take, and what is refused."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from every_method import EVERY_METHODS

from branchline.kafka.admin import ensure_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import ConfigError
from branchline.kafka.methods import encode_methods, methods_fields, methods_from_fields, namespace_methods
from branchline.kafka.topics import POSITIONS, STATS, Topics
from branchline.ops.cli import main
from branchline.ops.methods import Chosen, agreed_methods, chosen_methods
from branchline.routing.methods.choosing import KINDS, spelled
from branchline.routing.methods.counts import COUNTS
from branchline.routing.methods.naming import Methods

DOCS = Path(__file__).parents[2] / "docs"
PREFIX, TREE, TABLE = Methods(), Methods("rematch"), Methods("rematch", "table")


def rows(page: str, first: str) -> list[list[str]]:
    """The rows of the table whose head begins with this cell."""
    text = (DOCS / page).read_text(encoding="utf-8")
    (table,) = re.findall(rf"^\| {first} \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_every_method_is_documented() -> None:
    """The table has all names of each kind in their order, with what each does and when to use it."""
    told = rows("methods.md", "kind")
    assert [row[:2] for row in told] == [[kind, name] for kind, names in KINDS.items() for name in names]
    assert all(len(row) == 4 and all(row) for row in told)


def test_the_record_is_written_as_shown() -> None:
    """The example of the namespace's methods is read, and written again as it stands."""
    text = (DOCS / "messages.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```json methods\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    shown = json.loads(example)
    methods = methods_from_fields(shown["methods"])
    assert methods is not None
    _, value = encode_methods(methods, shown["by"], shown["at_ms"])
    assert json.loads(value) == shown


@pytest.mark.parametrize("fields", [None, {}, [], "prefix", {**methods_fields(Methods()), "matching": 1}])
def test_what_is_no_record_of_methods_is_none(fields: Any) -> None:
    """Somebody else's record on the topic names no methods."""
    assert methods_from_fields(fields) is None


@pytest.mark.parametrize("methods", EVERY_METHODS, ids=spelled)
def test_which_methods_are_used_reads_back(methods: Methods) -> None:
    """From what a job tells on `stats` and a namespace has on `positions`."""
    assert methods_from_fields(json.loads(json.dumps(methods_fields(methods)))) == methods


def test_no_choice_and_no_optimisation_differ() -> None:
    """Who says nothing takes the namespace's; who says none wants none."""
    assert chosen_methods(None, None, None, None) is None
    assert chosen_methods(None, None, None, "none") == PREFIX
    assert chosen_methods("rematch", None, None, "none") == TREE
    assert chosen_methods(None, None, "covering", None) == Methods(dissemination="covering")
    covering = chosen_methods("rematch", "table", None, "covering")
    assert covering is not None and covering.optimise == ("covering",)


def test_every_count_of_a_method_is_documented() -> None:
    """The table on the page of messages has them with their words, in their order."""
    told = rows("messages.md", "count of a method")
    assert told == [[name, whose, what] for name, (whose, what) in COUNTS.items()]


@pytest.mark.parametrize("command", ["up", "router", "demo"])
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--forwarding", "flood"], "forwarding = 'flood' is not known; known are prefix, "),
        (["--matching", "guess"], "matching = 'guess' is not known; known are tree, "),
        (["--optimise", "covering,magic"], "optimise = 'magic' is not known; known are covering"),
        (["--optimise", "covering"], "prefix forwarding matches content once"),
        (["--matching", "table"], "prefix forwarding matches against the Routing Tree"),
        (["--forwarding", "rematch(3)"], "rematch takes no number"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_what_cannot_be_used_is_refused_before_anything_starts(
    command: str, arguments: list[str], why: str, tmp_path: Path
) -> None:
    """As other wrong settings are: with the reason, a hint and exit code 2."""
    result = CliRunner().invoke(main, [command, *arguments], env={"BRANCHLINE_HOME": str(tmp_path / "home")})
    assert result.exit_code == 2
    assert why in result.stderr and "docs/methods.md" in result.stderr
    assert not (tmp_path / "home").exists()


def test_the_demo_of_running_jobs_has_their_methods(tmp_path: Path) -> None:
    """Methods are for jobs that it starts itself."""
    arguments = ["demo", "--bootstrap", "127.0.0.1:9", "--forwarding", "rematch"]
    result = CliRunner().invoke(main, arguments, env={"BRANCHLINE_HOME": str(tmp_path)})
    assert result.exit_code == 2 and "starts itself" in result.stderr


# With Kafka

told: list[str] = []


def agree(
    cluster: Cluster, topics: Topics, name: str, methods: Methods | None = None, **more: bool
) -> Methods:
    told.clear()
    return agreed_methods(cluster, topics, name, Chosen(methods, **more), told.append)


def write(cluster: Cluster, topic: str, key: str, value: bytes) -> None:
    producer = cluster.producer(acks="all")
    producer.produce(topic, value, key)
    assert producer.flush(30) == 0


def say(cluster: Cluster, topics: Topics, name: str, state: str, age_s: float = 0.0) -> None:
    """What a router says on `stats`."""
    ensure_topics(cluster, {topics.stats: STATS})
    fields = {"version": 1, "job": "router", "state": state, "at_ms": int((time.time() - age_s) * 1000)}
    write(cluster, topics.stats, f"router/{name}", json.dumps(fields).encode())


@pytest.mark.kafka
def test_the_first_router_decides_and_others_follow(cluster: Cluster, namespace: str) -> None:
    """Without a choice the usual methods, or the namespace's; who runs alone may change them."""
    topics = Topics(namespace)
    assert namespace_methods(cluster, topics) is None
    assert agree(cluster, topics, "a") == PREFIX == namespace_methods(cluster, topics)
    assert agree(cluster, topics, "a", TABLE) == TABLE == namespace_methods(cluster, topics)
    assert told == ["methods: rematch+table from now on, prefix before"]
    assert agree(cluster, topics, "b") == agree(cluster, topics, "b", TABLE) == TABLE
    assert told == []


@pytest.mark.kafka
def test_a_router_with_other_methods_is_refused_while_others_run(cluster: Cluster, namespace: str) -> None:
    """Unless its user says that the others are to follow; a router is no other to itself."""
    topics = Topics(namespace)
    agree(cluster, topics, "a", TABLE)
    say(cluster, topics, "a", "running")
    assert agree(cluster, topics, "a", TREE) == TREE
    with pytest.raises(
        ConfigError, match=r"uses rematch, and this router is to use prefix .* run: a\n"
    ) as error:
        agree(cluster, topics, "b", PREFIX)
    assert "--change-methods" in error.value.hint
    assert namespace_methods(cluster, topics) == TREE
    assert agree(cluster, topics, "b") == agree(cluster, topics, "b", TREE) == TREE
    assert agree(cluster, topics, "b", PREFIX, change=True) == PREFIX == agree(cluster, topics, "a")
    for state, age_s in (("stopped", 0.0), ("running", 3_600.0)):
        say(cluster, topics, "a", state, age_s)
        assert agree(cluster, topics, "b", TABLE) == TABLE, "it runs no more"
        agree(cluster, topics, "b", PREFIX)


@pytest.mark.kafka
def test_methods_that_nobody_knows_are_refused_and_other_records_passed_over(
    cluster: Cluster, namespace: str
) -> None:
    """The namespace may have the methods of a later version; and what is no record is none."""
    topics = Topics(namespace)
    ensure_topics(cluster, {topics.positions: POSITIONS})
    write(cluster, topics.positions, "router/a", b"{}")
    write(cluster, topics.positions, "methods", encode_methods(Methods("later"), "router/a", 1)[1])
    write(cluster, topics.positions, "methods", b"no record")
    with pytest.raises(ConfigError, match="'later' is not known"):
        agree(cluster, topics, "b")
