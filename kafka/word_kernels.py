"""Words that mean something in headers and CloudEvents, compiled: names, versions and content types.

A content type that is more than ASCII, or has odd characters in it, is FAILED: how much of that is space, and
what its small letters are, is for `jsontext` to say. So is a CloudEvents format that we do not read.
"""

from branchline.kafka.cloudevents import CONTENT_TYPE, MEDIA_PREFIX
from branchline.routing.compiled.memory import byte_at, part
from branchline.routing.compiled.paths import part_of
from branchline.routing.compiled.tokens import FAILED, NINE, POINT, SPACE, ZERO

UNDECLARED, JSON, OTHER, CLOUDEVENT, CLOUDEVENT_JSON = range(5)
"""What a content type declares."""

ID, SOURCE, TYPE, SPECVERSION, DATACONTENTTYPE, DATA, DATA_BASE64 = (1 << bit for bit in range(7))
"""Names that mean something in a CloudEvent."""
REQUIRED = ID | SOURCE | TYPE | SPECVERSION


Word = tuple[int, int, int, int, int]
"""A word that is compared with: its length, and its bytes by eights."""


def _word(text: str, filled: bytes = b"\0") -> Word:
    assert len(text) <= 32
    filled_up = text.encode().ljust(32, filled)
    first, second, third, fourth = (
        int.from_bytes(filled_up[at : at + 8], "little") for at in range(0, 32, 8)
    )
    return len(text), first, second, third, fourth


def _media(text: str) -> Word:
    return _word(text, b" ")


CONTENT_TYPE_NAME = _word(CONTENT_TYPE)
_ID, _SOURCE, _TYPE, _SPECVERSION, _DATACONTENTTYPE, _DATA, _DATA_BASE64 = map(
    _word, ("id", "source", "type", "specversion", "datacontenttype", "data", "data_base64")
)
_CLOUDEVENT, _CLOUDEVENT_JSON = _media(MEDIA_PREFIX), _media(f"{MEDIA_PREFIX}+json")
_APPLICATION_JSON, _TEXT_JSON, _PLUS_JSON = map(_media, ("application/json", "text/json", "+json"))
_SPACES = int.from_bytes(b" " * 8, "little")
"""Makes capitals small; it leaves what else the words for media types have, `/` and `+`, as it is."""

_TAB, _SEMICOLON = ord("\t"), ord(";")


@part
def is_word(start: int, end: int, word: Word) -> bool:
    """Whether the text is the word."""
    if end - start != word[0]:
        return False
    at = 0
    while at < word[0] and part_of(start, at, word[0]) == word[1 + (at >> 3)]:
        at += 8
    return at >= word[0]


@part
def _is_media(start: int, end: int, word: Word) -> bool:
    """Whether the text is the word, in small letters or capitals, given that it has no control characters."""
    if end - start != word[0]:
        return False
    at = 0
    while at < word[0] and part_of(start, at, word[0]) | _SPACES == word[1 + (at >> 3)]:
        at += 8
    return at >= word[0]


@part
def reserved(start: int, end: int) -> int:
    """Which of the names that mean something this is, or 0."""
    length = end - start
    if length == 2:
        return ID if is_word(start, end, _ID) else 0
    if length == 4:
        if is_word(start, end, _TYPE):
            return TYPE
        return DATA if is_word(start, end, _DATA) else 0
    if length == 6:
        return SOURCE if is_word(start, end, _SOURCE) else 0
    if length == 11:
        if is_word(start, end, _SPECVERSION):
            return SPECVERSION
        return DATA_BASE64 if is_word(start, end, _DATA_BASE64) else 0
    return DATACONTENTTYPE if is_word(start, end, _DATACONTENTTYPE) else 0


@part
def is_version(start: int, end: int) -> bool:
    """Whether the text is a `specversion` that we read: 1, a point, and one to three digits."""
    if not 3 <= end - start <= 5 or byte_at(start) != ZERO + 1 or byte_at(start + 1) != POINT:
        return False
    at = start + 2
    while at < end and ZERO <= byte_at(at) <= NINE:
        at += 1
    return at == end


@part
def declared(start: int, end: int) -> int:
    """What a content type declares."""
    cut = end
    for at in range(end - 1, start - 1, -1):
        byte = byte_at(at)
        if byte > 127 or (byte < SPACE and byte != _TAB):
            return FAILED
        if byte == _SEMICOLON:
            cut = at
    while start < cut and byte_at(start) <= SPACE:
        start += 1
    while start < cut and byte_at(cut - 1) <= SPACE:
        cut -= 1
    if start == cut:
        return UNDECLARED
    if _is_media(start, cut, _CLOUDEVENT):
        return CLOUDEVENT
    if _is_media(start, cut, _CLOUDEVENT_JSON):
        return CLOUDEVENT_JSON
    family = _CLOUDEVENT[0]
    if cut - start >= family and _is_media(start, start + family, _CLOUDEVENT):
        return FAILED
    if _is_media(start, cut, _APPLICATION_JSON) or _is_media(start, cut, _TEXT_JSON):
        return JSON
    ending = _PLUS_JSON[0]
    return JSON if cut - start >= ending and _is_media(cut - ending, cut, _PLUS_JSON) else OTHER
