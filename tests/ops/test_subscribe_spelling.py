"""How `subscribe` learns a filter's spelling and tells it: no cluster, no Java."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from filter_runs import IN_ALL_SPELLINGS, REFUSED, answer, run

from branchline.kafka.asking import Answer
from branchline.kafka.cluster import Cluster
from branchline.ops import subscribing
from branchline.ops.spelling import IN_WORDS
from branchline.routing.codes import Rejection
from branchline.routing.compiling import compile_filter
from branchline.routing.control import Request, Status


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """What `subscribe` asks of a router that reads filters and nothing else."""
    requests: list[Request] = []

    def ask(
        _: object, __: object, some: Sequence[Request], wait: object, *___: object, own: bool
    ) -> list[Answer]:
        requests.extend(some)
        return [] if wait is None else [_answer(request) for request in some]

    monkeypatch.setattr(subscribing, "ask", ask)
    monkeypatch.setattr(subscribing, "find_cluster", lambda *_: Cluster("127.0.0.1:1", {}))
    return requests


def _answer(request: Request) -> Answer:
    found = compile_filter(request.spelling, request.filter)
    if isinstance(found, Rejection):
        place = (found.code, found.reason, found.line, found.column)
        return Answer(Status.REFUSED, request.subscriber, request.id, "r", None, *place)
    note = "it matches every event" if found.always else None
    return Answer(Status.IN_FORCE, request.subscriber, request.id, "r", note=note)


@pytest.mark.parametrize(("spelling", "text"), IN_ALL_SPELLINGS.items())
def test_subscribe_says_which_spelling_it_guessed(asked: list[Request], spelling: str, text: str) -> None:
    """It is in the control message and in the JSON answer; people are told if it is not SQL and not given."""
    note = f"read as {IN_WORDS[spelling]}; --spelling says otherwise\n"
    assert (note in run("subscribe", "alice", text).stderr) is (spelling != "sql")
    assert note not in run("subscribe", "alice", text, "--spelling", spelling).stderr
    assert answer("subscribe", "alice", text)["spelling"] == spelling
    assert answer("subscribe", "alice", text, "--wait", "none")["spellings"] == [spelling]
    assert {request.spelling for request in asked} == {spelling}


def test_subscribe_leaves_an_unknown_spelling_to_the_router(asked: list[Request]) -> None:
    """The router may know more spellings than this command; if not, it refuses."""
    result = run("subscribe", "alice", "TRUE", "--spelling", "klingon")
    assert result.exit_code == 5 and "[spelling-unknown]" in result.stderr
    assert asked[0].spelling == "klingon"


def test_lines_of_a_file_may_say_their_spelling(asked: list[Request], tmp_path: Path) -> None:
    """A line's own spelling wins, then --spelling, then the guess; guesses that are not SQL are counted."""
    lines = [
        {"subscriber": "a", "id": spelling, "filter": text} for spelling, text in IN_ALL_SPELLINGS.items()
    ]
    said = {"subscriber": "a", "id": "said", "filter": "TRUE", "spelling": "cesql"}
    file = tmp_path / "subscriptions.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in [*lines, said]))
    result = run("subscribe", "--file", str(file))
    assert [request.spelling for request in asked] == [*IN_ALL_SPELLINGS, "cesql"]
    told = "filters read 1 as CESQL, 1 as a CloudEvents filter, 1 as an EventBridge pattern; --spelling"
    assert told in result.stderr and result.exit_code == 0
    asked.clear()
    assert run("subscribe", "--file", str(file), "--spelling", "sql").exit_code == 5
    assert [request.spelling for request in asked] == ["sql"] * 4 + ["cesql"]


def test_a_refused_subscription_shows_its_line_of_a_filter_of_several(asked: list[Request]) -> None:
    """The caret stands under the place in the right line, for JSON and for SQL."""
    for text, _, line, column, _ in REFUSED[:3]:
        result = run("subscribe", "alice", text)
        assert result.exit_code == 5
        lines = result.stderr.splitlines()
        at = next(place for place, each in enumerate(lines) if "refused [" in each)
        assert f"(line {line}, column {column})" in lines[at]
        assert lines[at + 1] == f"  {text.splitlines()[line - 1]}"
        assert lines[at + 2] == " " * (column + 1) + "^"


def test_what_the_router_notes_is_told(asked: list[Request]) -> None:
    """A note that comes with the answer is shown, and stands in the JSON."""
    assert "note: it matches every event\n" in run("subscribe", "alice", "TRUE").stderr
    assert answer("subscribe", "alice", "TRUE")["note"] == "it matches every event"
    assert "note" not in answer("subscribe", "alice", "a = 1")
    assert len(asked) == 3


def test_an_argument_that_is_not_utf8_is_told(asked: list[Request]) -> None:
    """Bytes that are no text end the command with words, not with a stack trace."""
    result = run("subscribe", "alice", "a = '\udcff'")
    assert result.exit_code == 2 and "not UTF-8" in result.stderr and not asked
    assert run("filter", "check", "a = '\udcff'").exit_code == 5
