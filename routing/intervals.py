"""The algebra of intervals on one ordered dimension: covers, overlaps, intersect, difference, order.

Theory of operation. An interval is what lies between two *cuts*, and a cut lies just before or just after
a value, or beyond all values. So open and closed ends need no cases: `x > 5` starts after 5, `x >= 5`
before it, and each operation is a comparison or two. Cuts are plain tuples that compare in this order.

The values of one dimension are of one type with one exact total order: Python compares integers with
floats without rounding, and NaN is never read. An interval is empty if it does not end after it starts;
no operation gives an empty one, it gives None or leaves it out.

Two intervals are equal if and only if they hold the same values, given that whoever makes cuts makes them
normal. For text that takes `text_before`: a text has a next one, `a` is followed by `a\\0`.
"""

from typing import Any, NamedTuple, TypeAlias

Cut: TypeAlias = tuple[Any, ...]
"""(-1,) before all values, (0, value, 0) before a value, (0, value, 1) after it, (1,) after all."""

LOWEST: Cut = (-1,)
HIGHEST: Cut = (1,)


class Interval(NamedTuple):
    """What lies between two cuts. The order of intervals is by low cut, then by high cut."""

    low: Cut
    high: Cut


WHOLE = Interval(LOWEST, HIGHEST)


def before(value: Any) -> Cut:
    return (0, value, 0)


def after(value: Any) -> Cut:
    return (0, value, 1)


def text_before(text: str) -> Cut:
    """The cut before a text. Nothing lies between `a` and `a\\0`, and nothing before the empty text."""
    if not text:
        return LOWEST
    return (0, text[:-1], 1) if text[-1] == "\0" else (0, text, 0)


def point(value: Any) -> Interval:
    return Interval((0, value, 0), (0, value, 1))


def text_point(text: str) -> Interval:
    return Interval(text_before(text), (0, text, 1))


def is_point(interval: Interval) -> bool:
    """Whether the interval holds just one value."""
    low, high = interval
    if high[-1] != 1 or len(high) != 3:
        return False
    value = high[1]
    return low == (text_before(value) if type(value) is str else (0, value, 0))


def holds(interval: Interval, value: Any) -> bool:
    """Whether the value lies in the interval."""
    return interval[0] <= (0, value, 0) and (0, value, 1) <= interval[1]


def covers(one: Interval, other: Interval) -> bool:
    """Whether every value of the other is in this one."""
    return one[0] <= other[0] and other[1] <= one[1]


def overlaps(one: Interval, other: Interval) -> bool:
    """Whether some value is in both."""
    return one[0] < other[1] and other[0] < one[1]


def intersect(one: Interval, other: Interval) -> Interval | None:
    """The values that are in both."""
    low = one[0] if one[0] >= other[0] else other[0]
    high = one[1] if one[1] <= other[1] else other[1]
    return Interval(low, high) if low < high else None


def hull(one: Interval, other: Interval) -> Interval:
    """The smallest interval that covers both."""
    return Interval(min(one[0], other[0]), max(one[1], other[1]))


def difference(one: Interval, other: Interval) -> list[Interval]:
    """The values of one that are not in the other: none, one or two intervals, in order."""
    if not overlaps(one, other):
        return [one]
    left = [Interval(one[0], other[0])] if one[0] < other[0] else []
    return [*left, Interval(other[1], one[1])] if other[1] < one[1] else left


def joined(intervals: list[Interval]) -> list[Interval]:
    """The same values in as few intervals as can be, in order."""
    made: list[Interval] = []
    for interval in sorted(intervals):
        if made and interval[0] <= made[-1][1]:
            if interval[1] > made[-1][1]:
                made[-1] = Interval(made[-1][0], interval[1])
        else:
            made.append(interval)
    return made


def gaps(intervals: list[Interval]) -> list[Interval]:
    """Every value that is in none of the intervals, in as few intervals as can be."""
    made = []
    low = LOWEST
    for interval in joined(intervals):
        if low < interval[0]:
            made.append(Interval(low, interval[0]))
        low = interval[1]
    return [*made, Interval(low, HIGHEST)] if low < HIGHEST else made
