"""A table of filters as a graph of covering: what the poset and the forest have in common.

Filters have numbers, which are never given again. A link leads from a filter down to one that it covers; the
filters with nothing above them are the *roots*. In a poset links are all immediate pairs, in a forest a
filter has at most one above it.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Set
from dataclasses import dataclass, field
from typing import TypeAlias

from branchline.routing.describing import describe_filter
from branchline.routing.filters import Filter
from branchline.routing.posets.comparing import Comparisons

Source: TypeAlias = Hashable
"""An interface: a neighbour, or a client."""


@dataclass(slots=True)
class Entry:
    """A filter of the table. Others are known by their numbers."""

    filter: Filter
    sources: set[Source] = field(default_factory=set)
    above: set[int] = field(default_factory=set)
    below: set[int] = field(default_factory=set)


class Graph(ABC):
    """Filters, their sources, and links down to what they cover."""

    def __init__(self) -> None:
        self.comparisons = Comparisons()
        self.roots: set[int] = set()
        self.touched: set[int] | None = None
        """Numbers that came, left or lie below others than before; kept if somebody has asked for it."""
        self._entries: dict[int, Entry] = {}
        self._numbers: dict[Filter, int] = {}
        self.following = 0
        """The number that the next filter gets."""

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, filter_: Filter) -> bool:
        return filter_ in self._numbers

    def __iter__(self) -> Iterator[int]:
        """The numbers of all filters, in the order in which they came."""
        return iter(self._entries)

    def has(self, number: int) -> bool:
        return number in self._entries

    def entry(self, number: int) -> Entry:
        return self._entries[number]

    def number(self, filter_: Filter) -> int | None:
        return self._numbers.get(filter_)

    def numbers(self, filters: Iterable[Filter]) -> list[int]:
        """Those of filters that are in the table."""
        return [self._numbers[each] for each in filters]

    def sources(self, filter_: Filter) -> frozenset[Source]:
        """Who asked for just this filter."""
        number = self._numbers.get(filter_)
        return frozenset() if number is None else frozenset(self._entries[number].sources)

    def root_filters(self) -> set[Filter]:
        """The minimal cover."""
        return {self._entries[number].filter for number in self.roots}

    @property
    def links(self) -> int:
        return sum(len(entry.below) for entry in self._entries.values())

    # Ways

    def all_below(self, numbers: Iterable[int]) -> set[int]:
        """These and all that ways lead down to."""
        found = set(numbers)
        pending = list(found)
        while pending:
            more = self._entries[pending.pop()].below - found
            found |= more
            pending += more
        return found

    def all_above(self, numbers: Iterable[int]) -> set[int]:
        """These and all that ways lead up to."""
        found = set(numbers)
        pending = list(found)
        while pending:
            more = self._entries[pending.pop()].above - found
            found |= more
            pending += more
        return found

    # Changes

    def insert(self, filter_: Filter, above: Set[int], below: Set[int]) -> int:
        """Put a new filter, without a source yet, between what is right above it and what is right below."""
        assert filter_ not in self._numbers, "a filter is inserted once"
        number = self.following
        self.following += 1
        self._entries[number] = Entry(filter_, above=set(above), below=set(below))
        self._numbers[filter_] = number
        for each in above:
            entry = self._entries[each]
            for passed in entry.below & below:
                self._entries[passed].above.discard(each)
            entry.below -= below
            entry.below.add(number)
        for each in below:
            self._entries[each].above.add(number)
        self.roots -= below
        if not above:
            self.roots.add(number)
        self._touch((number, *below))
        return number

    def restore(self, standing: Iterable[tuple[int, Filter, Iterable[int]]], following: int) -> None:
        """Be a graph of these filters under these numbers, each with what is right above it."""
        known = list(standing)
        self._entries = {number: Entry(filter_, above=set(above)) for number, filter_, above in known}
        self._numbers = {filter_: number for number, filter_, _ in known}
        for number, entry in self._entries.items():
            for each in entry.above:
                self._entries[each].below.add(number)
        self.roots = {number for number, entry in self._entries.items() if not entry.above}
        self.following = following

    def give(self, number: int, source: Source, covered: Iterable[int]) -> list[Filter]:
        """Add a source to a filter, and take it off what it covers; the filters that it was taken off."""
        self._entries[number].sources.add(source)
        return self.take([each for each in covered if each != number], source)

    def take(self, numbers: Iterable[int], source: Source) -> list[Filter]:
        """Take the source off these filters, and drop what nobody asks for any more; whose it was."""
        taken = []
        for number in numbers:
            entry = self._entries[number]
            if source in entry.sources:
                entry.sources.discard(source)
                taken.append(entry.filter)
                if not entry.sources:
                    self._remove(number)
        return taken

    @abstractmethod
    def _remove(self, number: int) -> None:
        """Take a filter out, and link what lay below it anew."""

    def _unhook(self, number: int) -> Entry:
        """Cut all links of a filter, and forget it."""
        entry = self._entries.pop(number)
        del self._numbers[entry.filter]
        self.roots.discard(number)
        for each in entry.above:
            self._entries[each].below.discard(number)
        for each in entry.below:
            self._entries[each].above.discard(number)
        self._touch((number, *entry.below))
        return entry

    def _touch(self, numbers: Iterable[int]) -> None:
        if self.touched is not None:
            self.touched.update(numbers)

    def describe(self) -> str:
        """A line for each filter, below one of those above it, and how many others there are."""
        lines = []
        pending = [(0, number) for number in sorted(self.roots, reverse=True)]
        shown: set[int] = set()
        while pending:
            depth, number = pending.pop()
            if number in shown:
                continue
            shown.add(number)
            entry = self._entries[number]
            others = f" (+{len(entry.above) - 1} above)" if len(entry.above) > 1 else ""
            asked = ", ".join(sorted(map(str, entry.sources)))
            lines.append(f"{'  ' * depth}{describe_filter(entry.filter)}{others} <- {asked}")
            pending += [(depth + 1, each) for each in sorted(entry.below, reverse=True)]
        return "\n".join(lines)
