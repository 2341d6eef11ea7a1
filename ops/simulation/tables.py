"""The table of a simulation as files, the same to the byte for the same rows."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from branchline.ops.simulation.kind import Column, Row, Value

DECIMALS = 6
"""Of a number that is not whole, in CSV: enough for any figure, and the same on every machine."""


def check_rows(columns: Sequence[Column], rows: Sequence[Row]) -> None:
    """A kind that gives other rows than it says is our own bug."""
    types = {column.name: column.type for column in columns}
    for row in rows:
        assert list(row) == list(types), f"columns {list(row)} instead of {list(types)}"
        for name, value in row.items():
            assert type(value) is types[name], f"{name} is {value!r}, no {types[name].__name__}"


def write_tables(name: str, columns: Sequence[Column], rows: Sequence[Row], folder: Path) -> list[Path]:
    """The rows as Parquet and as CSV; the files."""
    # Here, since importing it takes as long as many a command.
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {int: pa.int64(), float: pa.float64(), str: pa.string()}
    parquet, text = folder / f"{name}.parquet", folder / f"{name}.csv"
    arrays = [pa.array([row[each.name] for row in rows], types[each.type]) for each in columns]
    pq.write_table(pa.table(arrays, names=[each.name for each in columns]), parquet)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([each.name for each in columns])
    writer.writerows([[shown(row[each.name]) for each in columns] for row in rows])
    text.write_bytes(out.getvalue().encode())
    return [parquet, text]


def shown(value: Value) -> str:
    """A value as CSV has it."""
    return f"{value:.{DECIMALS}f}" if isinstance(value, float) else str(value)
