"""A simulated overlay in which it is counted who tells whom of which filter, and what events cost by that.

Subscriptions come and go in batches, and all is quiet before events are published; so what each subscriber is
owed is known, and is compared with what it got. A *needless copy* crossed a link beyond which nobody wanted
the event.
"""

from collections.abc import Iterable, Mapping, Sequence
from random import Random

from branchline.ops.simulation.overlapping import Offer, Wish
from branchline.ops.simulation.runner import Runner
from branchline.ops.simulation.setting import Faults, Setting
from branchline.ops.simulation.world import World
from branchline.routing.control import Operation, Request
from branchline.routing.dissemination.telling import Told
from branchline.routing.history import Read
from branchline.routing.methods.naming import Methods
from branchline.routing.overlay.letters import Letter
from branchline.routing.overlay.topology import Topology
from branchline.routing.prefix.header import Header


class TellingWorld(World):
    """A world without faults; one job serves all brokers, and subscribers spare these what work they can."""

    def __init__(self, topology: Topology, dissemination: str, seed: int) -> None:
        names = tuple(member.name for member in topology.members)
        methods = Methods("rematch", "counting", dissemination, batches_from=None)
        calm = Faults(delay_ms=5)
        setting = Setting(topology, (names,), methods=methods, faults=calm, honest=True, as_bytes=False)
        super().__init__(setting, seed)
        self._entering = Random(f"{seed} entering")
        self._requests = 0
        self.wishes: dict[str, tuple[str, Wish]] = {}
        """Of each subscriber, its home and its filter."""
        self._numbers = {member.name: member.number for member in topology.members}

    def post(self, sender: Runner, letter: Letter) -> None:
        body = letter.body
        if isinstance(body, Told):
            self.counts["filters_told"] += sum(map(len, body.wanted))
        elif hasattr(body, "identity"):
            self.counts["filters_told"] += 1
        super().post(sender, letter)

    def subscribe(self, wishes: Mapping[str, tuple[str, Wish]]) -> None:
        """Let each of these have its filter at its home, and wait until all is quiet."""
        self.enlist({subscriber: home for subscriber, (home, _) in wishes.items()})
        for subscriber, (home, wish) in wishes.items():
            self._request(Operation.SUBSCRIBE, subscriber, home, wish.text)
        self.wishes |= wishes
        self.settle()

    def unsubscribe(self, subscribers: Iterable[str]) -> None:
        """Let these have nothing any more, and wait until all is quiet."""
        for subscriber in subscribers:
            home, _ = self.wishes.pop(subscriber)
            self._request(Operation.UNSUBSCRIBE, subscriber, home, "")
        self.settle()

    def _request(self, operation: Operation, subscriber: str, home: str, text: str) -> None:
        self._requests += 1
        self.ask(Request(operation, subscriber, "one", home, filter=text, request=f"r{self._requests}"))

    def table_filters(self) -> int:
        """How many filters of others all brokers have in their tables."""
        brokers = self.runners[0].shards[0].brokers.values()
        return sum(
            len(broker) - sum(home == broker.name for home, _ in self.wishes.values()) for broker in brokers
        )

    def offer(self, offers: Sequence[Offer]) -> tuple[int, int, int]:
        """Publish events anywhere: how many deliveries, copies and needless copies there were."""
        since, copied = len(self.history), len(self.copies)
        names = sorted(self._numbers)
        owed: dict[object, set[str]] = {}
        for offer in offers:
            event = self.publish(self._entering.choice(names), offer.attributes())
            owed[event] = {name for name, (_, wish) in self.wishes.items() if wish.matches(offer)}
        self.settle()
        got: dict[object, set[str]] = {event: set() for event in owed}
        for entry in self.history[since:]:
            if isinstance(entry, Read):
                got[entry.event].add(entry.subscriber)
        wrong = sum(got[event] != owed[event] for event in owed)
        if wrong:
            self.fail(f"{wrong} events went to others than had asked for them")
        copies = self.copies[copied:]
        needless = sum(self._is_needless(header, owed[event]) for event, _, _, header in copies)
        return sum(map(len, got.values())), len(copies), needless

    def _is_needless(self, header: Header | bytes, owed: set[str]) -> bool:
        assert isinstance(header, Header), "headers travel as they are"
        return not any(header.scope >> self._numbers[self.wishes[name][0]] & 1 for name in owed)
