"""The command against a running `branchline up`, which the whole suite shares.

Most commands are run in this process, which is the same code without an interpreter's start; those that are
about signals and pipes are processes of their own.
"""

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from machines import ANSWER_DEADLINE_S, START_DEADLINE_S, STOP_DEADLINE_S, Machine, linked_home
from waiting import wait_until

from branchline.kafka.admin import ensure_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.jars import Jars
from branchline.kafka.topics import Topics
from branchline.ops.running import running_bootstrap

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


def test_a_subscriber_gets_what_matches_as_it_was_published(up: Machine) -> None:
    """Key, value and headers arrive unchanged; what does not match does not arrive."""
    [answer] = up.ask("subscribe", "anna", "price < 100")
    assert (answer["status"], answer["subscriber"], answer["id"]) == ("in-force", "anna", "default")
    event = '{"price": 42, "to": "Málaga"}'
    [said] = up.ask("publish", '{"price": 420}', event, "--key", "BCN", "--header", "source=test")
    assert said == {"published": 2, "broker": "main"}
    [delivered] = up.ask("consume", "anna", "--from-beginning", "--count", "1", "--timeout", "60")
    assert (delivered["key"], delivered["value"]) == ("BCN", event)
    assert delivered["headers"] == [["source", {"value": "test"}]]
    assert delivered["id"].endswith(":anna")


def test_events_come_from_files_and_from_standard_input(up: Machine, tmp_path: Path) -> None:
    """Each line is an event, whatever ends it; empty lines are none. Without --json, values are printed."""
    up.ask("subscribe", "lines", "line > 0")
    file = tmp_path / "events.jsonl"
    file.write_bytes(b'{"line": 1}\r\n\n{"line": 2}')
    assert up.ask("publish", "--file", str(file), "--key", "k")[0]["published"] == 2
    assert up.ask("publish", "--key", "k", input='{"line": 3}\n')[0]["published"] == 1
    assert up.ask("publish", "--key", "k", "--file", "-", input='{"line": 4}\n')[0]["published"] == 1
    result = up.run("consume", "lines", "--from-beginning", "--count", "4", "--timeout", "60")
    assert result.stdout.splitlines() == [f'{{"line": {number}}}' for number in range(1, 5)]


def test_what_is_not_json_is_not_published(up: Machine, tmp_path: Path) -> None:
    """Of a file the lines before it are published, of arguments none; the error gives the place."""
    file = tmp_path / "events.jsonl"
    file.write_text('{"n": 1}\n{"n": \n{"n": 3}\n')
    result = up.run("publish", "--file", str(file))
    assert result.exit_code == 2
    assert "line 2 cannot be published: json-invalid: Expecting value at column 7" in result.stderr
    assert "the 1 before it were published" in result.stderr and "--raw" in result.stderr
    [error] = up.ask("publish", '{"n": 1}', '{"n": ', exit_code=2)
    assert "event 2" in error["message"] and "none was" in error["message"]


def test_an_event_that_kafka_does_not_take_is_named(up: Machine, tmp_path: Path) -> None:
    """A record too large for Kafka is an error about that line."""
    file = tmp_path / "large.jsonl"
    file.write_text('{"a": "' + "x" * 2_000_000 + '"}')
    result = up.run("publish", "--file", str(file), "--raw")
    assert result.exit_code in (2, 4)
    assert "too large" in result.stderr


def test_publishing_at_a_broker_that_is_not_there_fails_at_once(up: Machine) -> None:
    """The topic is looked for first: nobody waits for a time-out."""
    started = time.monotonic()
    result = up.run("publish", "{}", "--broker", "nowhere")
    assert (result.exit_code, time.monotonic() - started < 5) == (4, True)
    assert "branchline.in.nowhere" in result.stderr and "--broker" in result.stderr


def test_a_filter_that_cannot_be_read_is_refused_with_its_place(up: Machine) -> None:
    """Exit code 5, line and column, and a caret below the place; in JSON the same as fields."""
    result = up.run("subscribe", "alice", "price <\n  AND TRUE", "--id", "broken")
    assert result.exit_code == 5
    first, text, caret = result.stderr.splitlines()
    assert first.startswith("alice/broken: refused [filter-syntax]: ") and "(line 2, column 3)" in first
    assert text[caret.index("^") :].startswith("AND")
    [answer] = up.ask("subscribe", "alice", "price <\n  AND TRUE", exit_code=5)
    assert (answer["code"], answer["line"], answer["column"]) == ("filter-syntax", 2, 3)


