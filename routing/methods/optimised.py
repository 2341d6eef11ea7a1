"""A matching whose table is kept small: what it is told of other homes is optimised before it is asked.

Theory of operation. Interests of other homes are kept here, as entries and how often each was asked for. When
the first event comes after a change, the entries of the homes concerned are optimised, each home's by itself,
and the matching below is told of those that are new or gone. So a change costs nothing until an event comes,
however many there are of them, and a change of one home leaves the others alone.

The table is a function of the interests in force and of what was learned of events (`optimise/learned.py`),
never of how they came: entries of a home are taken in one order, and each optimisation starts from all of
them. Local subscriptions go straight to the matching below.

Every match counts what its table was spared (`filters_hidden` and others): so what is counted does not hang
on whether the table was there already.

Cost: a home whose interests have changed is optimised as a whole; the matching below sees only differences.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING

from branchline.routing.boolean.trees import leaves
from branchline.routing.event import Event
from branchline.routing.methods.protocols import Indexed, Interest, Matching
from branchline.routing.optimise.entries import Entry, as_interest, entries_of, in_order, node_of
from branchline.routing.optimise.learned import Counted, Learned, is_due, learn
from branchline.routing.optimise.protocols import Optimisation, Selectivity, Smaller
from branchline.routing.optimise.selectivity import Assumed
from branchline.routing.prefix.forwarding import Found, Wanted

if TYPE_CHECKING:  # compiled loops are imported when the first batch needs them
    from branchline.routing.compiled.interests import Interests
    from branchline.routing.compiled.paths import Paths


def optimised(
    entries: Iterable[Entry], optimisations: Sequence[Optimisation], learned: Learned | None = None
) -> Smaller:
    """The entries of one owner, made fewer or simpler by one optimisation after the other."""
    ordered = in_order(entries)
    selectivity: Selectivity = Assumed(ordered)
    if learned is not None:
        constraints = chain.from_iterable(leaves(node_of(entry)) for entry in ordered)
        selectivity = Counted(learned, constraints, selectivity)

    def next_one(before: Smaller, optimisation: Optimisation) -> Smaller:
        made = optimisation.optimise(before.entries, selectivity)
        return Smaller(made.entries, Counter(before.counts) + Counter(made.counts))

    return reduce(next_one, optimisations, Smaller(ordered, Counter()))


class OptimisedMatching:
    """A matching that sees fewer or simpler entries than there are interests."""

    def __init__(
        self, below: Matching, optimisations: Sequence[Optimisation], *, trees: bool = False
    ) -> None:
        """In front of a matching, which may evaluate trees of predicates."""
        self._below = below
        self._optimisations = optimisations
        self._trees = trees
        self._asked: dict[str, Counter[Entry]] = {}
        self._tables: dict[str, Smaller] = {}
        self._changed: set[str] = set()
        self._counts: Counter[str] = Counter()
        self._learned: Learned | None = None
        # Only some go by how many events satisfy a constraint; for others nothing is counted.
        self._learns = any(getattr(each, "learns", False) for each in optimisations)

    def add(self, interest: Interest) -> None:
        if not isinstance(interest.owner, str):
            self._below.add(interest)
            return
        self._changed.add(interest.owner)
        self._asked.setdefault(interest.owner, Counter()).update(entries_of(interest, self._trees))

    def remove(self, interest: Interest) -> None:
        if not isinstance(interest.owner, str):
            self._below.remove(interest)
            return
        self._changed.add(interest.owner)
        asked = self._asked[interest.owner]
        for entry in entries_of(interest, self._trees):
            asked[entry] -= 1
            if not asked[entry]:
                del asked[entry]

    def match(self, event: Event, wanted: Wanted | None = None) -> Found:
        self._catch_up()
        found = self._below.match(event, wanted)
        for name, count in self._counts.items():
            found.counts[name] = found.counts.get(name, 0) + count
        return found

    def interests(self, paths: "Paths") -> "Sequence[Interests] | None":
        """The same for whole batches, if the matching below has an index for them."""
        self._catch_up()
        return self._below.interests(paths) if isinstance(self._below, Indexed) else None

    def taken(self, events: int) -> Mapping[str, int]:
        """What a batch took, and for each of its events what the table was spared."""
        taken = Counter(self._below.taken(events) if isinstance(self._below, Indexed) else {})
        taken.update({name: events * count for name, count in self._counts.items()})
        return taken

    def table(self, home: str) -> Sequence[Entry]:
        """What is asked on behalf of a home."""
        self._catch_up()
        return self._tables[home].entries if home in self._tables else ()

    # Learning

    def is_due(self) -> bool:
        """Whether it is time to learn."""
        return self._learns and is_due(self._learned, sum(map(len, self._asked.values())))

    def sampled(self, events: Sequence[Event]) -> Learned:
        """What these events teach."""
        number = sum(map(len, self._asked.values()))
        entries = chain.from_iterable(self._asked.values())
        used = Counter(chain.from_iterable(leaves(node_of(entry)) for entry in entries))
        return learn(self._learned.number + 1 if self._learned else 1, number, used, events)

    def learn(self, learned: Learned) -> None:
        """Go by this from now on."""
        self._learned = learned
        self._changed.update(self._asked)

    def _catch_up(self) -> None:
        for home in sorted(self._changed):
            asked = self._asked[home]
            before = self._tables.pop(home, Smaller((), {}))
            after = optimised(asked, self._optimisations, self._learned)
            self._exchange(home, before.entries, after.entries)
            self._counts.subtract(before.counts)
            self._counts.update(after.counts)
            if asked:
                self._tables[home] = after
            else:
                del self._asked[home]
        self._changed.clear()

    def _exchange(self, home: str, before: Sequence[Entry], after: Sequence[Entry]) -> None:
        """Tell the matching below what is new and what is gone."""
        old, new = set(before), set(after)
        for entry in after:
            if entry not in old:
                self._below.add(as_interest(entry, home))
        for entry in before:
            if entry not in new:
                self._below.remove(as_interest(entry, home))
