"""`filter test`: events are read as the router reads them, and what fails is explained."""

import io
import itertools
import json
from typing import Any

import pytest
from filter_runs import IN_ALL_SPELLINGS, run

from branchline.ops.trying import _lines
from branchline.routing.codes import Rejection
from branchline.routing.limits import EVENT_MAX_BYTES


def outcomes(*arguments: str, stdin: str | bytes = "") -> list[Any]:
    return [
        json.loads(line)
        for line in run("filter", "test", *arguments, "--json", stdin=stdin).stdout.splitlines()
    ]


@pytest.mark.parametrize(("spelling", "text"), IN_ALL_SPELLINGS.items())
def test_events_are_tried_in_every_spelling(spelling: str, text: str) -> None:
    """Plain events and CloudEvents, guessed or given: one matches, the other does not."""
    event = {"specversion": "1.0", "id": "1", "source": "/", "type": "flight"}
    stdin = f"{json.dumps(event)}\n\n" + '{"type": "hotel"}'
    for given in ([], ["--spelling", spelling]):
        result = run("filter", "test", text, *given, stdin=stdin)
        assert result.exit_code == 0
        assert result.stdout.startswith("line 1: match\nline 3: no match\n  ")
        assert result.stderr == "1 matched, 1 not matched, 0 broken\n"


def test_events_are_read_as_the_router_reads_them() -> None:
    """CloudEvents attributes are text, the payload is `data`, and `kafka` is there and cannot be forged."""
    cloudevent = {"specversion": "1.0", "id": "1", "source": "/", "type": "t", "n": 7, "data": {"price": 5}}
    plain = {"kafka": {"timestamp": "forged"}, "n": 7}
    stdin = f"{json.dumps(cloudevent)}\n{json.dumps(plain)}\n[1]\n"
    for text, expected in {
        "n = '7' AND data.price = 5": [True, False, False],
        "kafka.timestamp > 0 AND kafka.key IS MISSING": [True, True, True],
        'EXISTS kafka.header."content-type"': [True, False, False],
    }.items():
        assert [each["match"] for each in outcomes(text, stdin=stdin)] == expected


def test_json_tells_what_failed_and_what_was_found() -> None:
    """Constraint, truth, and values by attribute; null is told from missing, and arrays by their choice."""
    stdin = '{"a": 2, "b": null}\n{"a": 1, "b": 1}\n{"a": [2, 3], "b": 1, "c": "x"}\n'
    one, two, three = outcomes("a = 1 AND b = 1 OR c = 'y'", stdin=stdin)
    assert one == {
        "line": 1,
        "match": False,
        "failed": [
            {"constraint": "a = 1", "truth": "false", "found": {"a": 2}},
            {"constraint": "b = 1", "truth": "unknown", "found": {"b": None}},
            {"constraint": "c = 'y'", "truth": "unknown", "found": {}},
        ],
        "error": None,
    }
    assert two == {"line": 2, "match": True, "failed": [], "error": None}
    assert three["closest"] == {"choices": 2, "chosen": {"a": 2}}
    assert [each["found"] for each in three["failed"]] == [{"a": 2}, {"c": "x"}]


def test_a_broken_line_stops_nothing() -> None:
    """It is told with its code and place, the others are tried, and the exit code is 1."""
    large = json.dumps({"a": "x" * EVENT_MAX_BYTES})
    fits = json.dumps({"a": 1, "b": ""}).replace('""', '"' + "x" * (EVENT_MAX_BYTES - 17) + '"')
    assert len(fits) == EVENT_MAX_BYTES
    stdin = (
        f'{{"a": \n{large}\r\n{{"specversion": "1.0"}}\n{fits}\r\n{{"a": {list(range(20_000))}}}\n{{"a": 1}}'
    )
    found = outcomes("a = 1", stdin=stdin)
    assert [each["match"] for each in found] == [None, None, None, True, None, True]
    codes = [each["error"]["code"] for each in found if each["error"]]
    assert codes == ["json-invalid", "event-too-large", "cloudevent-invalid", "json-too-many-fields"]
    assert found[0]["error"]["column"] == 7 and "line" not in found[0]["error"]
    assert str(len(large)) in found[1]["error"]["reason"]
    result = run("filter", "test", "a = 1", stdin=stdin)
    assert result.exit_code == 1
    assert "line 1: broken [json-invalid]: Expecting value at column 7\n" in result.stdout
    assert result.stderr == "2 matched, 0 not matched, 4 broken\n"


