"""The columns that flow through the router job, and headers as one cell of text.

Spark moves few, large cells faster than nested ones, so a record's headers travel as the JSON that Spark's
own `to_json` makes of them: a list of objects with `key` and, unless it is null, a base64 `value`.
"""

import base64
import json
from enum import IntEnum

from pyspark.sql.types import (
    BinaryType,
    ByteType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from branchline.kafka.record import Headers

NO_HEADERS = "[]"


class Kind(IntEnum):
    """What an input row is, in the order in which a batch handles them."""

    CONTROL = 0
    EVENT = 1


COUNTS = -1
"""In place of a `Step`: an output row that is not for Kafka but tells the driver what was counted."""


INPUT = StructType(
    [
        StructField("shard", IntegerType(), False),
        StructField("kind", ByteType(), False),
        StructField("topic", StringType(), False),
        StructField("partition", IntegerType(), False),
        StructField("offset", LongType(), False),
        StructField("timestamp_ms", LongType(), False),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("headers", StringType(), False),
        StructField("now_ms", LongType(), False),
    ]
)

OUTPUT = StructType(
    [
        StructField("step", ByteType(), False),
        StructField("topic", StringType()),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("headers", StringType()),
        StructField("id", StringType()),
    ]
)


def pack_headers(headers: Headers) -> str:
    """Headers as one cell of text."""
    if not headers:
        return NO_HEADERS
    return json.dumps(
        [
            {"key": name} if value is None else {"key": name, "value": base64.b64encode(value).decode()}
            for name, value in headers
        ]
    )


def unpack_headers(cell: str) -> Headers:
    """The inverse of `pack_headers`, and of Spark's `to_json`."""
    if cell == NO_HEADERS:
        return ()
    return tuple(
        (header["key"], base64.b64decode(header["value"]) if "value" in header else None)
        for header in json.loads(cell)
    )
