"""The table of rights: documented as it is, no wider than it need be, and the same by any tool."""

import json
import re
import shlex
from pathlib import Path

import pytest
import strategies as our
from click.testing import CliRunner
from hypothesis import given

from branchline.kafka.access import (
    RIGHTS,
    Operation,
    Resource,
    Right,
    Role,
    check_principal,
    commands,
    own_topics,
    rights,
)
from branchline.kafka.errors import ConfigError
from branchline.kafka.reading import READER_GROUP
from branchline.kafka.topics import TOPIC_KINDS, Topics
from branchline.ops.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "access.md").read_text(encoding="utf-8")
NAMES = {"broker": "main", "subscriber": "alice", "source": "dublin", "target": "virginia"}


def row(right: Right) -> str:
    name = right.name.replace("<ns>", "acme").replace("<source>", "<from>").replace("<target>", "<to>")
    return f"| {right.role} | {right.resource} | `{name}` | {', '.join(right.operations)} | {right.why} |"


def test_the_rights_are_documented_as_they_are() -> None:
    """The page has a row for each, in their order, and no other."""
    head = "| role | resource | name | operations | to |\n|---|---|---|---|---|\n"
    _, found, after = PAGE.partition(head)
    assert found, f"docs/access.md has no table that begins so: {head}"
    wanted = "\n".join(map(row, RIGHTS))
    assert after.partition("\n\n")[0] == wanted, f"it should be:\n{wanted}"


def test_names_are_whole_or_end_in_a_dot() -> None:
    """No right reaches beyond the namespace, or from one kind of topic to another of a longer name."""
    for right in RIGHTS:
        assert right.name.startswith("<ns>.") or (right.resource, right.name) == (
            Resource.GROUP,
            READER_GROUP,
        )
        assert right.prefixed is right.name.endswith(".")
        assert right.operations and len(set(right.operations)) == len(right.operations)


def test_every_topic_is_somebodys() -> None:
    """Each kind of topic is written by some role and read by some, and nobody needs one that there is not."""
    topics = Topics("acme")
    names = {kind.name: f"acme.{re.sub('<.+>', 'alice', kind.name)}" for kind in TOPIC_KINDS}
    filled = {**NAMES, "broker": "alice", "source": "alice"}
    given = [right for role in Role for right in rights(role, topics, **filled)]
    of_topics = [right for right in given if right.resource is Resource.TOPIC]
    for name in names.values():
        may = {
            operation
            for right in of_topics
            if right.role is not Role.OPERATOR
            and (name.startswith(right.name) if right.prefixed else name == right.name)
            for operation in right.operations
        }
        if name not in ("acme.stats", "acme.dead-letters"):  # these are read by operators
            assert may >= {Operation.READ, Operation.WRITE}, name
    for right in of_topics:
        known = any(name.startswith(right.name) for name in names.values())
        assert known or right.name == "acme.markers.", right.name


@given(our.legal_names, our.legal_names)
def test_a_subscriber_has_rights_for_its_own_alone(one: str, other: str) -> None:
    """No right of one subscriber is about a topic or group of another."""
    topics = Topics("acme")
    theirs = [*own_topics(topics, other), f"acme.out.{other}.app"] if other != one else []
    for right in rights(Role.SUBSCRIBER, topics, subscriber=one):
        for name in theirs:
            assert not (name.startswith(right.name) if right.prefixed else name == right.name)


def test_the_commands_of_kafkas_tool_say_the_same() -> None:
    """Read back, they are the rights: principal, operations, resource, name and pattern."""
    given = rights(Role.ROUTER, Topics("acme"))
    for right, line in zip(given, commands(given, "User:CN=router job", "kafka:9092"), strict=True):
        parts = shlex.split(line)
        assert parts[parts.index("--allow-principal") + 1] == "User:CN=router job"
        told = [parts[at + 1] for at, part in enumerate(parts) if part == "--operation"]
        assert told == list(right.operations)
        assert parts[parts.index(f"--{right.resource}") + 1] == right.name
        assert ("prefixed" in parts) is right.name.endswith(".")


@pytest.mark.parametrize("principal", ["alice", "User:", "User:*", ":alice", "User: x", "User:a\nb", ""])
def test_a_principal_is_one_and_not_everybody(principal: str) -> None:
    """Rights that everybody has are no rights; a slip is told before anything is changed."""
    with pytest.raises(ConfigError, match="principal"):
        check_principal(principal)


def test_the_command_prints_what_would_be_given_and_changes_nothing() -> None:
    """Without a cluster: a row and a command for each right, or JSON; what is wrong has a code."""
    run = CliRunner().invoke(main, ["acl", "subscriber", "alice", "--json"])
    printed = [json.loads(line) for line in run.stdout.splitlines()]
    want = rights(Role.SUBSCRIBER, Topics(), subscriber="alice")
    assert [(each["name"], each["operations"]) for each in printed] == [
        (right.name, list(right.operations)) for right in want
    ]
    assert {each["principal"] for each in printed} == {"User:alice"}
    run = CliRunner().invoke(main, ["acl", "publisher", "shop", "--broker", "a", "--broker", "b"])
    assert run.exit_code == 0 and run.stdout.count("kafka-acls.sh") == 2 and "branchline.in.b" in run.stdout
    for wrong in (
        ["acl", "subscriber", "Alice"],
        ["acl", "router", "--principal", "router"],
        ["acl", "router", "--principal", "User:r", "--apply", "--remove"],
    ):
        assert CliRunner().invoke(main, wrong).exit_code == 2
