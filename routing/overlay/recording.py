"""What a job writes to `filters`: all that its brokers have learned, each thing once.

Several brokers of a job learn the same, one sooner than the other. On a compacted topic the last record of a
subscription stands, so a broker that lags must not write what another one has written before it. An
advertisement is known to its home alone, which writes it.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from branchline.routing.control import Change, Ended, Forgotten, Identity, Subscribed
from branchline.routing.dissemination.adverts import AdvertChange, Advertised, Unadvertised, Unremembered
from branchline.routing.overlay.broker import Broker
from branchline.routing.overlay.facts import Fact
from branchline.routing.overlay.topology import Topology

Recorded: TypeAlias = Change | AdvertChange | Topology
"""All that is written there."""


def to_record(
    brokers: Mapping[str, Broker], facts: Sequence[tuple[str, Fact]], newest: tuple[int, int] | None
) -> list[Recorded]:
    """What a call's facts have added to what the job had; `newest` is the topology that it had."""
    highest: dict[Identity, Subscribed | Ended | None] = {}
    forgotten: dict[Identity, Forgotten] = {}
    learned: set[tuple[str, Identity]] = set()
    record: list[Recorded] = []
    adverts: dict[Identity, AdvertChange] = {}
    for name, fact in facts:
        if isinstance(fact, Topology) and (newest is None or fact.order > newest):
            newest = fact.order
            record.append(fact)
        elif isinstance(fact, Advertised | Unadvertised | Unremembered):
            adverts[fact.identity] = fact
        elif isinstance(fact, Forgotten):
            forgotten[fact.identity] = fact
            highest.setdefault(fact.identity, None)
        elif isinstance(fact, Subscribed | Ended):
            learned.add((name, fact.identity))
            before = highest.get(fact.identity)
            highest[fact.identity] = fact if before is None or fact.order > before.order else before
    for identity, change in highest.items():
        known = {name: broker.table.find(identity) for name, broker in brokers.items()}
        if not any(known.values()):
            record.append(forgotten[identity])
        elif change is not None:
            # Those who learned nothing of it in this call have recorded what they know.
            had = (each for name, each in known.items() if each and (name, identity) not in learned)
            if all(each.order < change.order for each in had):
                record.append(change)
    return [*record, *adverts.values()]
