"""Copies that were sent to one broker, with their headers as columns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from branchline.routing.compiled.header_reading import Headers, read_headers
from branchline.routing.compiled.prefixes import Bytes, Longs, firsts
from branchline.routing.overlay.dividing import Arrival
from branchline.routing.prefix.header import decode, encode


@dataclass(frozen=True, slots=True)
class Sent:
    """Copies that were sent to one broker, at least one, with their headers as they came, all readable."""

    at: str
    index: Longs
    """The indexes of the copies in the batch, ascending."""
    data: Bytes
    first: Longs
    """Row r's header is `data[first[r]:first[r + 1]]`."""
    headers: Headers

    def __len__(self) -> int:
        return len(self.index)


def sent_to(at: Sequence[str], arrivals: Sequence[Arrival]) -> Iterator[Sent]:
    """The copies among arrivals, for all subscribers, whose headers are decoded already."""
    found: dict[str, list[tuple[int, bytes]]] = {}
    for index, (name, arrival) in enumerate(zip(at, arrivals, strict=True)):
        if arrival.header is not None and arrival.only is None:
            data = encode(arrival.header)
            # One that is trimmed on the way is not the one that came.
            if decode(data) == arrival.header:
                found.setdefault(name, []).append((index, data))
    for name, copies in found.items():
        sent = _sent(name, copies)
        if not sent.headers.ok.all():
            # What does not fit into columns is left out.
            sent = _sent(name, [copies[row] for row in np.flatnonzero(sent.headers.ok).tolist()])
        if len(sent):
            yield sent


def _sent(at: str, copies: Sequence[tuple[int, bytes]]) -> Sent:
    data = np.frombuffer(b"".join(cell for _, cell in copies), np.uint8)
    first = firsts([len(cell) for _, cell in copies])
    index = np.array([index for index, _ in copies], np.int64)
    return Sent(at, index, data, first, read_headers(data, first))
