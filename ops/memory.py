"""How much memory something takes."""

import gc
import tracemalloc
from collections.abc import Callable


def allocated_bytes(make: Callable[[], object]) -> int:
    """What is allocated by making something and still is when it is there, compiled code apart.

    Making it takes several times as long as otherwise, so whoever times it makes it once more.
    """
    tracemalloc.start()
    try:
        made = make()
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
        del made
        return size
    finally:
        tracemalloc.stop()
