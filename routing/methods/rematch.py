"""Nothing travels: the event is matched at every broker."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from branchline.routing.event import Event
from branchline.routing.methods.naming import Methods, make_matching
from branchline.routing.methods.optimised import OptimisedMatching
from branchline.routing.methods.protocols import Forwarding, Indexed, Interest, Learner, Matching
from branchline.routing.prefix.forwarding import Found, Wanted
from branchline.routing.prefix.trees import UNMATCHED, Prefix, Trees

if TYPE_CHECKING:  # compiled loops are imported when the first batch needs them
    from branchline.routing.compiled.interests import Interests
    from branchline.routing.compiled.paths import Paths


class Rematch:
    """A matching, asked at every broker."""

    def __init__(self, matching: Matching) -> None:
        self._matching = matching

    def stored(self) -> None:
        return None

    def add(self, interest: Interest) -> None:
        self._matching.add(interest)

    def remove(self, interest: Interest) -> None:
        self._matching.remove(interest)

    def interests(self, paths: "Paths") -> "Sequence[Interests] | None":
        return self._matching.interests(paths) if isinstance(self._matching, Indexed) else None

    def taken(self, events: int) -> Mapping[str, int]:
        return self._matching.taken(events) if isinstance(self._matching, Indexed) else {}

    def learner(self) -> Learner | None:
        return self._matching if isinstance(self._matching, OptimisedMatching) else None

    def enter(self, event: Event) -> Prefix:
        return UNMATCHED

    def find(self, prefix: Prefix, event: Event, wanted: Wanted | None = None) -> Found:
        found = self._matching.match(event, wanted)
        found.afresh = 1
        return found

    def onward(self, prefix: Prefix, found: Found, to: str) -> Prefix:
        return prefix


def make(number: int | None, methods: Methods, trees: Trees, stored: Sequence[memoryview]) -> Forwarding:
    """Matching at every broker, by whatever method is chosen for it."""
    return Rematch(make_matching(methods, trees))
