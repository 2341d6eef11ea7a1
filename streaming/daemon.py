"""The process from which Spark forks its Python workers, with everything a worker needs imported already.

Spark starts a worker for every task that runs at once, again after a minute of idleness and after every
failure; importing pandas, pyarrow and our own modules would cost each of them most of a second. Here they
are imported once, before the fork, so that a cold worker is ready in milliseconds.

On an executor that lacks a library the daemon runs all the same, so that a job can ask what is missing there
(`fitness.py`). One that has the package in a parcel takes it out first (`unpacked.py`).
"""

import contextlib
import gc
import os

# Before numpy: a pool of threads made before a fork is of no use after it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from pyspark.daemon import manager

from branchline.streaming.unpacked import unpack

unpack(__file__)

with contextlib.suppress(ImportError):
    import pandas  # noqa: F401
    import pyarrow  # noqa: F401

    import branchline.streaming.operator
    import branchline.streaming.sink
    import branchline.streaming.trees  # noqa: F401

if __name__ == "__main__":
    # No worker is to look for garbage among what was imported, nor to copy it for that.
    gc.freeze()
    manager()
