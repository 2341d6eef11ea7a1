"""Subscriptions as lines of a file: read for `subscribe` and `import`, written by `export`."""

from collections.abc import Iterator
from dataclasses import dataclass

from branchline.kafka.errors import ConfigError
from branchline.kafka.fields import dump
from branchline.kafka.jsontext import read_json
from branchline.kafka.messages import BadRequest, decode_request, encode_request
from branchline.ops.spelling import Spelled
from branchline.routing.codes import Rejection
from branchline.routing.control import Operation, Request, Subscribed

FILE_HINT = 'each line is like {"subscriber": "alice", "id": "cheap", "filter": "price < 100"}'


@dataclass(frozen=True, slots=True)
class Line:
    """A subscription in a file."""

    where: str
    request: Request
    guessed: Spelled | None
    """The filter, if nobody says what its spelling is."""


def read_lines(
    name: str, content: bytes, home: str | None, spelling: str | None, lease_ms: int | None
) -> list[Line]:
    """The subscriptions of a file; what a line does not say is as given here. Raises ConfigError."""
    lines = list(_lines(name, content, home, spelling, lease_ms))
    if not lines:
        raise ConfigError(f"{name} holds no subscription", hint=FILE_HINT)
    return lines


def _lines(
    name: str, content: bytes, home: str | None, spelling: str | None, lease_ms: int | None
) -> Iterator[Line]:
    # Split as bytes: text may hold other characters that Python takes for the end of a line.
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        where = f"{name}, line {number}"
        fields = read_json(line.rstrip(b"\r"))
        if isinstance(fields, Rejection):
            at = f" at column {fields.column}" if fields.column else ""
            raise ConfigError(f"{where}: not JSON: {fields.reason}{at}", hint=FILE_HINT)
        if not isinstance(fields, dict):
            raise ConfigError(f"{where}: not a JSON object", hint=FILE_HINT)
        guessed = None
        if isinstance(text := fields.get("filter"), str) and "spelling" not in fields:
            filter_ = Spelled.of(text, spelling)
            fields["spelling"] = filter_.spelling
            guessed = filter_ if filter_.guessed else None
        said = {"version": 1, "op": Operation.SUBSCRIBE, "home": home, "lease_ms": lease_ms}
        request = _decoded(dump({**said, **fields}), where)
        if request.operation is not Operation.SUBSCRIBE:
            raise ConfigError(f'{where}: "op" is not "subscribe"', hint="leave it out")
        yield Line(where, request, guessed)


def line_of(change: Subscribed) -> bytes:
    """A subscription as a line that reads back as the request for it."""
    return dump(
        {
            "subscriber": change.identity.subscriber,
            "id": change.identity.id,
            "home": change.identity.home,
            "spelling": change.spelling,
            "filter": change.filter,
            "lease_ms": change.lease_ms,
        }
    )


def checked(request: Request, where: str) -> Request:
    try:
        message = encode_request(request)
    except UnicodeEncodeError:
        raise ConfigError(
            f"{where}: an argument is not UTF-8", hint="check the terminal's encoding"
        ) from None
    return _decoded(message, where)


def _decoded(message: bytes, where: str) -> Request:
    """What the router would read, so that a slip is told at once and not from afar."""
    request = decode_request(message)
    if isinstance(request, BadRequest):
        raise ConfigError(f"{where}: {request.rejection.reason}", hint="see --help for examples")
    return request
