"""Getting the compiled loops ready before the first batch needs them.

A kernel is compiled when it is first called, which takes seconds, or loaded from the cache of an earlier
time. So a few events are routed through a shard of its own that has filters of all sorts. `branchline setup`
does it once, for the cache. A worker loads them with its first batch of many events: doing so for all, in the
process that they are forked from, would hold up the first batch of every job, which often has none.
"""

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path

import numba

from branchline.kafka.dispatch import dispatch, one_by_one
from branchline.kafka.event_columns import EventColumns
from branchline.kafka.header_cells import pack_headers
from branchline.kafka.intake import TOGETHER_FROM, read_batch
from branchline.kafka.record import Place, Record
from branchline.kafka.topics import Topics
from branchline.routing import compiled
from branchline.routing.control import Operation, Request
from branchline.routing.methods.naming import Methods
from branchline.routing.overlay.topology import Link, founded
from branchline.routing.shard import EventBatch, Job, Shard

_FILTERS = (
    "a = 'x' AND b = 'y' AND c > 5",
    "a LIKE 'x%' AND b LIKE '%y'",
    "a LIKE '%x%' AND c BETWEEN 1 AND 2.5",
    "c > 1 AND d.e < 7 AND f IS NULL",
    "type = 'order' AND data.c <> 3",
    "at > TIMESTAMP '2026-01-01T00:00:00Z'",
)
_BINARY = pack_headers(
    (("ce_specversion", b"1.0"), ("ce_id", b"1"), ("ce_source", b"s"), ("ce_type", b"order"))
)


_EVENTS = (
    b'{"a": "x", "b": "y", "c": 6, "d": {"e": 1}, "at": "?"}',
    b'{"a": "x\\u00e9", "c": 0.12345678901234567, "f": [1, 2]}',
    b"{}",
)


def warm_once(folder: Path, report: Callable[[str], None]) -> bool:
    """The same, unless it was done before with this very code; whether there was anything to do.

    What was compiled is in numba's cache, beside the code; in the folder is only a note that it was done.
    """
    done = folder / f"{_code()}.compiled"
    if done.exists():
        return False
    report("compiling the loops that match events, once for each version: up to a minute")
    warm()
    folder.mkdir(parents=True, exist_ok=True)
    done.touch()
    return True


def _code() -> str:
    """Stands for the loops as they are written and where they are, and for what compiles them."""
    folder = Path(compiled.__file__).resolve().parent
    digest = hashlib.blake2b(f"{numba.__version__} {sys.version} {folder}".encode(), digest_size=8)
    for source in sorted(folder.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def warm() -> None:
    """Have every loop compiled that events go through."""
    names = ("one", "other")
    job = Job(names, founded(names, [Link(*names)]), methods=Methods(batches_from=0))
    shard, topics = Shard(job, 0), Topics()
    asked = [
        Request(Operation.SUBSCRIBE, f"s{number}", "main", filter=filter_, home=names[number % 2])
        for number, filter_ in enumerate(_FILTERS)
    ]
    told = shard.handle(1, [], asked, EventBatch()).letters
    shard.handle(2, [], told, EventBatch())
    count = len(_EVENTS)
    events = EventColumns(
        [topics.entry(names[0])] * count,
        [0] * count,
        list(range(count)),
        [0] * count,
        [b"key"] * count,
        _EVENTS,
        [b"", b"", _BINARY],
    )
    intake = read_batch(topics, [], events)
    outputs = shard.handle(3, [], [], intake.events())
    assert outputs.deliveries and outputs.forwarded, "every part of the way was gone"
    written = one_by_one(topics, dispatch(topics, names[0], True, 3, intake, outputs))
    copies = [
        Record(Place(each.topic, 0, 0, 0), each.key, each.value, each.headers)
        for each in written
        if each.topic == topics.broker(names[1])
    ]
    intake = read_batch(topics, [], copies * TOGETHER_FROM)
    assert shard.handle(4, [], [], intake.events()).counts["visits"] == len(intake.at) > 0
