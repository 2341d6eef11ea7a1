"""What Spark makes of a record's headers is what everybody else reads and writes."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from branchline.kafka.header_cells import pack_headers
from branchline.kafka.record import Headers
from branchline.streaming.source import packed_headers

pytestmark = pytest.mark.spark

CASES: list[Headers | None] = [
    None,
    (),
    (("trace", b"abc"), ("trace", b""), ("none", None)),
    (("größe", b"\xff\xfe\x00"), ('say "x"\n', "größe".encode()), ("", b"")),
    (("long", b"x" * 70_000), ("n" * 300, None)),
    tuple((str(number), b"v") for number in range(20_000)),
]


def test_spark_packs_headers_as_we_do(spark: SparkSession) -> None:
    """Null, empty and non-UTF-8 values, repeated and odd names, very many, none: byte for byte."""
    rows = [(number, headers) for number, headers in enumerate(CASES)]
    frame = spark.createDataFrame(rows, "number int, headers array<struct<key: string, value: binary>>")
    packed = frame.select("number", packed_headers(sql.col("headers")).alias("cell")).collect()
    cells = {row["number"]: bytes(row["cell"]) for row in packed}
    assert cells == {number: pack_headers(headers or ()) for number, headers in rows}
