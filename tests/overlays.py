"""Overlays at two sizes, small ones for every day and large ones for `make soak-overlay`, and their clients.

Filters in all four spellings, events that some of them match, and what crossed the links, judged by the
oracle.
"""

import os
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, pairwise
from pathlib import Path

from observing import Observer
from routers import Site, ends, read_all, supervised

from branchline.kafka import headers as bl
from branchline.kafka.events import Event as Decoded
from branchline.kafka.events import decode_event
from branchline.kafka.listing import last_stats
from branchline.kafka.record import Record
from branchline.ops.chaos.clients import CITIES as CITIES
from branchline.ops.chaos.clients import KINDS as KINDS
from branchline.ops.chaos.clients import SPELLINGS as SPELLINGS
from branchline.ops.chaos.clients import a_filter as a_filter
from branchline.ops.chaos.clients import a_key as a_key
from branchline.ops.chaos.clients import an_event as an_event
from branchline.ops.chaos.clients import identities as identities
from branchline.ops.overlay import small_overlay
from branchline.routing.codes import Rejection
from branchline.routing.control import Identity
from branchline.routing.evaluate import evaluate
from branchline.routing.expression import Expression
from branchline.routing.overlay.topology import Topology, founded, link
from branchline.routing.prefix.header import Header, decode
from branchline.routing.prefix.optimizer import Settings
from branchline.routing.spellings import read_filter
from branchline.streaming.job import OptimizerJob
from branchline.streaming.optimizer import OptimizerConfig

FULL = os.environ.get("BRANCHLINE_TEST_OVERLAY") == "full"

EXACT = ("sql", "cloudevents", "eventbridge")
"""Those in which the filters drawn have covers that say just the same; CESQL compares texts with numbers."""
RING = ("a", "b", "c", "d")


def ring() -> Topology:
    """All four in a circle: one cycle, with two ways to the far side, one of which is shorter."""
    return founded(RING, [link(*each) for each in pairwise(RING)] + [link("a", "d", 2)])


@dataclass(frozen=True)
class Size:
    """How large an overlay is, and what happens to it."""

    topology: Topology
    subscribers: int
    subscriptions: int
    events: int
    events_per_batch: int
    late_subscriptions: int
    """Made while no Tree Optimizer runs."""
    kills: int
    older_walks: int
    """At least so many visits must be led by an older version of the tree."""

    @property
    def brokers(self) -> tuple[str, ...]:
        return tuple(member.name for member in self.topology.members)


SMALL = Size(ring(), 25, 100, 2_000, 600, 60, 2, 1)
LARGE = Size(small_overlay(8, "main"), 200, 1_000, 20_000, 1_000, 200, 10, 100)
"""A tree of depth 3."""
SIZE = LARGE if FULL else SMALL


@contextmanager
def optimizing(site: Site, checkpoint: Path, settings: Settings) -> Iterator[None]:
    """A supervised Tree Optimizer beside the site's router."""
    config = OptimizerConfig(site.cluster, str(checkpoint), site.namespace, settings)
    with supervised(OptimizerJob(site.spark, config, print)):
        yield


def has_told_everything(site: Site) -> bool:
    """Whether the Tree Optimizer has told all that is on `filters`."""
    said = last_stats(site.cluster, site.topics).get(f"optimizer/{site.namespace}", {})
    [end] = ends(site.cluster, [site.topics.filters]).values()
    read = said.get("positions", {}).get(site.topics.filters, {}).get("0")
    return read == end and not any(part["difference"] for part in said["parts"])


def come_and_go(
    observer: Observer,
    size: Size,
    draw: random.Random,
    wanted: dict[Identity, str],
    enough: Callable[[], bool],
) -> int:
    """Publish here and there, while one subscription in twenty events changes or ends; how many events.

    All that the size says, and then, for as long as it is not enough, a tenth as many again each time.
    """
    churn = list(wanted)
    for number in count():
        if number >= size.events and number % (size.events // 10) == 0:
            observer.settle()
            if enough() or number == 3 * size.events:
                return number
        observer.publish(draw.choice(size.brokers), a_key(draw), an_event(draw))
        if number % 20 == 0:
            identity = draw.choice(churn)
            if draw.random() < 0.3:
                observer.unsubscribe(identity)
            else:
                observer.subscribe(identity, wanted[identity], a_filter(draw, wanted[identity]))
        if number % 100 == 99:
            observer.site.flush()
            observer.hear()
    raise AssertionError("unreachable: the count has no end")


def copies(site: Site, since: dict[tuple[str, int], int] | None = None) -> list[tuple[Record, Header]]:
    """What crossed the links."""
    records = read_all(site.cluster, [site.topics.broker(broker) for broker in site.brokers], since)
    found = [(record, decode(bl.values(record.headers, bl.PREFIX)[0] or b"")) for record in records]
    return [(record, header) for record, header in found if header is not None]


@dataclass(frozen=True)
class Crossed:
    """Copies that crossed links while subscriptions stood as they were, and those for nobody."""

    copies: int
    false: int

    def __str__(self) -> str:
        share = self.false / self.copies if self.copies else 0.0
        return f"{self.copies:,} copies on links, {self.false:,} of them false positives ({share:.1%})"


def crossed(
    found: Iterable[tuple[Record, Header]], topology: Topology, standing: dict[Identity, tuple[str, str]]
) -> Crossed:
    """Of copies, those for whose homes no subscription matches, as the naive evaluator says."""
    numbers = {member.name: member.number for member in topology.members}
    filters: list[tuple[int, Expression]] = []
    for identity, (spelling, text) in standing.items():
        read = read_filter(spelling, text)
        assert not isinstance(read, Rejection)
        filters.append((1 << numbers[identity.home], read))
    matching: dict[bytes | None, int] = {}
    count = false = 0
    for record, header in found:
        if record.value not in matching:
            event = decode_event(record)
            assert isinstance(event, Decoded)
            homes = [bit for bit, each in filters if evaluate(each, event.attributes) is True]
            matching[record.value] = sum(set(homes))
        count += 1
        false += not matching[record.value] & header.scope
    return Crossed(count, false)
