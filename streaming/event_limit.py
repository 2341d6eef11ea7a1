"""The limit of a query that runs: how many events its next batch may take.

Spark asks a source for its limit when a query starts, and keeps it with the query, in a field that it looks
at before each batch. Nothing of what Spark promises changes it later. So it is changed where it is kept, by
way of Spark's own classes; if they are not those that we know, the limit stays as it was, and that is all.
"""

from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

_LIMITED = "ReadMaxRows"
"""The class of limits that are changed; a source without a limit has another one."""


class EventLimit:
    """Of all sources of one query that have a limit."""

    def __init__(self, spark: SparkSession, rows: int) -> None:
        """The limit that the query starts with."""
        self._jvm: Any = spark.sparkContext._jvm
        self._query: Any = None
        self._rows = rows
        self._is_known = True

    @property
    def rows(self) -> int:
        """As it is now."""
        return self._rows

    def of(self, query: StreamingQuery) -> None:
        """The query, when it has started; its first batch may be done by then."""
        self._query = query

    def set(self, rows: int) -> None:
        """From the next batch on. Nothing happens where Spark does not let us."""
        if self._query is None or rows == self._rows or not self._is_known:
            return
        self._is_known = False
        with suppress(Py4JError, TypeError):
            self._replace(rows)
            self._rows, self._is_known = rows, True

    def _replace(self, rows: int) -> None:
        execution = self._query._jsq.streamingQuery()
        limits = execution.uniqueSources()
        wanted = self._jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit.maxRows(rows)
        sources = limits.keysIterator()
        while sources.hasNext():
            source = sources.next()
            if limits.apply(source).getClass().getSimpleName() == _LIMITED:
                limits = limits.updated(source, wanted)
        # The field is volatile, and the query's thread waits for the batch that is under way.
        getattr(execution, "uniqueSources_$eq")(limits)
