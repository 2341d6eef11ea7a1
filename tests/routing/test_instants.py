"""Instants are read as RFC 3339 says, exactly, and compare as moments do."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from branchline.routing.instants import Instant, read_instant

zones = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=zones)
fractions = st.text("0123456789", max_size=12)
instants = st.builds(
    Instant, st.integers(-62135596800, 253402300799), fractions.map(lambda digits: digits.rstrip("0"))
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(moments)
@example(datetime(1970, 1, 1, tzinfo=UTC))
@example(datetime(1969, 12, 31, 23, 59, 59, 1, UTC))
def test_reads_what_datetime_writes(moment: datetime) -> None:
    """Seconds and fraction are those of Python's datetime, whatever the offset."""
    since = moment - EPOCH
    fraction = f"{since.microseconds:06}".rstrip("0")
    assert read_instant(moment.isoformat()) == Instant(since.days * 86_400 + since.seconds, fraction)


@given(moments, moments)
def test_compares_as_datetime_does(one: datetime, other: datetime) -> None:
    """Instants are ordered and equal exactly as the moments that they name."""
    read_one, read_other = read_instant(one.isoformat()), read_instant(other.isoformat())
    assert read_one is not None and read_other is not None
    assert (read_one < read_other) is (one < other)
    assert (read_one == read_other) is (one == other)


@given(fractions, fractions)
@example("0", "")
@example("1", "01")
@example("5", "50")
def test_fractions_of_any_length_compare_as_numbers(one: str, other: str) -> None:
    """Digits are never rounded: fractions compare as the decimal numbers that they are."""

    def read(digits: str) -> Instant | None:
        return read_instant(f"2026-11-16T12:00:00{'.' if digits else ''}{digits}Z")

    first, second = read(one), read(other)
    assert first is not None and second is not None
    width = max(len(one), len(other))
    assert (first < second) is (one.ljust(width, "0") < other.ljust(width, "0"))
    assert (first == second) is (one.ljust(width, "0") == other.ljust(width, "0"))


@given(instants)
@example(Instant(-62135596800, ""))
@example(Instant(253402300799, "999"))
def test_what_is_written_is_read_again(instant: Instant) -> None:
    """Every instant from the year 1 to 9999 has a text, with four digits of the year, that names it."""
    text = str(instant)
    assert read_instant(text) == instant
    assert text[4] == "-" and text.endswith("Z")


@pytest.mark.parametrize(
    ("text", "seconds", "fraction"),
    [
        ("1970-01-01T00:00:00Z", 0, ""),
        ("1970-01-01t00:00:00z", 0, ""),
        ("1970-01-01 00:00:00Z", 0, ""),
        ("1970-01-01T00:00:00+00:00", 0, ""),
        ("1970-01-01T00:00:00-00:00", 0, ""),
        ("1970-01-01T01:00:00.50+01:00", 0, "5"),
        ("1969-12-31T18:30:00-05:30", 0, ""),
        ("1969-12-31T23:59:59.9999999999999999999Z", -1, "9999999999999999999"),
        ("2024-02-29T00:00:00Z", 1709164800, ""),
        ("2000-02-29T00:00:00Z", 951782400, ""),
        ("2016-12-31T23:59:60Z", 1483228800, ""),
        ("2016-12-31T23:59:60.5Z", 1483228800, "5"),
        ("2017-01-01T00:59:60+01:00", 1483228800, ""),
        ("2016-12-31T15:59:60-08:00", 1483228800, ""),
        ("0001-01-01T00:00:00Z", -62135596800, ""),
        ("9999-12-31T23:59:59Z", 253402300799, ""),
        ("0001-01-01T00:00:00-01:00", -62135593200, ""),
    ],
)
def test_reads(text: str, seconds: int, fraction: str) -> None:
    """Small letters, a blank for the T, any offset, leap days and leap seconds are read."""
    assert read_instant(text) == Instant(seconds, fraction)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-11-16",
        "12:00:00Z",
        "2026-11-16T12:00:00",
        "2026-11-16T12:00Z",
        "2026-11-16T12:00:00.Z",
        "2026-11-16T12:00:00,5Z",
        "2026-11-16T12:00:00+01",
        "2026-11-16T12:00:00+0100",
        "2026-11-16T12:00:00+24:00",
        "2026-11-16T12:00:00+01:60",
        "2026-11-16T24:00:00Z",
        "2026-11-16T12:60:00Z",
        "2026-11-16T12:00:61Z",
        "2026-11-16T12:00:60Z",
        "2026-11-16T23:59:60Z",
        "2016-12-31T23:59:60+01:00",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2026-11-31T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "9999-12-31T23:59:60Z",
        "12026-11-16T12:00:00Z",
        "-2026-11-16T12:00:00Z",
        "26-11-16T12:00:00Z",
        "2026-1-16T12:00:00Z",
        " 2026-11-16T12:00:00Z",
        "2026-11-16T12:00:00Z\n",
        "2026-11-16T12:00:00Zx",
        "2026-11-16\n12:00:00Z",
        "\u0662026-11-16T12:00:00Z",
        "2026-11-16T12:00:00.\u0665Z",
        "2026-11-16T12:00:00\u221201:00",
    ],
)
def test_reads_nothing_else(text: str) -> None:
    """Text without a date, time or offset, with a part out of range or other digits names no instant."""
    assert read_instant(text) is None


@given(st.text(max_size=30) | st.text("0123456789-+:.TZ ", max_size=30))
def test_any_text_is_read_or_not(text: str) -> None:
    """No text makes reading fail, and what is read has a text of its own."""
    instant = read_instant(text)
    assert instant is None or read_instant(str(instant)) == instant
