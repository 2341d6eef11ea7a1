"""A rebuilt job's checkpoint: what is taken from the old one, and what the new one begins with.

Theory of operation. Of an old checkpoint only Spark's log of offsets is needed, whose form does not hang on
the layout of our state: the offsets of the last batch that was committed. What was held there are copies of
events that have been read and have not gone on; as long as our layout is the same they are read from the
state, and sent again.

The new checkpoint is prepared and not begun: `branchline.json` says where to read from, and the *seed* beside
it is the state that every shard finds in place of nothing. So no query is run for it, a router that is
started with it finds all that it needs, and it may be started with it any number of times: until a shard has
a state of its own, it begins with the seed. (Spark's own initial state for the operator would have to be
given at every start, and be run through the query's plan in every batch.)
"""

import hashlib
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from branchline.kafka.arrivals import received
from branchline.kafka.errors import ConfigError
from branchline.kafka.rebuilding import Offsets
from branchline.kafka.record import Record
from branchline.routing.shard import Job, Shard, ShardState
from branchline.streaming import state
from branchline.streaming.checkpoint import MADE_FILE, Made, load
from branchline.streaming.facts import pack
from branchline.streaming.files import Folder

SPARK_LOG_VERSION = "v1"


def committed_offsets(folder: Folder, checkpoint: str, starts: Offsets | None = None) -> Offsets:
    """Where the job had read to in the last batch that was committed; if there was none, where it began."""
    if starts is None and not folder.names("offsets"):
        raise ConfigError(f"{checkpoint} is no checkpoint of a router", hint="check --from")
    committed = [int(name) for name in folder.names("commits") if name.isdecimal()]
    if not committed:
        return starts or {}
    text = folder.read(f"offsets/{max(committed)}")
    lines = (text or b"").decode().splitlines()
    if not lines or lines[0] != SPARK_LOG_VERSION:
        raise ConfigError(
            f"{checkpoint} has offsets that this version cannot read",
            hint="give them in a file: --offsets; or read from a time: --since",
        )
    # Then Spark's own matters, and a line for each source.
    found: dict[str, dict[str, int]] = {}
    for line in lines[2:]:
        if line != "-":
            found |= json.loads(line)
    return found


def made_for(folder: Folder) -> Made | None:
    """What a checkpoint was made for; None if it does not say."""
    found = folder.read(MADE_FILE)
    return None if found is None else load(found.decode())


def prepare(folder: Folder, made: Made, seed: ShardState) -> None:
    """Make a new checkpoint that a router can begin with."""
    packed = zlib.compress(pack(seed))
    # Named by what it holds: Spark brings files to workers by their names alone.
    name = f"branchline-{hashlib.blake2b(packed, digest_size=8).hexdigest()}.state"
    folder.write(name, packed)
    # Last: before it is there, there is no checkpoint.
    folder.write(MADE_FILE, replace(made, seed=name, layout=state.LAYOUT_VERSION).dump().encode())


@dataclass(frozen=True, slots=True)
class OldState:
    """What only the old state tells."""

    held: tuple[tuple[str, Record], ...] = ()
    """Copies of events that were held, with the brokers that they are for."""
    joined: bool = False
    """Whether a broker of the job had joined."""


def old_state(spark: SparkSession, checkpoint: str, job: Job) -> OldState | None:
    """What the old state tells; None if it has another layout or cannot be read."""
    try:
        return _read_state(spark, checkpoint, job)
    except (PySparkException, Py4JError):
        return None


def _read_state(spark: SparkSession, checkpoint: str, job: Job) -> OldState | None:
    # Asking for the streams starts the coordinator of state stores, without which none can be read.
    _ = spark.streams.active
    columns = _columns(spark, checkpoint, "meta", "value.layout", "value.base")
    metas = {row[0]: row[2] for row in columns}
    if any(row[1] != state.LAYOUT_VERSION for row in columns):
        return None
    snapshots = _lists(spark, checkpoint, "snapshot")
    tails, owns = _lists(spark, checkpoint, "tail"), _lists(spark, checkpoint, "own")
    segments: dict[int, list[tuple[int, bytes]]] = {}
    for label, cells in _columns(spark, checkpoint, "segments", "map_value"):
        segments[label] = [(cell["first"], bytes(cell["bytes"])) for cell in cells.values()]
    parts = {
        label: state.stored_state(
            b"".join(snapshots.get(label, [])),
            segments.get(label, []),
            tails.get(label, []),
            owns.get(label, []),
            base,
        )
        for label, base in metas.items()
    }
    shards = [Shard(job, 0, part) for part in parts.values()]
    brokers = [broker for shard in shards for broker in shard.brokers.values()]
    joined = any(broker.position.member is not None and not broker.joining for broker in brokers)
    return OldState(tuple(each for shard in shards for each in _held(shard)), joined)


def _lists(spark: SparkSession, checkpoint: str, name: str) -> dict[int, list[bytes]]:
    return {
        label: [bytes(cell) for cell in cells]
        for label, cells in _columns(spark, checkpoint, name, "list_value.bytes")
    }


def _columns(spark: SparkSession, checkpoint: str, name: str, *columns: str) -> list[Row]:
    options = {"path": checkpoint, "stateVarName": name, "flattenCollectionTypes": "false"}
    return spark.read.format("statestore").options(**options).load().select("key.shard", *columns).collect()


def _held(shard: Shard) -> Iterator[tuple[str, Record]]:
    for name, broker in shard.brokers.items():
        for arrival in broker.held:
            yield name, received(arrival).record
