"""`filter test`: a filter tried on events, read as the router reads them, with why it does not match."""

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import IO, Any

import click

from branchline.kafka.cloudevents import CONTENT_TYPE, MEDIA_PREFIX
from branchline.kafka.events import decode_event
from branchline.kafka.jsontext import read_json
from branchline.kafka.record import Headers, Place, Record
from branchline.ops.output import emit, say
from branchline.ops.settings import json_option
from branchline.ops.spelling import Spelled, printable, refuse, spelling_option
from branchline.routing.cesql.evaluate import Result
from branchline.routing.cesql.evaluate import evaluate as evaluate_cesql
from branchline.routing.cesql.tree import Node
from branchline.routing.codes import Code, Rejection
from branchline.routing.compiling import Compiled, compile_filter
from branchline.routing.evaluate import Attributes
from branchline.routing.event import Event
from branchline.routing.limits import EVENT_MAX_BYTES
from branchline.routing.spellings import cesql
from branchline.routing.spellings.errors import FilterError, clipped
from branchline.routing.spellings.sql_text import write, write_path
from branchline.routing.values import MISSING, Found
from branchline.routing.verdicts import Values, WhyNot, why_not

EXIT_BROKEN = 1
SHOWN_FAILURES = 10
SHOWN_CHARS = 200

_STRUCTURED: Headers = ((CONTENT_TYPE, f"{MEDIA_PREFIX}+json".encode()),)

