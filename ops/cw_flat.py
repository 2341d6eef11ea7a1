"""The filters of `cw_workload.py` as flat arrays, for millions of constraints: no object is made for one.

They are the same filters. Each constraint is a number that was drawn for its name, operator and value, and
what it says of values is looked up in a table that all names of texts, or of integers, share.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchline.ops.cw_workload import (
    BLOCK,
    INTEGERS,
    MOST_CONSTRAINTS,
    NAMES,
    WORDS,
    cw_constraint,
    draw_block,
)
from branchline.routing.compiled.gathering import HIGH, LOW, Parts, key_of
from branchline.routing.compiled.kernels import kernel
from branchline.routing.dimensions import Axis
from branchline.routing.filters import Contains
from branchline.routing.intervals import Cut
from branchline.routing.prefix.siblings import Kin

_TEXT, _INTEGER = 0, 1
"""Ranks of a name of texts and of one of integers."""
_OPERATORS = {_TEXT: 6, _INTEGER: 3}
_Longs = NDArray[np.int64]


def cw_parts(seed: str, count: int) -> Parts:
    """So many filters, flattened; the same as `cw_filters` draws."""
    blocks = [_chosen(seed, block) for block in range((count + BLOCK - 1) // BLOCK)]
    lengths = np.concatenate([each.lengths for each in blocks])[:count]
    first = np.concatenate([[0], np.cumsum(lengths)])
    rank, operator, value = (
        np.concatenate([each[column] for each in blocks])[: first[-1]] for column in range(3)
    )
    texts, integers = _Values(_TEXT, WORDS), _Values(_INTEGER, INTEGERS)
    of_text = rank % 2 == _TEXT
    names, name = NAMES // 2, rank // 2
    kins: list[Kin] = []
    for each in range(NAMES):
        path = cw_constraint(each, 0, 0).path
        kins += [(path, axis, is_word) for axis, is_word in (texts if each % 2 == _TEXT else integers).kins]
    # A name of texts and the name of integers behind it have so many kin together.
    width = len(texts.kins) + len(integers.kins)
    kin, low, high = (np.empty(rank.size, np.int32) for _ in range(3))
    for values, chosen, first_kin in ((texts, of_text, 0), (integers, ~of_text, len(texts.kins))):
        what = operator[chosen], value[chosen]
        kin[chosen] = values.kin[what] + width * name[chosen] + first_kin
        for codes, out in ((values.low[what], low), (values.high[what], high)):
            out[chosen] = np.where(codes < 0, codes, codes + 2 * values.size * name[chosen])
    kin_of_name = width * np.arange(names)
    text_kin = (kin_of_name[:, None] + np.array(texts.kin_of_value)[None, :]).ravel()
    number_kin = np.repeat(kin_of_name + len(texts.kins), integers.size)
    keys = [key_of(Axis.TEXT, each) for each in texts.values]
    blob = np.frombuffer(b"".join(keys) * names, np.uint8)
    at = np.concatenate([[0], np.cumsum(np.tile([len(each) for each in keys], names))])
    return Parts(
        kins,
        number_kin.astype(np.int32),
        np.tile(np.array(integers.values, np.float64), names),
        {},
        text_kin.astype(np.int32),
        at.astype(np.int64),
        blob,
        first.astype(np.int64),
        kin,
        low,
        high,
    )


class _Block(NamedTuple):
    names: _Longs
    operators: _Longs
    values: _Longs
    lengths: _Longs


def _chosen(seed: str, block: int) -> _Block:
    """A block's filters: of what was drawn, the constraints of different names."""
    drawn = draw_block(seed, block)
    places = np.empty(BLOCK * MOST_CONSTRAINTS, np.int64)
    places = places[: _choose(drawn.names, drawn.lengths, np.zeros(NAMES, np.int64), places)]
    return _Block(drawn.names[places], drawn.operators[places], drawn.values[places], drawn.lengths)


@kernel
def _choose(names: _Longs, lengths: _Longs, last: _Longs, places: _Longs) -> int:
    """The places of the constraints that filters get; how many."""
    at = count = 0
    for filter_ in range(lengths.size):
        left = lengths[filter_]
        while left:
            name = names[at]
            if last[name] != filter_ + 1:
                last[name] = filter_ + 1
                places[count] = at
                count += 1
                left -= 1
            at += 1
    return count


class _Values:
    """What constraints on one name say: for each operator and value a kin and two codes, as `Gathering` has.

    Kin and values are numbered from 0 on; other names of the sort have the same, with other numbers.
    """

    def __init__(self, rank: int, values: int) -> None:
        self.kins: list[tuple[Axis, bool]] = []
        self.values: list[str | int] = []
        self.kin_of_value: list[int] = []
        self._codes: dict[tuple[int, str | int], int] = {}
        shape = (_OPERATORS[rank], values)
        self.kin, self.low, self.high = (np.empty(shape, np.int64) for _ in range(3))
        for operator, value in np.ndindex(shape):
            constraint = cw_constraint(rank, operator, value)
            is_word = isinstance(constraint, Contains)
            if (constraint.axis, is_word) not in self.kins:
                self.kins.append((constraint.axis, is_word))
            kin = self.kins.index((constraint.axis, is_word))
            if isinstance(constraint, Contains):
                low, high = LOW, self._code(kin, constraint.word)
            else:
                low, high = (self._cut(kin, cut) for cut in constraint.interval)
            self.kin[operator, value], self.low[operator, value], self.high[operator, value] = kin, low, high

    @property
    def size(self) -> int:
        return len(self.values)

    def _cut(self, kin: int, cut: Cut) -> int:
        if len(cut) == 3:
            return self._code(kin, cut[1]) + int(cut[2])
        return LOW if cut[0] < 0 else HIGH

    def _code(self, kin: int, value: str | int) -> int:
        known = self._codes.get((kin, value))
        if known is None:
            known = self._codes[kin, value] = 2 * len(self.values)
            self.values.append(value)
            self.kin_of_value.append(kin)
        return known