SPELLED = {
    "sql": "kind = 'spelled' AND items.qty > 5 AND NOT items.sku STARTS WITH 'x'",
    "cloudevents": '{"all": [{"exact": {"kind": "spelled"}}, {"not": {"prefix": {"to": "B"}}}]}',
    "cesql": "kind = 'spelled' AND LENGTH(to) = 6 XOR FALSE",
    "eventbridge": '{"kind": ["spelled"], "items": {"sku": [{"anything-but": {"prefix": "x"}}]}}',
}
SPELLED_EVENTS = (
    {"kind": "spelled", "n": 0, "to": "Madrid", "items": [{"sku": "x1", "qty": 9}, {"sku": "a", "qty": 1}]},
    {"kind": "spelled", "n": 1, "to": "Bern", "items": [{"sku": "a", "qty": 9}]},
    {"kind": "spelled", "n": 2, "to": "Lisboa"},
    {"kind": "other", "n": 3, "to": "Madrid", "items": [{"sku": "a", "qty": 9}]},
)
SPELLED_DELIVERIES = {"sql": [1], "cloudevents": [0, 2], "cesql": [0, 2], "eventbridge": [0, 1]}


def test_a_filter_may_be_written_in_any_spelling(up: Machine) -> None:
    """From the command to the bytes on the subscriber's topic, the spelling guessed where it can be."""
    for spelling, text in SPELLED.items():
        options = ("--spelling", "cesql") if spelling == "cesql" else ()
        [answer] = up.ask("subscribe", f"in-{spelling}", text, *options)
        assert (answer["status"], answer["spelling"]) == ("in-force", spelling)
    up.ask("publish", *map(json.dumps, SPELLED_EVENTS), "--key", "k")
    for spelling, expected in SPELLED_DELIVERIES.items():
        count = str(len(expected))
        got = up.ask("consume", f"in-{spelling}", "--from-beginning", "--count", count, "--timeout", "60")
        assert [json.loads(each["value"])["n"] for each in got] == expected


def test_a_filter_that_says_nothing_or_too_much_is_told(up: Machine) -> None:
    """One that no event can match is refused with what excludes what; one that matches all is accepted."""
    result = up.run("subscribe", "told", "price > 5 AND price < 3", "--id", "never")
    assert result.exit_code == 5
    assert "[filter-unsatisfiable]" in result.stderr and "exclude each other" in result.stderr
    [answer] = up.ask("subscribe", "told", "price IS NULL OR price IS NOT NULL", "--id", "all")
    assert (answer["status"], answer["note"]) == ("in-force", "this filter matches every event")


def test_many_subscriptions_come_from_a_file(up: Machine, tmp_path: Path) -> None:
    """Each line is answered in its order; a refused one is named, and the others stand."""
    file = tmp_path / "subscriptions.jsonl"
    lines = [{"subscriber": "many", "id": f"n{number}", "filter": f"n = {number}"} for number in range(20)]
    lines[7]["filter"] = "n = "
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    answers = up.ask("subscribe", "--file", str(file), exit_code=5)
    assert [answer["id"] for answer in answers] == [line["id"] for line in lines]
    assert [answer["status"] for answer in answers if answer["id"] != "n7"] == ["in-force"] * 19
    result = up.run("subscribe", "--file", str(file))
    assert "many/n7: refused" in result.stderr and "19 done, 1 refused" in result.stderr


def test_wait_says_how_far(up: Machine) -> None:
    """`accepted` returns that status, `none` returns once the request is written."""
    assert up.ask("subscribe", "waiter", "TRUE", "--wait", "accepted")[0]["status"] == "accepted"
    written = {"status": "written", "requests": 1, "spellings": ["sql"]}
    assert up.ask("subscribe", "waiter", "TRUE", "--wait", "none") == [written]


def test_an_ended_subscription_is_not_listed(up: Machine) -> None:
    """`subscriptions` shows what stands, with its topic, until `unsubscribe` has been answered."""
    up.ask("subscribe", "carol", "a = 1\nOR a = 2", "--id", "one")
    [listed] = up.ask("subscriptions", "--subscriber", "carol")
    assert (listed["id"], listed["topic"]) == ("one", "branchline.out.carol")
    assert "a = 1 OR a = 2" in up.run("subscriptions").stdout
    assert up.ask("unsubscribe", "carol", "--id", "one")[0]["status"] == "ended"
    assert up.ask("subscriptions", "--subscriber", "carol") == []
    assert "no subscriptions of carol" in up.run("subscriptions", "--subscriber", "carol").stdout


def test_ending_what_does_not_stand_is_refused(up: Machine) -> None:
    """Exit code 5 and the reason."""
    [answer] = up.ask("unsubscribe", "alice", "--id", "unheard-of", exit_code=5)
    assert answer["code"] == "subscription-unknown"


def test_without_a_router_a_request_is_written_and_the_hint_names_up(up: Machine) -> None:
    """Topics without a router: the deadline passes (6). No topics: an error at once (4)."""
    ensure_topics(Cluster(running_bootstrap(up.home) or ""), Topics("lonely").of_broker("main"))
    result = up.run("subscribe", "alice", "TRUE", "--namespace", "lonely", "--timeout", "0.5")
    assert result.exit_code == 6
    assert "is the router running?" in result.stderr and "branchline up" in result.stderr
    assert up.run("status", "--namespace", "lonely").exit_code == 1
    result = up.run("subscribe", "alice", "TRUE", "--namespace", "elsewhere")
    assert result.exit_code == 4
    assert "hint:" in result.stderr


