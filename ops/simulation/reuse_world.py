"""The brokers, subscriptions and events that lookup reuse is measured with, whatever the matching.

Theory of operation. All brokers know all subscriptions, and nothing changes. Which brokers an event comes to
hangs on who asks for it, and not on how that is found out: so it is known beforehand, link by link.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from branchline.ops.simulation.shapes import Shape
from branchline.routing.compiling import Compiled
from branchline.routing.control import Identity, Number, Subscribed
from branchline.routing.methods.key_table import KeyTable
from branchline.routing.methods.protocols import Interest
from branchline.routing.overlay.position import Position
from branchline.routing.overlay.topology import Topology
from branchline.routing.subscriptions import SubscriptionTable
from branchline.routing.values import JsonValue


@dataclass(frozen=True, slots=True)
class Box:
    """What a subscription asks for: a range of each attribute."""

    lows: tuple[float, ...]
    length: float

    def text(self) -> str:
        """The filter."""
        ranges = (
            f"a{place} BETWEEN {low!r} AND {low + self.length!r}" for place, low in enumerate(self.lows)
        )
        return " AND ".join(ranges)

    def has(self, event: Mapping[str, float]) -> bool:
        return all(low <= event[f"a{place}"] <= low + self.length for place, low in enumerate(self.lows))


def drawn_boxes(count: int, attributes: int, density: float, random: Random) -> list[Box]:
    """Boxes in which an event lies with this density, in per cent."""
    length = (density / 100) ** (1 / attributes)
    return [
        Box(tuple(random.random() * (1 - length) for _ in range(attributes)), length) for _ in range(count)
    ]


class World:
    """Subscriptions at brokers, and events that enter."""

    def __init__(
        self, shape: Shape, subscriptions: int, attributes: int, density: float, events: int, seed: int
    ) -> None:
        random = Random(f"reuse {seed}")
        self.topology: Topology = shape.topology(random)
        self.names = [member.name for member in self.topology.members]
        boxes = drawn_boxes(subscriptions, attributes, density, random)
        self.events: list[dict[str, JsonValue]] = [
            {f"a{place}": random.random() for place in range(attributes)} for _ in range(events)
        ]
        self.homes = [self.names[number % len(self.names)] for number in range(subscriptions)]
        self.identities = [Identity(home, f"s{number}", "one") for number, home in enumerate(self.homes)]
        self.wanted = _wanted(boxes, self.events)
        """For each event the subscriptions that match it, by number."""
        self.asking = [self._by_home(each) for each in self.wanted]
        """The same, by home."""
        source = Random(f"entries {seed}")
        self.entries = [source.choice(self.names) for _ in self.events]
        self.positions = {name: Position(name) for name in self.names}
        for position in self.positions.values():
            position.take(self.topology)
        self.tables = {name: SubscriptionTable() for name in self.names}
        self.compiled = [self._subscribed(number, box) for number, box in enumerate(boxes)]
        keys = KeyTable()
        for identity, compiled in zip(self.identities, self.compiled, strict=True):
            keys.add(Interest(identity, compiled, identity.home))
        self.keys_of = {name: keys.seen_by(name) for name in self.names}

    def _subscribed(self, number: int, box: Box) -> Compiled:
        identity = self.identities[number]
        table = self.tables[identity.home]
        table.apply(Subscribed(identity, Number(1, number + 1), "sql", box.text()))
        compiled = table.compiled(identity)
        assert isinstance(compiled, Compiled)
        return compiled

    def _by_home(self, numbers: Sequence[int]) -> dict[str, list[int]]:
        made: dict[str, list[int]] = {}
        for number in numbers:
            made.setdefault(self.homes[number], []).append(number)
        return made

    def owed(self, event: int) -> frozenset[str]:
        """The subscribers that the event is owed to."""
        return frozenset(self.identities[each].subscriber for each in self.wanted[event])

    def behind(self, name: str, neighbour: str) -> frozenset[str]:
        """The homes that a broker reaches through a neighbour."""
        return frozenset(home for home, hop in self.positions[name].routes.hops.items() if hop == neighbour)

    def visits(self) -> dict[tuple[str, str | None], list[int]]:
        """For each broker, and the neighbour that they come from or None, the events that come there."""
        made: dict[tuple[str, str | None], list[int]] = {}
        for event, entry in enumerate(self.entries):
            pending: list[tuple[str, str | None, set[str]]] = [(entry, None, set(self.asking[event]))]
            while pending:
                here, before, homes = pending.pop()
                made.setdefault((here, before), []).append(event)
                hops = self.positions[here].routes.hops
                for hop in {hops[home] for home in homes if home != here}:
                    beyond = {home for home in homes if home != here and hops[home] == hop}
                    pending.append((hop, here, beyond))
        return made


def _wanted(boxes: Sequence[Box], events: Sequence[Mapping[str, JsonValue]]) -> list[list[int]]:
    lows = np.array([box.lows for box in boxes])
    highs = lows + np.array([[box.length] for box in boxes])
    points = (np.array([float(str(value)) for value in event.values()]) for event in events)
    return [np.flatnonzero(((lows <= each) & (each <= highs)).all(axis=1)).tolist() for each in points]
