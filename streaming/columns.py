"""The columns that flow through the router job.

Spark moves few, large cells faster than nested ones: a record's headers come in as one cell
(`kafka/header_cells.py`), and what is to be written goes out in blocks (`blocks.py`).
"""

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


class Kind(IntEnum):
    """What an input row is, in the order in which a batch handles them."""

    CONTROL = 0
    EVENT = 1


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
        StructField("headers", BinaryType(), False),
        StructField("now_ms", LongType(), False),
    ]
)

OUTPUT = StructType([StructField("kind", ByteType(), False), StructField("block", BinaryType(), False)])
