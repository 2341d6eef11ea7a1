"""The functions that CESQL has, by name and number of arguments."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from branchline.routing.cesql.casts import INTEGERS, ErrorKind, Failure, Type, castable
from branchline.routing.cesql.tree import Value
from branchline.routing.limits import CESQL_MAX_TEXT_CHARS

# What Unicode calls white space. Python's own strip() also takes four separators that are control characters.
_WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)


@dataclass(frozen=True, slots=True)
class Function:
    """What a function takes and gives. A parameter of no type takes any value as it is."""

    parameters: tuple[Type | None, ...]
    returns: Type
    run: Callable[..., Value]
    more: bool = False
    """Whether any number of texts may follow the parameters."""

    def parameter(self, place: int) -> Type | None:
        return self.parameters[place] if place < len(self.parameters) else Type.STRING


def resolve(name: str, count: int) -> Function | None:
    """The function of this name that takes so many arguments."""
    for function in FUNCTIONS.get(name, ()):
        fixed = len(function.parameters)
        if count == fixed or (function.more and count > fixed):
            return function
    return None


def _bounded(text: str) -> str:
    if len(text) > CESQL_MAX_TEXT_CHARS:
        raise Failure(ErrorKind.FUNCTION_EVALUATION)
    return text


def _concat_ws(delimiter: str, *texts: str) -> str:
    size = sum(map(len, texts)) + len(delimiter) * max(0, len(texts) - 1)
    if size > CESQL_MAX_TEXT_CHARS:
        raise Failure(ErrorKind.FUNCTION_EVALUATION)
    return delimiter.join(texts)


def _left(text: str, count: int) -> str:
    if count < 0:
        raise Failure(ErrorKind.FUNCTION_EVALUATION, text)
    return text[:count]


def _right(text: str, count: int) -> str:
    if count < 0:
        raise Failure(ErrorKind.FUNCTION_EVALUATION, text)
    return text[max(0, len(text) - count) :]


def _substring(text: str, place: int, length: int | None = None) -> str:
    if abs(place) > len(text) or (length is not None and length < 0):
        raise Failure(ErrorKind.FUNCTION_EVALUATION)
    if place == 0:
        return ""
    rest = text[place - 1 if place > 0 else place :]
    return rest if length is None else rest[:length]


def _abs(number: int) -> int:
    if -number not in INTEGERS:
        raise Failure(ErrorKind.MATH, INTEGERS[-1])
    return abs(number)


def _same(value: Any) -> Value:
    # The cast to the parameter's type is all that there is to do.
    return value  # type: ignore[no-any-return]


_S, _I, _B = Type.STRING, Type.INTEGER, Type.BOOLEAN

FUNCTIONS: dict[str, tuple[Function, ...]] = {
    "ABS": (Function((_I,), _I, _abs),),
    "BOOL": (Function((_B,), _B, _same),),
    "CONCAT": (Function((), _S, lambda *texts: _concat_ws("", *texts), more=True),),
    "CONCAT_WS": (Function((_S,), _S, _concat_ws, more=True),),
    "INT": (Function((_I,), _I, _same),),
    "IS_BOOL": (Function((None,), _B, lambda value: castable(value, _B)),),
    "IS_INT": (Function((None,), _B, lambda value: castable(value, _I)),),
    "LEFT": (Function((_S, _I), _S, _left),),
    "LENGTH": (Function((_S,), _I, len),),
    "LOWER": (Function((_S,), _S, lambda text: _bounded(text.lower())),),
    "RIGHT": (Function((_S, _I), _S, _right),),
    "STRING": (Function((_S,), _S, _same),),
    "SUBSTRING": (Function((_S, _I), _S, _substring), Function((_S, _I, _I), _S, _substring)),
    "TRIM": (Function((_S,), _S, lambda text: text.strip(_WHITE_SPACE)),),
    "UPPER": (Function((_S,), _S, lambda text: _bounded(text.upper())),),
}
