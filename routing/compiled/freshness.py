"""Whether what was compiled of a kernel still is what its source says.

Compiled code is kept from one process to the next. numba uses it as long as the file of the kernel itself is
the same, but most of a kernel's code is in other files: the parts that it calls, and their constants. A
change there alone would go unnoticed, and the old code would run on. So a kernel is kept together with the
fingerprint of everything that goes into it: bytecode and constants of itself and, through the names that they
use, of all parts, those that write instructions themselves included.

Cost: a walk over the parts when a module with a kernel is imported, about a millisecond.
"""

from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from pickle import UnpicklingError
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from branchline.routing.compiled.memory import Function


def fresh(kernel: Function) -> Function:
    """Let what is kept of the kernel be used only while its fingerprint is the same.

    Everything that the kernel uses comes before it in its file: what comes later is not known yet.
    """
    # Without compiling, or with nowhere to keep what is compiled, there is no such file.
    kept = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    if kept is not None:
        kept._source_stamp = (kept._source_stamp, fingerprint(kernel))
        kept._load_index = partial(_readable, kept._load_index)
    return kernel


def _readable(load_index: Callable[[], dict[Any, str]]) -> dict[Any, str]:
    """The index of what is kept; nothing, if it names classes that are not here.

    Another version of the code has kept it, and numba would fail before it compares fingerprints.
    """
    try:
        return load_index()
    except (AttributeError, ImportError, EOFError, UnpicklingError):
        return {}


def fingerprint(kernel: Any) -> str:
    """The same for the same code, in whatever process."""
    digest = sha256()
    for line in _described(kernel):
        digest.update(f"{line}\n".encode())
    return digest.hexdigest()


def _described(kernel: Any) -> Iterator[str]:
    seen: set[int] = set()
    pending = [_function(kernel)]
    while pending:
        function = pending.pop()
        if id(function) in seen:
            continue
        seen.add(id(function))
        names = yield from _code(function.__code__)
        named = [function.__globals__.get(name) for name in sorted(names)]
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        # A tuple's fields are told apart by their places, which are in its class alone.
        for value in (*named, *cells, *function.__annotations__.values()):
            if isinstance(part := _function(value), FunctionType):
                yield part.__qualname__
                pending.append(part)
            elif not isinstance(value, ModuleType):
                yield _constant(value)


def _function(value: Any) -> Any:
    """What a kernel, a part or something that writes instructions was made from."""
    return getattr(value, "py_func", None) or getattr(value, "_defn", value)


def _code(code: CodeType) -> Any:
    """Describe a function's code, and give the names that it uses, those in functions within it included."""
    yield code.co_code.hex()
    yield str(code.co_names)
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= yield from _code(constant)
        else:
            yield repr(constant)
    return names


def _constant(value: Any) -> str:
    if isinstance(value, type):
        return f"{value.__qualname__}{getattr(value, '_fields', '')}"
    if isinstance(value, np.ndarray | np.generic):  # and not the type of an array, which an annotation is
        return str(value.tobytes())
    # What else there is (types of instructions, say) has a text that says all.
    return str(value)
