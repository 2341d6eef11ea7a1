"""How loops are compiled: one decorator, so that all of them are compiled alike.

A *kernel* is a function over flat arrays and numbers. It is compiled when it is first called with arguments
of some types; what was compiled is kept in a cache beside the module (or where `NUMBA_CACHE_DIR` says), so
that the next process only loads it. Kernels do not check their indexes: whoever writes one bounds what it
writes.
"""

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function) -> Function:
    """Compile the function; integer overflow wraps, and the interpreter's lock is let go while it runs."""
    return cast(Function, njit(cache=True, nogil=True)(function))


def inlined(function: Function) -> Function:
    """Compile a part of kernels into each place that calls it."""
    return cast(Function, njit(cache=True, nogil=True, inline="always")(function))
