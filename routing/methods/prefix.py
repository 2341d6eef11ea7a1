"""Prefix forwarding: content is matched once, where an event enters, and all others follow what was found."""

from collections.abc import Sequence

from branchline.routing.methods.naming import Methods
from branchline.routing.methods.protocols import Forwarding, Interest
from branchline.routing.prefix.forwarding import Forwarder
from branchline.routing.prefix.trees import Trees


class PrefixForwarding(Forwarder):
    """A broker's places in the Routing Tree, where covers stand."""

    def add(self, interest: Interest) -> None:
        self.subscribe(interest.compiled.cover, interest.owner)

    def remove(self, interest: Interest) -> None:
        self.unsubscribe(interest.compiled.cover, interest.owner)


def make(number: int | None, methods: Methods, trees: Trees, stored: Sequence[memoryview]) -> Forwarding:
    """A broker's places in these trees, those that were stored or none yet."""
    return PrefixForwarding(trees, stored)
