"""Moments in time as RFC 3339 writes them: `2026-11-16T12:00:00.5+01:00`.

An instant is exact: whole seconds since 1970 in UTC, and the fraction as its decimal digits without
trailing zeros, of any length. Digits compare as text just as the fractions compare as numbers, so two
instants compare as pairs do, and no float is ever in between.

The date and the offset must be there; `T`, `Z` may be small, and a blank may stand for the `T`. A leap
second, 23:59:60 in UTC at the end of a month, is the same instant as the second after it, as in POSIX.
"""

import re
from datetime import UTC, date, datetime
from typing import NamedTuple

_FORM = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)
_EPOCH = date(1970, 1, 1).toordinal()
_DAY = 86_400


class Instant(NamedTuple):
    """Seconds since 1970-01-01T00:00:00Z, and the digits of the fraction, the last one not 0."""

    seconds: int
    fraction: str

    def __str__(self) -> str:
        """In UTC, as RFC 3339 writes it."""
        whole = datetime.fromtimestamp(self.seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        # strftime does not pad years before 1000 everywhere.
        return f"{whole:0>19}{'.' if self.fraction else ''}{self.fraction}Z"


def read_instant(text: str) -> Instant | None:
    """The instant that the text names, None if it names none or one outside the years 1 to 9999."""
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = map(int, found.groups()[:6])
    fraction, sign, off_hours, off_minutes = found.groups()[6:]
    offset = 0
    if sign:
        if int(off_hours) > 23 or int(off_minutes) > 59:
            return None
        offset = (int(off_hours) * 60 + int(off_minutes)) * (-60 if sign == "-" else 60)
    if hour > 23 or minute > 59 or second > 60:
        return None
    try:
        days = date(year, month, day).toordinal() - _EPOCH
    except ValueError:
        return None
    seconds = days * _DAY + hour * 3600 + minute * 60 + second - offset
    if second == 60 and not _starts_a_month(seconds):
        return None
    if not _FIRST <= seconds <= _LAST:
        return None
    return Instant(seconds, (fraction or "").rstrip("0"))


def _starts_a_month(seconds: int) -> bool:
    days, rest = divmod(seconds, _DAY)
    return (
        rest == 0 and 1 <= days + _EPOCH <= date.max.toordinal() and date.fromordinal(days + _EPOCH).day == 1
    )


_FIRST = (1 - _EPOCH) * _DAY
_LAST = (date.max.toordinal() + 1 - _EPOCH) * _DAY - 1
