"""From rows to ranks: each value lies where its position does."""

import json
from typing import Any

import numpy as np
import pytest
from amounts import often
from hypothesis import given
from hypothesis import strategies as st
from indexed import NUMBERS, some_events, some_filters

from branchline.routing.compiled.bounds import ranked
from branchline.routing.compiled.gathering import gathered
from branchline.routing.compiled.literals import LATE, read_literal
from branchline.routing.compiled.memory import address
from branchline.routing.compiled.ordering import ordered
from branchline.routing.compiled.paths import Paths
from branchline.routing.compiled.ranking import rank
from branchline.routing.compiled.reading import rows_of
from branchline.routing.dimensions import Axis
from branchline.routing.event import Event
from branchline.routing.filters import Contains, Filter, Range
from branchline.routing.intervals import HIGHEST, Interval, before, text_point
from branchline.routing.values import JsonValue

A = ("a",)


@given(some_filters, some_events)
def test_a_constraint_holds_where_its_ranks_say(
    filters: list[Filter], events: list[dict[str, JsonValue]]
) -> None:
    """Of each row and each constraint: the rank lies in the range if and only if the position does."""
    paths = Paths()
    found = ranked(gathered(filters), paths)
    cells = rank(found.bounds, rows_of(paths, events).scanned)
    constraints = [constraint for each in filters for constraint in each]
    for row, attributes in enumerate(events):
        event, start, end = Event(attributes), cells.first[row], cells.first[row + 1]
        dimensions = cells.dimension[start:end].tolist()
        assert len(set(dimensions)) == len(dimensions)
        held = dict(zip(dimensions, cells.rank[start:end].tolist(), strict=True))
        words = cells.word[cells.word_first[row] : cells.word_first[row + 1]].tolist()
        assert len(set(words)) == len(words)
        held |= {found.bounds.dimensions + word: 1 for word in words}
        for place, constraint in enumerate(constraints):
            slot = int(found.slot[place])
            blank = 1 if constraint.axis is Axis.PRESENCE else -1
            is_held = found.low[place] <= held.get(slot, blank) <= found.high[place]
            assert is_held == event.may_match(((constraint,),)), constraint


def read(literal: str) -> tuple[int, int]:
    text = np.frombuffer(literal.encode(), np.uint8)
    return read_literal(address(text), text.size)


def check_literal(literal: str) -> bool:
    """Whether the literal is read at once; then it is what Python reads."""
    number = int(literal) if literal.removeprefix("-").isdigit() else float(literal) + 0.0
    found, differs = read(literal)
    if found == LATE:
        return False
    near = float(number)
    assert found == ordered(np.array([near + 0.0]))[0]
    assert differs == (number > near) - (number < near)
    return True


doubles = st.floats(allow_nan=False, allow_infinity=False)


@often
@given(st.sampled_from(NUMBERS) | doubles | st.integers() | st.integers(-(2**63), 2**63))
def test_literals_that_are_read_are_read_exactly(number: int | float) -> None:
    """Numbers read in a kernel are what Python reads; others are late, and few are."""
    is_read = check_literal(json.dumps(number))
    near = abs(number)
    assert is_read or not 1e-280 < near < 2**62 or number == 0
    check_literal(f"{number:.3e}" if isinstance(number, float) else f"{number}.0")


@often
@given(st.integers(0, 10**19), st.integers(-330, 310))
def test_mantissas_and_powers_of_ten(mantissa: int, power: int) -> None:
    """Whatever their product is nearest to."""
    if float(f"{mantissa}e{power}") < float("inf"):
        check_literal(f"{mantissa}e{power}")


@often
@given(st.integers(2**52, 2**53 - 1), st.integers(0, 2))
def test_half_way_between_two_doubles(bits: int, places: int) -> None:
    """The even one is nearest."""
    digits = str((2 * bits + 1) * 5**places)
    check_literal(f"{digits[:-places]}.{digits[-places:]}" if places else f"{digits}.0")


@pytest.mark.parametrize(
    ("literal", "is_late"),
    [
        ("0", False),
        ("-0", False),
        ("-0.0", False),
        ("0e5", False),
        ("1E+2", False),
        ("12345678.25", False),
        ("9007199254740993", False),
        ("1700000000123456789", False),
        ("0.30000000000000004", False),
        ("0.000000000000000000001", False),
        ("1e22", False),
        ("1e280", False),
        ("1e300", True),
        ("12345678901234567890", True),
        ("0e99999", True),
        ("5e-324", True),
    ],
)
def test_which_literals_are_late(literal: str, is_late: bool) -> None:
    """Those of many digits, and those that are near the ends of what doubles can be."""
    assert check_literal(literal) != is_late


def counted(constraint: Any, value: JsonValue) -> int:
    paths = Paths()
    found = ranked(gathered([(constraint,)]), paths)
    return rank(found.bounds, rows_of(paths, [{"a": value}]).scanned).late


@pytest.mark.parametrize(
    ("constraint", "value", "late"),
    [
        (Range(A, Axis.NUMBER, Interval(before(1), HIGHEST)), 5, 0),
        (Range(A, Axis.NUMBER, Interval(before(1), HIGHEST)), 10**30, 1),
        (Range(A, Axis.FOLDED, text_point("ab")), "AB", 0),
        (Range(A, Axis.FOLDED, text_point("ab")), "É", 1),
        (Range(A, Axis.FOLDED, text_point("ab")), "xyzÉ", 0),
        (Range(A, Axis.REVERSED, text_point("é")), "é𝄞", 0),
        (Contains(A, Axis.FOLDED, "é"), "É", 1),
        (Contains(A, Axis.TEXT, "é"), "É", 0),
    ],
)
def test_what_is_late_is_counted(constraint: Any, value: JsonValue, late: int) -> None:
    """Only what the compiled pass cannot do, and of folded texts only as far as they matter."""
    assert counted(constraint, value) == late


def test_paths_that_came_later_are_passed_over() -> None:
    """Rows may have paths that these filters do not name."""
    paths = Paths()
    found = ranked(gathered([(Range(A, Axis.NUMBER, Interval(before(1), HIGHEST)),)]), paths)
    paths.add(("b",))
    cells = rank(found.bounds, rows_of(paths, [{"b": 7, "a": 1}, {"b": 1}]).scanned)
    assert cells.first.tolist() == [0, 1, 1]


def test_many_words_find_room() -> None:
    """More words in a row than were reckoned with are found all the same."""
    paths = Paths()
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [one + other for one in letters for other in letters]
    found = ranked(gathered([(Contains(A, Axis.TEXT, word),) for word in words]), paths)
    text = "".join(one + other for one in letters for other in letters)
    cells = rank(found.bounds, rows_of(paths, [{"a": "ab"}, {"a": text}, {"a": "ba"}, {"a": text}]).scanned)
    assert np.diff(cells.word_first).tolist() == [1, 676, 1, 676]
    assert sorted(cells.word[1:677].tolist()) == list(range(676))
