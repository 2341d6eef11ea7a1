"""Content is matched against the Routing Tree, and its places lead to the owners."""

from typing import TYPE_CHECKING

from branchline.routing.event import Event
from branchline.routing.methods.prefix import PrefixForwarding
from branchline.routing.methods.protocols import Matching
from branchline.routing.prefix.forwarding import Found, Wanted
from branchline.routing.prefix.trees import Trees

if TYPE_CHECKING:  # compiled loops are imported when the first batch needs them
    from branchline.routing.compiled.paths import Paths


class TreeMatching(PrefixForwarding):
    """A match and the walk along it in one."""

    def interests(self, paths: "Paths") -> None:
        """None: it is the tree that is asked, also for many."""

    def match(self, event: Event, wanted: Wanted | None = None) -> Found:
        return self.find(self.enter(event), event, wanted)


def make(number: int | None, trees: Trees) -> Matching:
    """Matching against these trees."""
    return TreeMatching(trees)
