"""Valid documents made bad: cut, joined, repeated, and with odd things put in."""

from hypothesis import strategies as st

from branchline.routing.limits import EVENT_MAX_DEPTH

DEEP = EVENT_MAX_DEPTH + 6
ODD = (
    *(
        b"[" * DEEP,
        b"{" * DEEP,
        b'{"a":' * DEEP,
        b"9" * 500,
        b"-9" + b"9" * 450,
        b"1e400",
        b"NaN",
        b"-Infinity",
    ),
    *(rb'"\ud800"', rb'"\udc00\ud800"', b'"\xff"', b"\xef\xbb\xbf", b"\0", b'""', b"true", b"null", b"1.0"),
    *(b'"a.b"', b'"' + b"n" * 300 + b'"', b",", b":", b"}", b"]", b'"', b"\\", b"9007199254740993", b"nan"),
    *(str((2**61 - 1) * 10**6).encode(), b"0." + b"3" * 500, b"\xed\xa0\x80", b"a" + b".a" * 300, b"\n"),
)
"""What is put in."""


@st.composite
def mutated(draw: st.DrawFn, documents: st.SearchStrategy[bytes]) -> bytes:
    """A document with something put in, taken out, repeated, cut off or appended, a few times."""
    data = draw(documents)
    for _ in range(draw(st.integers(0, 4))):
        at, end = sorted((draw(st.integers(0, len(data))), draw(st.integers(0, len(data)))))
        match draw(st.integers(0, 5)):
            case 0:
                data = data[:at] + draw(st.sampled_from(ODD)) + data[end:]
            case 1:
                data = data[:at] + draw(st.sampled_from(ODD)) + data[at:]
            case 2:
                data = data[:at] + data[end:]
            case 3:
                data = data[:end] + data[at:]
            case 4:
                data = data[:at]
            case _:
                data = data[:at] + draw(st.binary(max_size=3)) + data[at:]
    return data
