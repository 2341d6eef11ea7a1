"""What changes cost a shard, without Kafka and Spark: processor time, by how many filters stand.

A shard of one broker has so many subscriptions, and has routed events, so that its index is made. Then single
requests come, each with a few events, for which the index must have followed; what the same events take
without a request is subtracted. An index that were made anew for a change would be seen there. At last a
whole batch of requests is handled as a router handles it, from the bytes of the requests to the blocks that
its sink writes and the entry for the state's log.
"""

import gc
import time
from collections.abc import Sequence
from statistics import median

from branchline.kafka.dispatch import dispatch
from branchline.kafka.event_columns import EventColumns
from branchline.kafka.intake import read_batch
from branchline.kafka.record import Place, Record
from branchline.kafka.topics import Topics
from branchline.ops.changes_load import draw_requests
from branchline.ops.pipeline_load import Load
from branchline.routing.control import Identity, Number, Subscribed
from branchline.routing.overlay.facts import Fact
from branchline.routing.shard import Shard, ShardState, alone
from branchline.streaming.blocks import pack as pack_blocks
from branchline.streaming.facts import pack as pack_facts
from branchline.streaming.garbage import spare

EVENTS = 100
"""Beside each single request."""
SINGLE = 60
"""Requests that come one by one."""
TOGETHER = 1_000
"""Requests in a batch."""
BROKER = "b1"
_SINCE_MS = 1_700_000_000_000


def core_costs(workload: str, filters: int, subscribers: int, seed: int) -> dict[str, float]:
    """Of one request alone, in microseconds, and of a thousand in a batch at either kind of shard."""
    load = Load.drawn(workload, filters, subscribers, EVENTS, 0.0, seed)
    requests = draw_requests(load, workload, BROKER, 3 * (SINGLE + TOGETHER), seed)
    leading = _Batches(load, 0)
    alone_us, one_us = leading.singly(requests[:SINGLE], load.events)
    leading_ms = leading.together(requests[SINGLE:])
    other = _Batches(load, 1)
    other.singly(requests[:SINGLE], load.events)
    return {
        "filters": filters,
        "one_us": round(one_us - alone_us),
        "events_us": round(alone_us),
        "leading_ms": round(leading_ms, 1),
        "other_ms": round(other.together(requests[SINGLE:]), 1),
    }


class _Batches:
    """A shard, and batches for it."""

    def __init__(self, load: Load, index: int) -> None:
        facts: list[Fact] = [
            Subscribed(Identity(BROKER, f"s{whose}", f"f{number}"), Number(1, number + 1), "sql", text, ())
            for number, (whose, text) in enumerate(load.subscriptions())
        ]
        facts.append(Number(1, len(facts)))
        state = ShardState(facts=tuple((BROKER, fact) for fact in facts))
        self._topics = Topics("bench")
        self._index = index
        self._shard = Shard(alone(BROKER), index, [state])
        self._batch = self._offset = 0

    def singly(self, requests: Sequence[bytes], events: Sequence[bytes]) -> tuple[float, float]:
        """Microseconds that some events take, and that they take with one request before them."""
        self.handle((), events)  # makes the index
        without = [self.handle((), events) for _ in requests]
        with_one = [self.handle([each], events) for each in requests]
        return median(without) * 1e6, median(with_one) * 1e6

    def together(self, requests: Sequence[bytes]) -> float:
        """Milliseconds for a thousand requests in one batch, the median of a few."""
        parts = [requests[at : at + TOGETHER] for at in range(0, len(requests) - TOGETHER + 1, TOGETHER)]
        return median(self.handle(part, ()) for part in parts) * 1e3

    def handle(self, requests: Sequence[bytes], events: Sequence[bytes]) -> float:
        """Processor seconds for one batch."""
        self._batch += 1
        now_ms, count = _SINCE_MS + self._batch, len(events)
        control = [self._record(value, now_ms) for value in requests]
        columns = EventColumns(
            [self._topics.entry(BROKER)] * count,
            [0] * count,
            list(range(count)),
            [now_ms] * count,
            [None] * count,
            list(events),
            [b""] * count,
        )
        gc.collect()  # as Spark has it done between tasks
        spare()
        began = time.process_time()
        intake = read_batch(self._topics, control, columns)
        outputs = self._shard.handle(now_ms, intake.updates, intake.control, intake.events())
        if outputs.changed is not None:
            pack_facts(outputs.changed)
        for _ in pack_blocks(dispatch(self._topics, BROKER, self._index == 0, now_ms, intake, outputs)):
            pass
        took = time.process_time() - began
        gc.enable()
        return took

    def _record(self, value: bytes, now_ms: int) -> Record:
        self._offset += 1
        return Record(Place(self._topics.control, 0, self._offset, now_ms), None, value, ())
