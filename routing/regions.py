"""Where a constraint of the expression tree is true, false and unknown, as covers.

A constraint divides the values of its attribute into three regions. Nearly all of them are a few ranges.
What is neither an interval nor a word is given by a cover that holds for more, with the reason why.
"""

from itertools import chain
from typing import NamedTuple

from branchline.routing import intervals
from branchline.routing.covers import ALL, NOTHING, Cover, disjoin
from branchline.routing.dimensions import (
    REAL,
    Axis,
    addresses,
    kind_ranges,
    kinds,
    number_value,
    prefix_range,
    ranks,
)
from branchline.routing.expression import (
    Between,
    CompareFields,
    Comparison,
    Constraint,
    Every,
    Formula,
    Has,
    In,
    InBlock,
    Matches,
    OfKind,
    Path,
    Reading,
)
from branchline.routing.filters import Contains, Contradiction, Filter, Range, conjoin
from branchline.routing.instants import Instant
from branchline.routing.intervals import HIGHEST, LOWEST, Interval, after, before, text_before, text_point
from branchline.routing.patterns import ANY_ONE, Pattern, fits
from branchline.routing.values import COMPARE, SCALARS, Kind, Literal, Operator, canonical_text, is_finite


class Region(NamedTuple):
    """A cover of a set of single-valued events; `why` it holds for more than that, None if it does not."""

    cover: Cover
    why: str | None = None


EVERY_WHY = "EVERY speaks of all elements of an array"
FIELDS_WHY = "two attributes are compared with each other"
FORMULA_WHY = "CESQL's arithmetic, casts and functions are no interval"
HAS_WHY = "HAS speaks of all elements of an array"
NUMBER_WHY = "the canonical text of a number is no interval"
PATTERN_WHY = "a pattern with wildcards inside is no interval"
WORD_WHY = "what does not contain a word is no interval"

_NUMERIC = frozenset("0123456789+-.e")
"""What the canonical text of a number is made of."""

_ALL_KINDS = frozenset(Kind)
_AXES = {Reading.TEXT: (Axis.TEXT, Axis.REVERSED), Reading.FOLDED: (Axis.FOLDED, Axis.FOLDED_REVERSED)}


def where_true(constraint: Constraint, alone: bool) -> Region:
    """Where the constraint is true.

    It is `alone` if the whole filter says nothing else of the attribute, or of one that begins as it does.
    """
    match constraint:
        case Comparison(path, operator, literal):
            return _ranges(path, *comparing(operator, literal))
        case Between(path, low, high):
            axis, above = comparing(Operator.GE, low)
            _, below = comparing(Operator.LE, high)
            both = [both for one in above for other in below if (both := intervals.intersect(one, other))]
            return _ranges(path, axis, both)
        case In(path, literals):
            points: dict[Axis, list[Interval]] = {}
            for literal in literals:
                axis, found = comparing(Operator.EQ, literal)
                points.setdefault(axis, []).extend(found)
            each = [_ranges(path, axis, intervals.joined(found)) for axis, found in points.items()]
            return each[0] if len(each) == 1 else Region(disjoin(chain(*(region.cover for region in each))))
        case OfKind(path, wanted):
            return _ranges(path, Axis.PRESENCE, kind_ranges(wanted))
        case Matches(path, pattern, Reading.CANONICAL):
            return _canonical(path, pattern, wanted=True)
        case Matches(path, pattern, reading):
            return _fitting(path, pattern, *_AXES[reading])
        case InBlock(path, block):
            return _ranges(path, Axis.ADDRESS, [addresses(block)])
        case CompareFields(path, operator, other):
            return _fields(path, operator, other)
        case Has(path, literal):
            # Two elements of one array may be asked for: their ranges must not meet in one choice.
            axis, found = comparing(Operator.EQ, literal)
            return Region(_ranges(path, axis, found).cover if alone else ALL, HAS_WHY)
        case Every(single):
            # Nothing is in an empty array, so everything in it satisfies everything.
            empty = (Range(single.path, Axis.PRESENCE, kinds(Kind.MISSING, Kind.MISSING)),)
            return Region(disjoin([*where_true(single, alone).cover, empty]), EVERY_WHY)
        case Formula():
            return Region(ALL, FORMULA_WHY)


