"""An event with arrays, spread over rows: one for each choice, as `routing/choices.py` has them.

Theory of operation. At a desk that chooses, the scanner writes entries as they come, and marks around arrays:
where one opens, where its next element begins, and where it closes. Between two marks of one array is an
*alternative*; an array without elements has one, too, which is empty. The choices of an array are those of
its alternatives, one after the other. Those of an alternative, or of the whole event, are one choice of each
array in it, in every combination. A first pass counts them and notes with each mark what it stands for:

- OPENS and NEXT: the choices of the alternative that follows, and where that ends;
- OPENS also where the array closes, and CLOSES how many choices the array has.

So the entries of choice n are found without looking into other alternatives: n is divided by the choices of
each array in turn, and the remainder says which one of the array's.

An event with more than ROWS_MAX choices has no rows. An array may be in another, directly or in an object;
their depth is bounded by EVENT_MAX_DEPTH, and so are the stacks. There is no recursion.

Cost: two passes over the entries of events with arrays, and a copy of all entries of the batch.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.freshness import fresh
from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.memory import (
    address,
    copy_bytes,
    load_byte,
    load_int,
    load_long,
    part,
    store_byte,
    store_long,
)
from branchline.routing.compiled.scanning import NEXT, OPENS, Desk, Work
from branchline.routing.compiled.spans import ROWS_MAX, Scanned
from branchline.routing.compiled.texts import Longs
from branchline.routing.limits import EVENT_MAX_DEPTH

_FRAME = 6
"""Numbers that are kept of what surrounds an array."""
_CHOICES, _ENTRIES, _ALL_CHOICES, _ALL_ENTRIES, _ARRAY, _HEAD = range(_FRAME)
_AT, _END, _CHOICE = range(3)

PLAIN, NONE = 0, -1
"""In the place of how many choices an event has: it has no array, or no rows."""


class Entries(NamedTuple):
    """What the scanner wrote at one desk; the entries of event e are at `first[e]` to `first[e + 1]`."""

    work: Work
    first: Longs


class Measured(NamedTuple):
    """What there is to choose in the events of a batch."""

    choices: Longs
    """For each event; PLAIN if its entries stand at the other desk, NONE if they are nowhere or too many."""
    arrays: NDArray[np.bool_]
    """For each event, whether it has arrays that may be chosen from."""
    entries: int
    """How many entries the rows of all choices have."""


def measure(marked: Entries, choices: Longs, events: Longs) -> Measured:
    """Count the choices of the events that the scanner read at a desk that chooses.

    `choices` has PLAIN or NONE for all others, and is filled in.
    """
    arrays = np.zeros(choices.size, np.bool_)
    stack = np.empty(_FRAME * EVENT_MAX_DEPTH, np.int64)
    places = address(events), address(marked.first), address(stack), address(choices), address(arrays)
    entries = _measure_all(marked.work.desk(), events.size, *places)
    return Measured(choices, arrays, entries)


def spread(plain: Entries, marked: Entries, measured: Measured) -> Scanned:
    """The rows of all events that have some, in the order of events."""
    choices = measured.choices
    event = np.repeat(
        np.arange(choices.size, dtype=np.int32), np.where(choices == PLAIN, 1, np.maximum(choices, 0))
    )
    first, stack = np.empty(event.size + 1, np.int64), np.empty(_FRAME * EVENT_MAX_DEPTH, np.int64)
    made = plain.work.with_room(int(plain.first[-1]) + measured.entries)
    _spread_all(
        plain.work.desk(),
        address(plain.first),
        marked.work.desk(),
        address(marked.first),
        choices.size,
        address(choices),
        address(stack),
        made.desk(),
        address(first),
    )
    assert first[-1] == made.most, "as much is written as was counted"
    return made.rows(first, event)


@part
def _measure(desk: Desk, at: int, end: int, stack: int) -> tuple[int, int]:
    """How many choices there are from a place to the end, with how many entries; 0 and 0 if too many."""
    choices, entries, all_choices, all_entries = 1, 0, 0, 0
    array, head, frame = at, at, stack
    while at < end:
        mark = load_int(desk.path, at)
        if mark >= 0:
            entries += choices
        elif mark == OPENS:
            store_long(frame, _CHOICES, choices)
            store_long(frame, _ENTRIES, entries)
            store_long(frame, _ALL_CHOICES, all_choices)
            store_long(frame, _ALL_ENTRIES, all_entries)
            store_long(frame, _ARRAY, array)
            store_long(frame, _HEAD, head)
            frame += 8 * _FRAME
            choices, entries, all_choices, all_entries = 1, 0, 0, 0
            array, head = at, at
        else:
            store_byte(desk.kind, head, choices)
            store_long(desk.start, head, at)
            all_choices += choices
            all_entries += entries
            if all_choices > ROWS_MAX:
                return 0, 0
            if mark == NEXT:
                choices, entries, head = 1, 0, at
            else:
                store_byte(desk.kind, at, all_choices)
                store_long(desk.end, array, at)
                frame -= 8 * _FRAME
                before = load_long(frame, _CHOICES)
                choices = before * all_choices
                entries = load_long(frame, _ENTRIES) * all_choices + all_entries * before
                all_choices, all_entries = load_long(frame, _ALL_CHOICES), load_long(frame, _ALL_ENTRIES)
                array, head = load_long(frame, _ARRAY), load_long(frame, _HEAD)
                if choices > ROWS_MAX:
                    return 0, 0
        at += 1
    return choices, entries


@part
def _copy_entries(source: Desk, at: int, target: Desk, to: int, count: int) -> int:
    """Copy so many entries that stand together; where the next one goes."""
    copy_bytes(target.path + 4 * to, source.path + 4 * at, 4 * count)
    copy_bytes(target.kind + to, source.kind + at, count)
    copy_bytes(target.start + 8 * to, source.start + 8 * at, 8 * count)
    copy_bytes(target.end + 8 * to, source.end + 8 * at, 8 * count)
    return to + count


@part
def _copy_choice(source: Desk, at: int, end: int, choice: int, stack: int, target: Desk, to: int) -> int:
    """Copy the entries of one choice, by its number; where the next one goes."""
    frame = stack
    while True:
        begin = at
        while at < end and load_int(source.path, at) >= 0:
            at += 1
        to = _copy_entries(source, begin, target, to, at - begin)
        if at < end:
            # An array: what is behind it waits, and one of its alternatives is gone through.
            close = load_long(source.end, at)
            of_array = load_byte(source.kind, close)
            store_long(frame, _AT, close + 1)
            store_long(frame, _END, end)
            store_long(frame, _CHOICE, choice // of_array)
            frame += 8 * _FRAME
            choice %= of_array
            while choice >= load_byte(source.kind, at):
                choice -= load_byte(source.kind, at)
                at = load_long(source.start, at)
            end = load_long(source.start, at)
            at += 1
        elif frame > stack:
            frame -= 8 * _FRAME
            at, end, choice = load_long(frame, _AT), load_long(frame, _END), load_long(frame, _CHOICE)
        else:
            return to


@fresh
@kernel
def _measure_all(
    desk: Desk, size: int, events: int, first: int, stack: int, choices: int, arrays: int
) -> int:
    """Measure so many events; how many entries the rows of all of them have."""
    total = 0
    for place in range(size):
        event = load_long(events, place)
        at, end = load_long(first, event), load_long(first, event + 1)
        count, entries = _measure(desk, at, end, stack)
        total += entries
        store_long(choices, event, count if count > 0 else NONE)
        while at < end and load_int(desk.path, at) >= 0:
            at += 1
        store_byte(arrays, event, at < end)
    return total


@fresh
@kernel
def _spread_all(
    plain: Desk,
    first: int,
    marked: Desk,
    marked_first: int,
    events: int,
    choices: int,
    stack: int,
    made: Desk,
    made_first: int,
) -> None:
    """Write the rows of so many events, and where each row begins."""
    row, to = 0, 0
    for event in range(events):
        count = load_long(choices, event)
        if count == PLAIN:
            store_long(made_first, row, to)
            at = load_long(first, event)
            to = _copy_entries(plain, at, made, to, load_long(first, event + 1) - at)
            row += 1
            continue
        at, end = load_long(marked_first, event), load_long(marked_first, event + 1)
        for choice in range(count):
            store_long(made_first, row, to)
            to = _copy_choice(marked, at, end, choice, stack, made, to)
            row += 1
    store_long(made_first, row, to)
