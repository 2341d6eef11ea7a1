"""Dead letters: what could not be used or delivered, why, and what is still owed.

A dead letter keeps the original key, value and foreign headers, so that any Kafka client can look at it;
what we have to say stands in headers of ours.
"""

import hashlib
import re
from dataclasses import dataclass

from branchline.kafka import headers as bl
from branchline.kafka.record import Headers, Place, Record
from branchline.routing.codes import Rejection
from branchline.routing.limits import EVENT_MAX_BYTES, EVENT_MAX_HEADER_BYTES, EVENT_MAX_HEADERS
from branchline.routing.prefix.header import Header, encode
from branchline.routing.prefix.trees import UNMATCHED

OWES_NOTHING = "nothing"
OWES_EVENT = "event"
_OWES_SUBSCRIBER = "subscriber:"
_OWES_SCOPE = "scope:"
_SCOPE = re.compile(r"scope:([1-9a-f][0-9a-f]{0,4095})", re.ASCII)

KEY_MAX_BYTES = 64 * 1024
"""A key beyond this is cut in the dead letter: value, key and headers must fit one record."""

REASON_MAX_CHARS = 1_000
"""A reason beyond this is cut: it may quote what it is about, and travels in a header."""

LETTER_MIN_BYTES = 16 * 1024
"""What a topic must take for the smallest dead letter: all that we say of a record, and nothing of the
record."""

_RECORD_BYTES, _HEADER_BYTES = 150, 12
"""What Kafka adds at most to a record that is alone in its batch, and to each header."""


def owed_to(subscriber: str | None) -> str:
    """What a dead letter owes if the event is still due to one subscriber, or to everybody (None)."""
    return OWES_EVENT if subscriber is None else _OWES_SUBSCRIBER + subscriber


def owed_to_scope(scope: int) -> str:
    """What a dead letter owes if the event is still due at the homes of a scope, given as a bit set."""
    return f"{_OWES_SCOPE}{scope:x}" if scope else OWES_NOTHING


def read_scope(owed: str) -> int | None:
    """The scope that is owed the event, None if something else is owed."""
    found = _SCOPE.fullmatch(owed)
    return int(found[1], 16) if found else None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A dead letter as read back; `place` is where the original was published."""

    record: Record
    place: Place | None
    code: str
    reason: str
    owed: str
    cut: str | None

    @property
    def retryable(self) -> bool:
        """Whether there is something owed, and all of it is here."""
        owed = self.owed == OWES_EVENT or self.owed.startswith(_OWES_SUBSCRIBER)
        owed = owed or read_scope(self.owed) is not None
        return owed and self.cut is None and self.place is not None


def encode_dead_letter(
    record: Record, rejection: Rejection, owed: str, origin: Place | None = None
) -> tuple[bytes | None, bytes | None, Headers]:
    """Key, value and headers of the dead letter for a record; cut, with a digest, if it is too large."""
    added = {
        bl.CODE: rejection.code,
        bl.REASON: rejection.reason[:REASON_MAX_CHARS],
        bl.ORIGIN: str(origin or record.place),
        bl.OWED: owed,
    }
    ours = tuple((name, content.encode(errors="replace")) for name, content in added.items())
    foreign = bl.foreign(record.headers)
    return _cut(
        record.key, record.value, foreign, ours, KEY_MAX_BYTES, EVENT_MAX_BYTES, EVENT_MAX_HEADER_BYTES
    )


Letter = tuple[bytes | None, bytes | None, Headers]
"""Key, value and headers of a dead letter."""


def fit_letter(letter: Letter, room: int) -> Letter:
    """The dead letter, cut so far that it fits a topic that takes so many bytes at once.

    Headers go first, as a whole; then what is left is divided between key and value, which keep their
    beginnings. What was cut already says so already, with the sizes and digests of the original.
    """
    if letter_bytes(letter) <= room:
        return letter
    key, value, headers = letter
    ours = tuple(header for header in headers if header[0].startswith(bl.OURS))
    left = room - letter_bytes((None, None, ours)) - _CUT_ROOM
    key_room = max(min(left // 4, KEY_MAX_BYTES), 0)
    return _cut(key, value, bl.foreign(headers), ours, key_room, max(left - key_room, 0), 0)


def letter_bytes(letter: Letter) -> int:
    """How many bytes a dead letter takes in its topic, at most."""
    key, value, headers = letter
    return (
        _RECORD_BYTES
        + len(key or b"")
        + len(value or b"")
        + _header_bytes(headers)
        + len(headers) * _HEADER_BYTES
    )


_CUT_ROOM = 400
"""What it takes to say what was cut."""


def _cut(
    key: bytes | None,
    value: bytes | None,
    foreign: Headers,
    ours: Headers,
    key_room: int,
    value_room: int,
    headers_room: int,
) -> Letter:
    before = bl.text(ours, bl.CUT)
    cut = before.split("; ") if before else []
    if value is not None and len(value) > value_room:
        if not any(each.startswith("value ") for each in cut):
            cut.append(f"value {len(value)} bytes sha256 {hashlib.sha256(value).hexdigest()}")
        value = value[:value_room]
    if key is not None and len(key) > key_room:
        if not any(each.startswith("key ") for each in cut):
            cut.append(f"key {len(key)} bytes sha256 {hashlib.sha256(key).hexdigest()}")
        key = key[:key_room]
    size = _header_bytes(foreign)
    if len(foreign) > EVENT_MAX_HEADERS or size > headers_room:
        cut.append(f"headers {len(foreign)}, {size} bytes")
        foreign = ()
    said = tuple(header for header in ours if header[0] != bl.CUT)
    told = ((bl.CUT, "; ".join(cut).encode()),) if cut else ()
    return key, value, foreign + said + told


def _header_bytes(headers: Headers) -> int:
    return sum(len(name.encode(errors="surrogatepass")) + len(content or b"") for name, content in headers)


def decode_dead_letter(record: Record) -> DeadLetter:
    """What a record of the dead-letter topic says."""
    origin = bl.text(record.headers, bl.ORIGIN)
    return DeadLetter(
        Record(record.place, record.key, record.value, bl.foreign(record.headers)),
        bl.read_place(origin) if origin else None,
        bl.text(record.headers, bl.CODE) or "",
        bl.text(record.headers, bl.REASON) or "",
        bl.text(record.headers, bl.OWED) or OWES_NOTHING,
        bl.text(record.headers, bl.CUT),
    )


def retry_headers(letter: DeadLetter) -> Headers:
    """The headers with which an owed event is written to `broker.<broker>` again."""
    added: list[tuple[str, bytes | None]] = [(bl.ORIGIN, str(letter.place).encode())]
    if letter.owed.startswith(_OWES_SUBSCRIBER):
        added.append((bl.ONLY, letter.owed.removeprefix(_OWES_SUBSCRIBER).encode()))
    scope = read_scope(letter.owed)
    if scope is not None:
        # Matched by nobody and divided under no topology: whoever reads it answers for just these homes.
        added.append((bl.PREFIX, encode(Header(UNMATCHED, scope))))
    return letter.record.headers + tuple(added)