def where_false(constraint: Constraint) -> Region:
    """Where the constraint is false. The literals of a list are of one type here and below."""
    match constraint:
        case Comparison(path, operator, literal):
            return _ranges(path, *comparing(_NEGATED[operator], literal))
        case Between(path, low, high):
            axis, below = comparing(Operator.LT, low)
            _, above = comparing(Operator.GT, high)
            return _ranges(path, axis, intervals.joined([*below, *above]))
        case In(path, literals):
            axis = axis_of(literals[0])
            points = [point for literal in literals for point in comparing(Operator.EQ, literal)[1]]
            return _ranges(path, axis, _real(axis, intervals.gaps(points)))
        case OfKind(path, wanted):
            return _ranges(path, Axis.PRESENCE, kind_ranges(_ALL_KINDS - wanted))
        case Matches(path, pattern, Reading.CANONICAL):
            return _canonical(path, pattern, wanted=False)
        case Matches(path, pattern, reading):
            return _not_fitting(path, pattern, *_AXES[reading])
        case InBlock(path, block):
            outside = intervals.gaps([addresses(block)])
            return _ranges(path, Axis.ADDRESS, _real(Axis.ADDRESS, outside))
        case CompareFields(path, operator, other):
            return _fields(path, _NEGATED[operator], other)
        case Has():
            return Region(ALL, HAS_WHY)
        case Every():
            return Region(ALL, EVERY_WHY)
        case Formula():
            return Region(ALL, FORMULA_WHY)


def where_unknown(constraint: Constraint) -> Region:
    """Where the constraint is unknown: for every kind that it does not speak of."""
    match constraint:
        case Comparison(path, _, literal) | Between(path, literal) | In(path, (literal, *_)):
            return _unspoken(path, axis_of(literal))
        case OfKind():
            return Region(NOTHING)
        case Matches(path, _, Reading.CANONICAL):
            return _ranges(path, Axis.PRESENCE, kind_ranges(_ALL_KINDS - SCALARS))
        case Matches(path):
            return _unspoken(path, Axis.TEXT)
        case InBlock(path):
            return _unspoken(path, Axis.ADDRESS)
        case CompareFields():
            return Region(ALL, FIELDS_WHY)
        case Has():
            return Region(ALL, HAS_WHY)
        case Every():
            return Region(ALL, EVERY_WHY)
        case _:
            return Region(ALL, FORMULA_WHY)


_NEGATED = {
    Operator.EQ: Operator.NE,
    Operator.NE: Operator.EQ,
    Operator.LT: Operator.GE,
    Operator.GE: Operator.LT,
    Operator.GT: Operator.LE,
    Operator.LE: Operator.GT,
}


def axis_of(literal: Literal) -> Axis:
    """The axis that the literal lies on."""
    return _LITERAL_AXES[type(literal)]


_LITERAL_AXES: dict[type, Axis] = {
    bool: Axis.BOOLEAN,
    int: Axis.NUMBER,
    float: Axis.NUMBER,
    str: Axis.TEXT,
    Instant: Axis.INSTANT,
}


def comparing(operator: Operator, literal: Literal) -> tuple[Axis, list[Interval]]:
    """The axis that the literal lies on, and the ranges of it that compare so with the literal."""
    if type(literal) is bool:
        ranked = [rank for rank in (0, 1) if COMPARE[operator](rank, literal)]
        return Axis.BOOLEAN, [ranks(ranked[0], ranked[-1], 1)] if ranked else []
    if type(literal) is str:
        axis, low, high = Axis.TEXT, text_before(literal), after(literal)
    elif type(literal) is Instant:
        axis, low, high = Axis.INSTANT, before(literal), after(literal)
    else:
        value = number_value(literal)  # type: ignore[arg-type]
        axis, low, high = Axis.NUMBER, before(value), after(value)
    first = REAL if axis is Axis.INSTANT else LOWEST
    match operator:
        case Operator.EQ:
            return axis, [Interval(low, high)]
        case Operator.GE:
            return axis, [Interval(low, HIGHEST)]
        case Operator.GT:
            return axis, [Interval(high, HIGHEST)]
        case Operator.LE:
            return axis, [Interval(first, high)]
        case Operator.LT:
            return axis, [Interval(first, low)] if first < low else []
        case _:
            below = [Interval(first, low)] if first < low else []
            return axis, [*below, Interval(high, HIGHEST)]


def _real(axis: Axis, found: list[Interval]) -> list[Interval]:
    """What of the ranges are instants, or addresses: text that is neither compares with none."""
    if axis not in (Axis.INSTANT, Axis.ADDRESS):
        return found
    real = Interval(REAL, HIGHEST)
    return [both for each in found if (both := intervals.intersect(each, real))]


def _ranges(path: Path, axis: Axis, found: list[Interval]) -> Region:
    """Ranges in order that do not touch, as a cover."""
    if intervals.WHOLE in found or axis in (Axis.REVERSED, Axis.FOLDED_REVERSED):
        return Region(disjoin([_filter(Range(path, axis, interval)) for interval in found]))
    return Region(tuple((Range(path, axis, interval),) for interval in found))


def _filter(*constraints: Range | Contains) -> Filter:
    made = conjoin(constraints)
    assert not isinstance(made, Contradiction)
    return made


