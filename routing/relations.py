"""How two compiled filters stand to each other: which one matches all that the other does.

What is found about covers is true of the filters as far as the covers are exact. A filter that has a
residual matches less than its cover, so it can be covered but never shown to cover, and it may overlap
another less than it seems. `certain` says whether the verdict could be different.

Disjoint means that no single-valued event matches both. An event with arrays may, each filter by another
element; so nothing may be left unsent because two filters are disjoint. Covering holds with arrays too.
"""

from enum import StrEnum
from typing import NamedTuple

from branchline.routing import filters
from branchline.routing.compiling import Compiled
from branchline.routing.covers import Cover
from branchline.routing.filters import Filter, intersect
from branchline.routing.limits import COVER_MAX_FILTERS


class Verdict(StrEnum):
    EQUAL = "equal"
    COVERS = "covers"
    COVERED = "is covered"
    OVERLAPS = "overlaps"
    DISJOINT = "disjoint"


class Relation(NamedTuple):
    verdict: Verdict
    certain: bool


def relate(one: Compiled, other: Compiled) -> Relation:
    """Whether the one covers the other, is covered by it, overlaps it, or has nothing in common with it."""
    common = [
        both for mine in one.cover for theirs in other.cover if (both := intersect(mine, theirs)) is not None
    ]
    if not common:
        return Relation(Verdict.DISJOINT, True)
    covers = one.exact and includes(one.cover, other.cover)
    covered = other.exact and includes(other.cover, one.cover)
    if covers or covered:
        verdict = Verdict.EQUAL if covers and covered else Verdict.COVERS if covers else Verdict.COVERED
        return Relation(verdict, True)
    return Relation(Verdict.OVERLAPS, one.exact and other.exact and any(map(_independent, common)))


def _independent(filter_: Filter) -> bool:
    """Whether no two constraints read the same text: only then the filter is sure to match something."""
    return len({constraint.path for constraint in filter_}) == len(filter_)


def includes(one: Cover, other: Cover) -> bool:
    """Whether the one is shown to hold wherever the other does, by taking it away from the other."""
    rest: list[Filter] = list(other)
    for mine in one:
        left: list[Filter] = []
        for theirs in rest:
            pieces = filters.difference(theirs, mine)
            left += [theirs] if pieces is None else pieces
        # What is taken away leaves pieces of pieces; beyond this, it is not shown.
        if len(left) > 16 * COVER_MAX_FILTERS:
            return False
        rest = left
    return not rest
