"""When a subscriber's topic is removed: long enough after the end of its last subscription.

Theory of operation. The decision is made from state and batch time, after all control of a call is handled,
so a subscription that comes in the same call prevents it. All shards have the same subscriptions then, so
none of them delivers anything to that subscriber in this call; the removal is written by the leading shard in
the order of its batches, and a later subscription makes the topic anew. Run again, the call decides the same,
and removing what is gone does nothing. Nobody ever looks at Kafka to decide.

A topic belongs to a subscriber on a cluster, and homes may differ over time. The brokers of one job know each
other's subscriptions at once; of another job on the cluster they would hear too late, and might remove a
topic that is in use again. So only a job that serves all brokers of its cluster removes topics.

Every shard drops the vacancies that are over, each when it is called; only the leading one has a use for
them.
"""

from collections.abc import Mapping

from branchline.routing.control import Ack, Status
from branchline.routing.overlay.broker import Broker
from branchline.routing.overlay.speaking import Speaker


class Remover:
    """The topics of a job's subscribers, as they fall vacant."""

    def __init__(self, brokers: Mapping[str, Broker], speaker: Speaker, after_ms: int | None) -> None:
        self._brokers = brokers
        self._speaker = speaker
        self._after_ms = after_ms

    def due_ms(self) -> int | None:
        """When a topic may be removed next; None if there is none."""
        if self._after_ms is None or not self._speaker.serves_all():
            return None
        earliest = (broker.home.vacancies.earliest_ms() for broker in self._brokers.values())
        return min((each + self._after_ms for each in earliest if each is not None), default=None)

    def remove(self, now_ms: int) -> list[Ack]:
        """Decide which topics are removed now; each is told to its subscriber."""
        if self._after_ms is None or not self._speaker.serves_all():
            return []
        acks = []
        for name, broker in self._brokers.items():
            for vacant in broker.home.vacancies.until(now_ms - self._after_ms):
                subscriber = vacant.subscriber
                broker.remove(subscriber)
                if not self._is_needed(subscriber):
                    acks.append(Ack(None, Status.REMOVED, subscriber, None, name, own=vacant.own))
        return acks

    def _is_needed(self, subscriber: str) -> bool:
        """Whether the subscriber has, or had until lately, a subscription at a broker here."""
        return any(
            subscriber in broker.home.vacancies or broker.table.homes(subscriber)[broker.name]
            for broker in self._brokers.values()
        )
