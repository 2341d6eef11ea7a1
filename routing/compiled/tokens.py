"""Strings, numbers and words of JSON, checked to the last byte.

A string is decoded where it stands: what an escape means is never longer than the escape, so the text moves
together and the bytes behind it are left over. The scanner reads a copy that is its own.

Places are addresses. A text ends with a byte of zero, which JSON has nowhere: nothing here needs to know
where a document ends. A place of -1 says that the bytes are no JSON, or JSON that only the reference reader
may judge: half a surrogate pair, and a number that is long or could be beyond a double's range.
"""

import numpy as np

from branchline.routing.compiled.memory import PADDING, byte_at, part, store_byte, until_special, word_at

FAILED = -1

QUOTE, BACKSLASH, SPACE = ord('"'), ord("\\"), ord(" ")
MINUS, PLUS, ZERO, NINE, POINT = ord("-"), ord("+"), ord("0"), ord("9"), ord(".")
_U, _E = ord("u"), ord("e")
_SMALL = 0x20
"""What tells a small letter from its capital, in ASCII."""

_DIGITS_MAX = 308
"""Below 10^308 nothing is beyond a double's range. A longer number is the reference reader's."""

_EXPONENT_ENOUGH = 10_000

_TRUE, _FALSE, _NULL = (int.from_bytes(word, "little") for word in (b"true", b"false", b"null"))
_FOUR, _FIVE = (1 << 32) - 1, (1 << 40) - 1

_MEANING = np.zeros(256, np.uint8)
for _escape, _means in zip(b'"\\/bfnrt', b'"\\/\b\f\n\r\t', strict=True):
    _MEANING[_escape] = _means

_HEX = np.full(256, -1, np.int32)
for _digit in b"0123456789abcdefABCDEF":
    _HEX[_digit] = int(chr(_digit), 16)


@part
def skip_space(at: int) -> int:
    """The first place that is not white space, as JSON has it."""
    byte = byte_at(at)
    while byte <= SPACE and (byte == SPACE or byte == 10 or byte == 13 or byte == 9):
        at += 1
        byte = byte_at(at)
    return at


@part
def read_string(at: int) -> tuple[int, int]:
    """Of the string whose quote is before this place: where its text ends, and where it ends itself."""
    ahead = until_special(at)
    at += ahead
    while ahead == PADDING:
        ahead = until_special(at)
        at += ahead
    if byte_at(at) == QUOTE:
        return at, at + 1
    return _decode_rest(at)


@part
def _decode_rest(at: int) -> tuple[int, int]:
    """The same from the first byte on that is no plain ASCII."""
    end = at
    while True:
        byte = byte_at(at)
        if byte == QUOTE:
            return end, at + 1
        if byte == BACKSLASH:
            end, at = _decode_escape(at + 1, end)
            if at < 0:
                return FAILED, FAILED
            continue
        length = until_special(at) if byte < 128 else character_length(at)
        if length == 0:  # a control character, or no character
            return FAILED, FAILED
        if end != at:
            for each in range(length):
                store_byte(end, each, byte_at(at + each))
        end += length
        at += length


@part
def _decode_escape(at: int, end: int) -> tuple[int, int]:
    """Write what the escape whose backslash is before this place means; where that ends, and the escape."""
    byte = byte_at(at)
    if byte != _U:
        means = _MEANING[byte]
        if means == 0:
            return FAILED, FAILED
        store_byte(end, 0, means)
        return end + 1, at + 1
    code = _four_digits(at + 1)
    at += 5
    if code < 0 or 0xDC00 <= code <= 0xDFFF:
        return FAILED, FAILED
    if 0xD800 <= code < 0xDC00:
        if byte_at(at) != BACKSLASH or byte_at(at + 1) != _U:
            return FAILED, FAILED
        low = _four_digits(at + 2)
        if low < 0xDC00 or low > 0xDFFF:
            return FAILED, FAILED
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
        at += 6
    return _encode(end, code), at


