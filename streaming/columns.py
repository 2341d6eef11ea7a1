"""The columns that flow through the router job.

Spark moves few, large cells faster than nested ones: a record's headers come in as one cell
(`kafka/header_cells.py`), events come in bundles (`bundles.py`), and what is to be written goes out in blocks
(`blocks.py`).
"""

from enum import IntEnum

from pyspark.sql import Column
from pyspark.sql import functions as sql
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
        StructField("now_ms", StringType(), False),
    ]
)

OUTPUT = StructType([StructField("kind", ByteType(), False), StructField("block", BinaryType(), False)])


def batch_time_ms() -> Column:
    """When the batch began: constant within it and the same on replay, so the only clock there is.

    As text: a number would stand in the code that Spark compiles, and so every batch would be compiled anew.
    """
    return sql.unix_millis(sql.current_timestamp()).cast("string")
