"""Matching by counting: predicates of interfaces, one for each owner, in forwarding tables.

`counting(r)` asks the selectivity table for r rounds, 10 unless said, none for 0.

Theory of operation. A forwarding table is a dictionary, which is made anew when it changes (`table.py`). So
changes are buffered. What is *fresh*, a few filters, is asked one by one beside the tables. When it is more
than that, it becomes a tier of tables (`tiers.py`) the next time somebody asks. What is gone is left out
when it is found, and taken out when a table is made anew; when most of what the tables have is gone, all of
them are.

How often an owner has a filter is counted here; tables have it once.

Events that are matched together go through the same in flat arrays (`compiled/counted.py`), made when they
are first asked for.

Cost: of a change, some µs, and in the long run some µs a constraint for each time that it is filed; of an
event, what the tables take, and a µs for each fresh filter. Of one of many, what flat tables take.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from branchline.routing.counting.table import CountingTable
from branchline.routing.event import Event
from branchline.routing.filters import Filter
from branchline.routing.methods.protocols import Interest, Matching
from branchline.routing.prefix.forwarding import Found, Wanted
from branchline.routing.prefix.places import Owner
from branchline.routing.prefix.trees import Trees
from branchline.routing.tiers import tiers_kept

if TYPE_CHECKING:  # compiled loops are imported when the first batch needs them
    from branchline.routing.compiled.counted import CountedInterests
    from branchline.routing.compiled.paths import Paths

ROUNDS = 10
"""Of the selectivity table: beyond some dozens a round costs more than it brings."""
FRESH_MAX = 32
"""Filters that are asked one by one: about as long as a small table takes."""


class CountingMatching:
    """Owners and their filters in forwarding tables, and what came since."""

    def __init__(self, rounds: int = ROUNDS) -> None:
        self._rounds = rounds
        self._owners: dict[Filter, dict[Owner, int]] = {}
        self._standing = 0
        """How many owners and filters there are in `_owners`."""
        self._fresh: dict[tuple[Owner, Filter], None] = {}
        self._tables: list[CountingTable] = []
        """The largest first."""
        self._interests: CountedInterests | None = None

    def add(self, interest: Interest) -> None:
        owner = interest.owner
        for filter_ in interest.compiled.cover:
            owners = self._owners.setdefault(filter_, {})
            owners[owner] = owners.get(owner, 0) + 1
            if owners[owner] == 1:
                self._standing += 1
                self._fresh[owner, filter_] = None
                if self._interests is not None:
                    self._interests.joined(filter_, owner)
            elif self._interests is not None:
                self._interests.again(owner)

    def remove(self, interest: Interest) -> None:
        owner = interest.owner
        for filter_ in interest.compiled.cover:
            owners = self._owners[filter_]
            owners[owner] -= 1
            if not owners[owner]:
                self._standing -= 1
                self._fresh.pop((owner, filter_), None)
                del owners[owner]
                if not owners:
                    del self._owners[filter_]
                if self._interests is not None:
                    self._interests.left(filter_, owner)

    def match(self, event: Event, wanted: Wanted | None = None) -> Found:
        self._settle()
        found = Found()
        for table in self._tables:
            table.find(event, wanted, self._stands, found)
            if wanted is not None and wanted.enough(found):
                break
        else:
            for owner, filter_ in self._fresh:
                is_open = owner not in found.certain and (wanted is None or owner in wanted)
                if is_open and event.may_match((filter_,)):
                    found.certain.add(owner)
        if event.met_array:
            found.certain, found.doubtful = set(), found.certain
        return found

    def interests(self, paths: "Paths") -> "Sequence[CountedInterests]":
        """Who is interested in the events of a batch, which is scanned for these paths."""
        if self._interests is None or self._interests.paths is not paths:
            from branchline.routing.compiled.counted import CountedInterests

            self._interests = CountedInterests(paths, self._rounds)
            for filter_, owners in self._owners.items():
                for owner in owners:
                    self._interests.joined(filter_, owner)
        self._interests.settle()
        return [self._interests]

    def taken(self, events: int) -> Mapping[str, int]:
        """What the last batch took."""
        if self._interests is None:
            return {}
        taken = dict(self._interests.taken)
        self._interests.taken.clear()
        return taken

    def _stands(self, owner: Owner, filter_: Filter) -> bool:
        return owner in self._owners.get(filter_, ())

    def _settle(self) -> None:
        """File what was added, if it is more than a few, and make tables anew that are mostly gone."""
        filed = sum(map(len, self._tables))
        if filed > FRESH_MAX + 2 * self._standing:
            self._file(0)
        elif len(self._fresh) > FRESH_MAX:
            self._file(tiers_kept([len(table) for table in self._tables], len(self._fresh)))

    def _file(self, kept: int) -> None:
        """Keep so many tables, and make one of what is in the others and fresh."""
        pairs: dict[tuple[Owner, Filter], None] = {}
        for table in self._tables[kept:]:
            pairs.update(dict.fromkeys(each for each in table.pairs() if self._stands(*each)))
        pairs.update(self._fresh)
        del self._tables[kept:]
        self._fresh.clear()
        if pairs:
            self._tables.append(CountingTable(pairs, self._rounds))

    def describe(self) -> str:
        """The tables, and what is asked one by one."""
        lines = [f"{self._standing} filters of owners, {len(self._fresh)} asked one by one"]
        for place, table in enumerate(self._tables):
            lines.append(f"table {place}:")
            lines += [f"  {line}" for line in table.describe().splitlines()]
        return "\n".join(lines)


def make(number: int | None, trees: Trees) -> Matching:
    """Matching by counting, with so many rounds of the selectivity table."""
    return CountingMatching(ROUNDS if number is None else number)