@part
def _four_digits(at: int) -> int:
    """The number that four hexadecimal digits make, or one below zero."""
    code = 0
    for each in range(4):
        digit = _HEX[byte_at(at + each)]
        if digit < 0:
            return FAILED
        code = code * 16 + digit
    return code


@part
def _encode(end: int, code: int) -> int:
    """Write a code point as UTF-8; where it ends."""
    if code < 0x80:
        store_byte(end, 0, code)
        return end + 1
    if code < 0x800:
        store_byte(end, 0, 0xC0 | code >> 6)
        store_byte(end, 1, 0x80 | code & 0x3F)
        return end + 2
    if code < 0x10000:
        store_byte(end, 0, 0xE0 | code >> 12)
        store_byte(end, 1, 0x80 | code >> 6 & 0x3F)
        store_byte(end, 2, 0x80 | code & 0x3F)
        return end + 3
    store_byte(end, 0, 0xF0 | code >> 18)
    store_byte(end, 1, 0x80 | code >> 12 & 0x3F)
    store_byte(end, 2, 0x80 | code >> 6 & 0x3F)
    store_byte(end, 3, 0x80 | code & 0x3F)
    return end + 4


@part
def character_length(at: int) -> int:
    """How many bytes the UTF-8 of a character beyond ASCII has; 0 if it is none."""
    byte, next_ = byte_at(at), byte_at(at + 1)
    if 0xC2 <= byte <= 0xDF:
        return 2 if next_ & 0xC0 == 0x80 else 0
    third = byte_at(at + 2)
    if 0xE0 <= byte <= 0xEF:
        # Neither longer than it need be, nor half a surrogate pair.
        low, high = 0xA0 if byte == 0xE0 else 0x80, 0x9F if byte == 0xED else 0xBF
        return 3 if low <= next_ <= high and third & 0xC0 == 0x80 else 0
    if 0xF0 <= byte <= 0xF4:
        low, high = 0x90 if byte == 0xF0 else 0x80, 0x8F if byte == 0xF4 else 0xBF
        fourth = byte_at(at + 3)
        return 4 if low <= next_ <= high and third & 0xC0 == 0x80 and fourth & 0xC0 == 0x80 else 0
    return 0


@part
def is_utf8(start: int, end: int) -> bool:
    """Whether the bytes are UTF-8, whatever follows them."""
    at = start
    while at < end:
        length = 1 if byte_at(at) < 128 else character_length(at)
        if length == 0:
            return False
        at += length
    return at == end


@part
def read_number(start: int) -> int:
    """Where the number that begins here ends."""
    at = start + (byte_at(start) == MINUS)
    first = byte_at(at)
    behind = _skip_digits(at)
    if behind == at or (first == ZERO and behind > at + 1):
        return FAILED
    power = behind - at
    at = behind
    if byte_at(at) == POINT:
        behind = _skip_digits(at + 1)
        if behind == at + 1:
            return FAILED
        at = behind
    if byte_at(at) | _SMALL == _E:
        sign = byte_at(at + 1)
        at += 1 + (sign in (MINUS, PLUS))
        behind = _skip_digits(at)
        if behind == at:
            return FAILED
        exponent = 0
        while at < behind:
            exponent = min(exponent * 10 + byte_at(at) - ZERO, _EXPONENT_ENOUGH)
            at += 1
        power += 0 if sign == MINUS else exponent
    return at if power <= _DIGITS_MAX and at - start <= _DIGITS_MAX else FAILED


@part
def _skip_digits(at: int) -> int:
    while ZERO <= byte_at(at) <= NINE:
        at += 1
    return at


@part
def read_word(at: int) -> int:
    """Where `true`, `false` or `null` ends, if it begins here."""
    word = word_at(at)
    if word & _FOUR == _TRUE or word & _FOUR == _NULL:
        return at + 4
    return at + 5 if word & _FIVE == _FALSE else FAILED
