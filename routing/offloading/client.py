"""What an honest client does for a router. Quadratic in what it is given, which limits keep small."""

from collections.abc import Callable, Iterable, Sequence

from branchline.routing.filters import Filter, covers, filter_order
from branchline.routing.offloading.messages import (
    Answer,
    Assignment,
    Between,
    Claim,
    Claimed,
    Indices,
    Listed,
    Task,
)

Covers = Callable[[Filter, Filter], bool]


def answer(task: Task, client: str, covers_: Covers = covers) -> Answer:
    """Do a task of a round of RTO."""
    above, below = compare(task.batch, task.table, covers_)
    return Answer(task.round, task.slice, client, above, below, order_of(task.batch, covers_))


def compare(
    batch: Sequence[Filter], table: Sequence[Listed], covers_: Covers = covers
) -> tuple[tuple[Indices, ...], tuple[Indices, ...]]:
    """For each new filter, the numbers of those that cover it and of those that it covers."""
    above = [tuple(sorted(number for number, each in table if covers_(each, new))) for new in batch]
    below = [tuple(sorted(number for number, each in table if covers_(new, each))) for new in batch]
    return tuple(above), tuple(below)


def order_of(batch: Sequence[Filter], covers_: Covers = covers) -> tuple[Between, ...]:
    """The poset of a few different filters."""
    below = [
        {place for place, each in enumerate(batch) if each != new and covers_(new, each)} for new in batch
    ]
    right_below = [mine - set().union(*(below[each] for each in mine)) for mine in below]
    return tuple(
        Between(
            tuple(above for above, those in enumerate(right_below) if place in those), tuple(sorted(those))
        )
        for place, those in enumerate(right_below)
    )


def claim(assignment: Assignment, filter_: Filter, covers_: Covers = covers) -> Claim:
    """Place a filter in the fixed set."""
    above = {place for place, each in enumerate(assignment.filters) if covers_(each, filter_)}
    below = {place for place, each in enumerate(assignment.filters) if covers_(filter_, each)}
    order = assignment.order
    return Claim(
        assignment.version,
        filter_,
        tuple(sorted(each for each in above if above.isdisjoint(order[each].below))),
        tuple(sorted(each for each in below if below.isdisjoint(order[each].above))),
    )


def claimed(assignment: Assignment, cover: Iterable[Filter], covers_: Covers = covers) -> Claimed:
    """Place all filters of a subscription in the fixed set."""
    claims = (claim(assignment, each, covers_) for each in sorted(cover, key=filter_order))
    return Claimed(assignment.version, tuple(Between(each.above, each.below) for each in claims))