def _unspoken(path: Path, axis: Axis) -> Region:
    """Every value that has no position on the axis, or none that is real."""
    spoken = {Axis.BOOLEAN: Kind.BOOLEAN, Axis.NUMBER: Kind.NUMBER}.get(axis, Kind.TEXT)
    made = [(Range(path, Axis.PRESENCE, each),) for each in kind_ranges(_ALL_KINDS - {spoken})]
    if axis in (Axis.INSTANT, Axis.ADDRESS):
        made.append((Range(path, axis, Interval(LOWEST, REAL)),))
    return Region(disjoin(made))


def _fields(path: Path, operator: Operator, other: Path) -> Region:
    comparable = kinds(Kind.BOOLEAN, Kind.TEXT)
    one = Range(path, Axis.PRESENCE, comparable)
    if path == other:
        return Region(((one,),) if COMPARE[operator](0, 0) else NOTHING)
    return Region((_filter(one, Range(other, Axis.PRESENCE, comparable)),), FIELDS_WHY)


def _fitting(path: Path, pattern: Pattern, axis: Axis, backwards: Axis) -> Region:
    """Where the text, read forwards and backwards on these axes, fits the pattern."""
    pieces = pattern.pieces
    plain = not any(ANY_ONE in piece for piece in pieces)
    if plain and len(pieces) == 1:
        return _ranges(path, axis, [text_point(pieces[0])])
    if plain and len(pieces) == 2 and not (pieces[0] and pieces[1]):
        if pieces[0]:
            return _ranges(path, axis, [prefix_range(pieces[0])])
        return _ranges(path, backwards, [prefix_range(pieces[1][::-1])])
    made: list[Range | Contains] = [
        Range(path, axis, prefix_range(pattern.prefix)),
        Range(path, backwards, prefix_range(pattern.suffix[::-1])),
    ]
    made += [Contains(path, axis, word) for word in pattern.words]
    inside = pieces[1:-1]
    exact = plain and (not inside or (len(pieces) == 3 and not pieces[0] and not pieces[2]))
    exact = exact and not _may_share(pieces[0], pieces[-1])
    return Region((_filter(*made),), None if exact else PATTERN_WHY)


def _may_share(prefix: str, suffix: str) -> bool:
    """Whether a text may start and end so and yet be too short for both: `aba` for ab%ba."""
    return any(prefix.endswith(suffix[:length]) for length in range(1, min(len(prefix), len(suffix)) + 1))


def _not_fitting(path: Path, pattern: Pattern, axis: Axis, backwards: Axis) -> Region:
    pieces = pattern.pieces
    if _fitting(path, pattern, axis, backwards).why is not None:
        return Region(_ranges(path, Axis.PRESENCE, [kinds(Kind.TEXT, Kind.TEXT)]).cover, PATTERN_WHY)
    if len(pieces) == 1:
        return _ranges(path, axis, intervals.gaps([text_point(pieces[0])]))
    if len(pieces) == 3:
        return Region(_ranges(path, Axis.PRESENCE, [kinds(Kind.TEXT, Kind.TEXT)]).cover, WORD_WHY)
    starts = _ranges(path, axis, intervals.gaps([prefix_range(pieces[0])]))
    ends = _ranges(path, backwards, intervals.gaps([prefix_range(pieces[1][::-1])]))
    return Region(disjoin([*starts.cover, *ends.cover]))


def _canonical(path: Path, pattern: Pattern, wanted: bool) -> Region:
    """Where the canonical text of a Boolean, a number or text fits the pattern, or does not."""
    text = (_fitting if wanted else _not_fitting)(path, pattern, *_AXES[Reading.TEXT])
    named = [rank for rank, name in enumerate(("false", "true")) if fits(name, pattern) is wanted]
    truths = [ranks(named[0], named[-1], 1)] if named else []
    numbers = _numbers(pattern)
    if wanted and not truths and numbers == []:
        return text
    if numbers is None:
        found = _ranges(path, Axis.PRESENCE, [kinds(Kind.NUMBER, Kind.NUMBER)])
    else:
        found = _ranges(path, Axis.NUMBER, numbers if wanted else intervals.gaps(numbers))
    cover = disjoin([*text.cover, *_ranges(path, Axis.BOOLEAN, truths).cover, *found.cover])
    return Region(cover, text.why or (NUMBER_WHY if numbers is None else None))


def _numbers(pattern: Pattern) -> list[Interval] | None:
    """The numbers whose canonical text fits the pattern, None if they are no intervals."""
    pieces = pattern.pieces
    if pieces == ("", ""):
        return [intervals.WHOLE]
    if not all(_NUMERIC.issuperset(piece.replace(ANY_ONE, "")) for piece in pieces):
        return []
    if len(pieces) > 1 or ANY_ONE in pieces[0]:
        return None
    text = pieces[0]
    try:
        number = int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError:
        return []
    if not is_finite(number) or canonical_text(number) != text:
        return []
    return [intervals.point(number_value(number))]