_NO_FAILURE = WhyNot(())


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a filter says to one line: whether it matches and why not, or what is wrong with the line."""

    match: bool | None
    why: WhyNot = _NO_FAILURE
    error: Rejection | None = None
    direct: Result | None = None
    """What CESQL itself makes of the expression, which may be no condition."""


@click.command("test", short_help="Try a filter on events, and tell why it does not match.")
@click.argument("filter")
@click.argument("events", type=click.File("rb"), default="-", metavar="[EVENTS_FILE]")
@spelling_option
@json_option
@click.pass_context
def try_filter(
    ctx: click.Context, filter: str, events: IO[bytes], spelling: str | None, as_json: bool
) -> None:
    """Try FILTER on events, a JSON document a line, from EVENTS_FILE or standard input.

    An object with "specversion" is read as a structured CloudEvent, any other as a plain event. For an
    event that does not match, the constraints that failed are shown with the values found. Exits with 1
    if a line could not be used, whatever the others came to.

    \b
    Examples:
      branchline filter test "type = 'flight' AND price <= 800" events.jsonl
      generate-events | branchline filter test "origin = 'BCN'" --json
    """
    trial = _begin(Spelled.of(filter, spelling), as_json)
    counts: Counter[bool | None] = Counter()
    if events is sys.stdin.buffer and sys.stdin.isatty():
        say("reading events from standard input, one a line; end with Ctrl-D")
    for number, line in _lines(events):
        attributes = line if isinstance(line, Rejection) else _attributes(number, line)
        outcome = Outcome(None, error=attributes) if isinstance(attributes, Rejection) else trial(attributes)
        counts[outcome.match] += 1
        if as_json:
            emit(_fields(number, outcome, trial))
        else:
            for shown in _in_words(number, outcome):
                click.echo(printable(shown))
    say(f"{counts[True]:,} matched, {counts[False]:,} not matched, {counts[None]:,} broken")
    ctx.exit(EXIT_BROKEN if counts[None] else 0)


@dataclass(frozen=True, slots=True)
class _Trial:
    """A filter that is tried on one event after the other."""

    compiled: Compiled | Rejection
    formula: Node | None
    """The CESQL expression, where its own value is asked for."""

    def __call__(self, attributes: Attributes) -> Outcome:
        direct = None
        if self.formula is not None:
            direct = evaluate_cesql(self.formula, lambda name: attributes.get(name, MISSING))
        if isinstance(self.compiled, Rejection):
            return Outcome(False, direct=direct)
        match = self.compiled.matches(Event(attributes))
        why = why_not(self.compiled.expression, attributes) if match is False else _NO_FAILURE
        for each in (match, why):
            if isinstance(each, Rejection):
                return Outcome(None, error=each, direct=direct)
        assert isinstance(match, bool) and isinstance(why, WhyNot)
        return Outcome(match, why, direct=direct)


def _begin(filter_: Spelled, as_json: bool) -> _Trial:
    compiled = compile_filter(filter_.spelling, filter_.text)
    formula = None
    if filter_.spelling == "cesql" and as_json:
        # Any expression has a value to show, also one that is no filter.
        with suppress(FilterError):
            formula = cesql.parse(filter_.text)
    if isinstance(compiled, Rejection) and formula is None:
        refuse(filter_, compiled, as_json)
    return _Trial(compiled, formula)


def _lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes | Rejection]]:
    """The lines that are not blank, by number. Of a line that is too long, no more is held than the limit."""
    number = 0
    while line := stream.readline(EVENT_MAX_BYTES + len(b"\r\n")):
        number += 1
        document = line.rstrip(b"\r\n")
        size, end = len(line), line
        while not end.endswith(b"\n") and (more := stream.readline(EVENT_MAX_BYTES)):
            size, end = size + len(more), end[-1:] + more
        size -= len(end) - len(end.rstrip(b"\r\n"))
        if size > EVENT_MAX_BYTES:
            yield number, _too_large(size)
        elif document.strip():
            yield number, document


def _too_large(size: int) -> Rejection:
    reason = f"{size} bytes of value, more than the limit of {EVENT_MAX_BYTES}"
    return Rejection(Code.EVENT_TOO_LARGE, reason)


def _attributes(number: int, line: bytes) -> Attributes | Rejection:
    """What the router would see, had the line been published now, without a key and headers of its own."""
    document = read_json(line)
    if isinstance(document, Rejection):
        return document
    structured = isinstance(document, dict) and "specversion" in document
    place = Place("", 0, number, time.time_ns() // 1_000_000)
    event = decode_event(Record(place, None, line, _STRUCTURED if structured else ()))
    return event if isinstance(event, Rejection) else event.attributes


def _fields(number: int, outcome: Outcome, trial: _Trial) -> dict[str, Any]:
    error = outcome.error  # its column says enough: a document is one line
    fields: dict[str, Any] = {
        "line": number,
        "match": outcome.match,
        "failed": [
            {
                "constraint": write(failure.condition),
                "truth": "unknown" if failure.truth is None else "false",
                "found": _by_name(failure.found),
            }
            for failure in outcome.why.failures
        ],
        "error": None if error is None else _rejected(replace(error, line=None)),
    }
    if outcome.why.choices > 1:
        fields["closest"] = {"choices": outcome.why.choices, "chosen": _by_name(outcome.why.chosen)}
    if outcome.direct is not None:
        fields |= {"value": outcome.direct.value, "error_kind": outcome.direct.error}
    if isinstance(trial.compiled, Rejection):
        fields["refused"] = _rejected(trial.compiled)
    return fields


def _rejected(why: Rejection) -> dict[str, Any]:
    fields = {"code": why.code, "reason": why.reason, "line": why.line, "column": why.column}
    return {name: value for name, value in fields.items() if value is not None}


def _by_name(found: Values) -> dict[str, Any]:
    """Attributes and their values; one that is missing is missing here too."""
    return {write_path(path): value for path, value in found if value is not MISSING}


def _in_words(number: int, outcome: Outcome) -> Iterator[str]:
    if outcome.error is not None:
        error = outcome.error
        yield f"line {number}: broken [{error.code}]: {error.reason}" + (
            f" at column {error.column}" if error.column else ""
        )
        return
    if outcome.match:
        yield f"line {number}: match"
        return
    why = outcome.why
    chosen = f"; closest of {why.choices:,} choices: {_values(why.chosen)}" if why.choices > 1 else ""
    yield f"line {number}: no match{chosen}"
    for failure in why.failures[:SHOWN_FAILURES]:
        condition = write(failure.condition)
        if len(condition) > SHOWN_CHARS:
            condition = condition[:SHOWN_CHARS] + "…"
        yield f"  {condition}: {_values(failure.found)}" if failure.found else f"  {condition}"
    if len(why.failures) > SHOWN_FAILURES:
        yield f"  and {len(why.failures) - SHOWN_FAILURES:,} more"


def _values(found: Values) -> str:
    return ", ".join(f"{write_path(path)} is {_value(value)}" for path, value in found)


def _value(value: Found) -> str:
    return "missing" if value is MISSING else clipped(json.dumps(value, ensure_ascii=False))