def test_events_are_tried_as_they_come() -> None:
    """A line is yielded before the next one is read, so a pipe without an end works."""

    class Endless(io.BytesIO):
        reads = 0

        def readline(self, size: int | None = -1, /) -> bytes:
            self.reads += 1
            return b'{"a": 1}\n'

    stream = Endless()
    for number, line in itertools.islice(_lines(stream), 3):
        assert line == b'{"a": 1}' and stream.reads == number


@pytest.mark.parametrize("ending", [b"", b"\n", b"\r\n"])
@pytest.mark.parametrize("beyond", [0, 1, 2, 3, EVENT_MAX_BYTES, 3 * EVENT_MAX_BYTES])
def test_the_length_of_a_line_is_its_own(beyond: int, ending: bytes) -> None:
    """What ends a line does not count; one that is too long is skipped to its end, with its true length."""
    line = b"x" * (EVENT_MAX_BYTES + beyond - 1) + b"y"
    first, *rest = _lines(io.BytesIO(line + ending + (b"{}" if ending else b"")))
    assert rest == ([(2, b"{}")] if ending else [])
    if beyond:
        assert isinstance(first[1], Rejection) and f"{len(line)} bytes" in first[1].reason
    else:
        assert first == (1, line)


def test_too_many_choices_are_a_broken_line() -> None:
    """An event that the router would refuse to match is not said to match or not to match."""
    stdin = json.dumps({name: list(range(200)) for name in "ab"})
    (found,) = outcomes("a = 1 AND b = -1", stdin=stdin)
    assert found["match"] is None and found["error"]["code"] == "too-many-choices"


def test_long_explanations_are_cut() -> None:
    """People see so many failures and so much of a value; JSON has all."""
    text = " OR ".join(f"a = '{number}'" for number in range(30))
    stdin = json.dumps({"a": "x" * 1000})
    shown = run("filter", "test", text, stdin=stdin).stdout
    assert shown.endswith("  and 20 more\n") and "x" * 100 not in shown
    (found,) = outcomes(text, stdin=stdin)
    assert len(found["failed"]) == 30 and found["failed"][0]["found"]["a"] == "x" * 1000


@pytest.mark.parametrize(
    ("text", "value", "error", "refused"),
    [
        ("ABS(-1)", 1, None, True),
        ("a = 1", True, None, False),
        ("b = 1", False, "missingAttribute", False),
        ("'x' = 1", False, "cast", True),
        ("NO_SUCH(1) = 1", False, "missingFunction", True),
        ("1 = 2", False, None, True),
        ("a / 0 = 1", False, "math", None),
    ],
)
def test_cesql_has_a_value_of_its_own(
    text: str, value: object, error: str | None, refused: bool | None
) -> None:
    """With --json any CESQL expression is evaluated directly, also one that is no filter or never true."""
    (found,) = outcomes(text, "--spelling", "cesql", stdin='{"a": 1}')
    assert type(found["value"]) is type(value)
    assert (found["value"], found["error_kind"]) == (value, error)
    assert found["match"] is (value is True and error is None)
    assert refused in (None, "refused" in found)
    plain = run("filter", "test", text, "--spelling", "cesql", stdin='{"a": 1}')
    assert plain.exit_code == (5 if "refused" in found else 0)


def test_cesql_that_cannot_be_parsed_is_refused() -> None:
    """There is nothing to evaluate."""
    result = run("filter", "test", "a = ", "--spelling", "cesql", "--json", stdin='{"a": 1}')
    assert result.exit_code == 5 and json.loads(result.stdout)["error"] == "filter-syntax"
