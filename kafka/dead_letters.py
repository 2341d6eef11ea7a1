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
    key, value, headers = record.key, record.value, bl.foreign(record.headers)
    cut: list[str] = []
    if value is not None and len(value) > EVENT_MAX_BYTES:
        cut.append(f"value {len(value)} bytes sha256 {hashlib.sha256(value).hexdigest()}")
        value = value[:EVENT_MAX_BYTES]
    if key is not None and len(key) > KEY_MAX_BYTES:
        cut.append(f"key {len(key)} bytes sha256 {hashlib.sha256(key).hexdigest()}")
        key = key[:KEY_MAX_BYTES]
    size = sum(len(name.encode(errors="surrogatepass")) + len(content or b"") for name, content in headers)
    if len(headers) > EVENT_MAX_HEADERS or size > EVENT_MAX_HEADER_BYTES:
        cut.append(f"headers {len(headers)}, {size} bytes")
        headers = ()
    added = {
        bl.CODE: rejection.code,
        bl.REASON: rejection.reason,
        bl.ORIGIN: str(origin or record.place),
        bl.OWED: owed,
    }
    if cut:
        added[bl.CUT] = "; ".join(cut)
    return key, value, headers + tuple((name, content.encode()) for name, content in added.items())


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
