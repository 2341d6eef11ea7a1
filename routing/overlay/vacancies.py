"""Vacant subscribers of one home: none of their subscriptions stands, and their topics are still there.

Theory of operation. A subscriber is vacant from the end of its last subscription until it subscribes again or
its topic is removed (`routing/removing.py`). The ends themselves are forgotten after a day, and a topic may
be kept for longer; so vacancies are remembered beside them. There are at most as many as there are topics.

Each beginning goes on a heap; whether it still holds is looked up when it comes to the top.

Cost: a push and a pop for each time that a subscriber becomes vacant.
"""

from collections.abc import Iterator
from heapq import heappop, heappush

from branchline.routing.overlay.facts import Vacant


class Vacancies:
    """Who is vacant, and since when."""

    def __init__(self) -> None:
        self._since: dict[str, Vacant] = {}
        self._begun: list[tuple[int, str]] = []

    def __contains__(self, subscriber: str) -> bool:
        return subscriber in self._since

    def begin(self, vacant: Vacant) -> None:
        """The last subscription has ended."""
        self._since[vacant.subscriber] = vacant
        heappush(self._begun, (vacant.since_ms, vacant.subscriber))

    def end(self, subscriber: str) -> None:
        """It has subscribed again, or its topic is removed."""
        self._since.pop(subscriber, None)

    def earliest_ms(self) -> int | None:
        """Since when the longest vacant one is vacant; None if there is none."""
        while self._begun and not self._holds(*self._begun[0]):
            heappop(self._begun)
        return self._begun[0][0] if self._begun else None

    def until(self, last_ms: int) -> Iterator[Vacant]:
        """Those that are vacant since then or longer, the longest first, each ended before the next."""
        while (since_ms := self.earliest_ms()) is not None and since_ms <= last_ms:
            subscriber = self._begun[0][1]
            yield self._since[subscriber]
            assert subscriber not in self, "whoever asks ends it"

    def facts(self) -> Iterator[Vacant]:
        """Facts that make equal vacancies: what a snapshot holds."""
        for subscriber in sorted(self._since):
            yield self._since[subscriber]

    def _holds(self, since_ms: int, subscriber: str) -> bool:
        vacant = self._since.get(subscriber)
        return vacant is not None and vacant.since_ms == since_ms
