"""What becomes of copies once it is known who is interested: what `overlay/dividing.py` does, in arrays.

Who was found is known by code; what a code stands for is looked up once, as a *sort* and a number. A home
gives the hop that leads to it, if it is in the copy's scope. A subscription here is owed the event if it was
found for certain and its cover is exact. All others here are *in doubt*, unless their subscriber gets the
event anyway; whoever asked has to check them.

Cost: one pass over what was found, and for each row a look at every hop.
"""

from typing import NamedTuple

import numpy as np

from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.prefixes import Flags, Ints, Longs, Words

UNKNOWN, EXACT, INEXACT, HOME = range(4)
"""Sorts of owners: not looked up yet, subscriptions here by their covers, and other homes."""


class Known(NamedTuple):
    """What is known of owners by code, and of homes by number."""

    sort: Ints
    number: Ints
    """The subscriber's or the home's, which are numbered together."""
    hop: Ints
    """For each number the hop that leads to that home, counted in their order; -1 if none does."""
    bit: Words
    """For each number the home's bit in a scope; 0 if it has none there."""


class Divided(NamedTuple):
    """Copies, deliveries and doubts, each side by side and in the order of rows."""

    copy_row: Longs
    hop: Ints
    """Of the copies of one row, in the order of hops."""
    owed_row: Longs
    subscriber: Ints
    doubt_row: Longs
    doubt: Ints
    """Codes of the subscriptions that must be checked."""


@kernel
def divide(
    first: Longs, owner: Ints, certain: Flags, known: Known, hops: int, scope: Words, local: Flags
) -> Divided:
    """Divide rows with these scopes, those that are local also among the subscriptions here."""
    sorts, numbers, hop_of, bit_of = known.sort, known.number, known.hop, known.bit
    most = len(owner)
    copy_row, copy_hop = np.empty(most, np.int64), np.empty(most, np.int32)
    owed_row, owed = np.empty(most, np.int64), np.empty(most, np.int32)
    doubt_row, doubt = np.empty(most, np.int64), np.empty(most, np.int32)
    hop_met, subscriber_met = np.full(hops, -1, np.int64), np.full(len(hop_of), -1, np.int64)
    copies = deliveries = doubts = 0
    for row in range(len(scope)):
        start, end = first[row], first[row + 1]
        for place in range(start, end):
            code = owner[place]
            number = numbers[code]
            if sorts[code] == HOME:
                if hop_of[number] >= 0 and scope[row] & bit_of[number]:
                    hop_met[hop_of[number]] = row
            elif local[row] and certain[place] and sorts[code] == EXACT and subscriber_met[number] != row:
                subscriber_met[number] = row
                owed_row[deliveries], owed[deliveries] = row, number
                deliveries += 1
        for hop in range(hops if end > start else 0):
            if hop_met[hop] == row:
                copy_row[copies], copy_hop[copies] = row, hop
                copies += 1
        for place in range(start, end if local[row] else start):
            code = owner[place]
            if sorts[code] != HOME and subscriber_met[numbers[code]] != row:
                doubt_row[doubts], doubt[doubts] = row, code
                doubts += 1
    return Divided(
        copy_row[:copies],
        copy_hop[:copies],
        owed_row[:deliveries],
        owed[:deliveries],
        doubt_row[:doubts],
        doubt[:doubts],
    )
