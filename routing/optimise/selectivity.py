"""How selective constraints are, as far as the filters themselves tell.

Nobody has counted events when a table is made, and what was counted would be another thing to store: a
rebuilt broker must come to the same table. So values are assumed to lie where subscribers expect them. The
bounds that filters name on a dimension cut it into pieces, points among them, and each piece is as likely as
the next: the share of a range is the number of pieces in it. That needs no arithmetic on values, and so does
for text, instants and addresses too. Of a word nothing is known but that it is rare, and rarer the longer it
is.

Cost: sorting the bounds once; a share is two bisections.
"""

from bisect import bisect_left
from collections.abc import Iterable
from math import prod

from branchline.routing.dimensions import Axis
from branchline.routing.expression import Path
from branchline.routing.filters import Constraint, Filter, Range
from branchline.routing.intervals import Cut
from branchline.routing.optimise.entries import Entry
from branchline.routing.optimise.protocols import Selectivity

LETTER_SHARE = 0.5
"""Of the events whose text contains a word, those that contain one with a letter more."""
LETTERS_MAX = 10


class Assumed:
    """Shares that the entries' own bounds suggest."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        found: dict[tuple[Path, Axis], set[Cut]] = {}
        for entry in entries:
            for filter_ in entry.cover:
                for each in filter_:
                    if isinstance(each, Range):
                        cuts = found.setdefault((each.path, each.axis), set())
                        cuts.update(cut for cut in each.interval if len(cut) == 3)
        self._cuts = {dimension: sorted(cuts) for dimension, cuts in found.items()}

    def share(self, constraint: Constraint) -> float:
        if not isinstance(constraint, Range):
            return float(LETTER_SHARE ** min(len(constraint.word), LETTERS_MAX))
        cuts = self._cuts.get((constraint.path, constraint.axis), [])
        low, high = constraint.interval
        # Between two cuts that stand side by side is one piece, and beyond the outermost ones two more.
        first = 0 if len(low) == 1 else bisect_left(cuts, low) + 1
        last = len(cuts) + 1 if len(high) == 1 else bisect_left(cuts, high) + 1
        return max(1, last - first) / (len(cuts) + 1)


def filter_share(filter_: Filter, selectivity: Selectivity) -> float:
    """The share of events that a filter matches, as if its constraints had nothing to do with each other."""
    return prod(map(selectivity.share, filter_))
