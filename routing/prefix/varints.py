"""Numbers from 0 on as bytes: seven bits a byte, lowest first, the top bit set on all but the last."""

MAX_BITS = 70
"""Enough for 64. Without a limit, a megabyte of bytes with the top bit set would take minutes to become
one."""


def put(out: bytearray, number: int) -> None:
    """Append the number."""
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def take(data: memoryview, at: int) -> tuple[int, int]:
    """The number that begins here, and where the next thing does."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
        if shift >= MAX_BITS:
            raise ValueError("a number of more bytes than we write")