def test_consume_ends_by_count_by_time_or_for_want_of_a_topic(up: Machine) -> None:
    """A count that is not reached in time is an error (6), time alone is not; no topic is one (4)."""
    up.ask("subscribe", "idle", "price < 0")
    result = up.run("consume", "idle", "--from-beginning", "--count", "2", "--timeout", "0.3")
    assert result.exit_code == 6
    assert "0 of 2 events" in result.stderr
    assert up.ask("consume", "idle", "--timeout", "0.3") == []
    result = up.run("consume", "nobody", "--timeout", "1")
    assert result.exit_code == 4
    assert "branchline subscribe nobody" in result.stderr


def test_a_dead_letter_is_listed_shown_and_retried(up: Machine) -> None:
    """An event that cannot be read comes as a dead letter, keeps its headers, and again after a retry."""
    before = len(up.ask("dead-letters", "list"))

    def await_letters(number: int) -> list[Any]:
        wait_until(
            lambda: len(up.ask("dead-letters", "list")) >= before + number,
            ANSWER_DEADLINE_S,
            f"{number} more dead letters",
        )
        return up.ask("dead-letters", "list")

    up.ask("publish", "broken{", "--raw", "--header", "content-type=application/json")
    letter = await_letters(1)[-1]
    assert (letter["code"], letter["owes"], letter["value"]) == ("json-invalid", "event", "broken{")
    number = str(letter["number"])
    assert up.ask("dead-letters", "show", number) == [letter]
    shown = up.run("dead-letters", "show", number).stdout
    assert "header content-type: application/json" in shown and "None" not in shown
    assert up.ask("dead-letters", "retry", number) == [{"retried": 1}]
    again = await_letters(2)[-1]
    assert again["published_at"] == letter["published_at"]
    assert "json-invalid" in up.run("dead-letters", "list", "--limit", "1").stdout
    assert up.run("dead-letters", "show", "999999").exit_code == 2
    assert up.run("dead-letters", "retry", number, "--broker", "nowhere").exit_code == 4


def test_status_tells_of_the_router_and_the_subscribers(up: Machine) -> None:
    """The running job, each input with its lag, and each subscriber with what was delivered."""
    up.ask("subscribe", "watched", "watched = 1")
    wait_until(lambda: up.run("status").exit_code == 0, ANSWER_DEADLINE_S, "the router's first words")
    [found] = up.ask("status")
    assert {(job["job"], job["broker"], job["state"]) for job in found["jobs"]} == {
        ("router", "main", "running"),
        ("optimizer", None, "running"),
    }
    assert {each["topic"] for each in found["inputs"]} >= {"branchline.in.main", "branchline.control"}
    assert "watched" in {each["subscriber"] for each in found["subscribers"]}
    assert found["bootstrap"] in up.run("status").stdout


def test_doctor_finds_nothing_wrong(up: Machine) -> None:
    """Every check of a fresh `up` is ok; a namespace without topics is a warning."""
    checks = up.ask("doctor")
    assert {check["check"]: check["state"] for check in checks} == dict.fromkeys(
        ("java", "jars", "ports", "disk", "kafka", "topics"), "ok"
    )
    warned = up.ask("doctor", "--namespace", "elsewhere")[-1]
    assert warned["state"] == "warning" and "missing: elsewhere.in.main" in warned["found"]


def test_a_second_up_is_refused_and_the_first_is_still_found(up: Machine) -> None:
    """One `up` for a home: the second ends with 3, and the first one's address stays known."""
    address = running_bootstrap(up.home)
    second = up.popen("up", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said, _ = second.communicate(timeout=START_DEADLINE_S)
    assert second.returncode == 3
    assert b"another `branchline up` is running" in said and b"Traceback" not in said
    assert running_bootstrap(up.home) == address is not None


def test_a_port_that_is_in_use_is_named(jars: Jars, tmp_path: Path) -> None:
    """`up --port` on a taken port ends with 3, at once and in words."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        process = Machine(linked_home(tmp_path / "home")).popen(
            "up", "--port", port, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        said, _ = process.communicate(timeout=START_DEADLINE_S)
    assert process.returncode == 3
    assert f"Port {port} is taken".encode() in said and b"Traceback" not in said


def test_ctrl_c_ends_consume_quietly(up: Machine) -> None:
    """An interrupted `consume` has printed what came, and exits with 130 and one word."""
    up.ask("subscribe", "reader", "reader = 1")
    up.ask("publish", '{"reader": 1}')
    process = up.popen(
        "consume", "reader", "--from-beginning", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b'{"reader": 1}\n'
    os.killpg(process.pid, signal.SIGINT)
    rest, errors = process.communicate(timeout=STOP_DEADLINE_S)
    assert (process.returncode, rest, errors) == (130, b"", b"interrupted\n")
