"""Keys of subscriptions, as they travel with an event instead of a Forwarding Prefix Tree.

Where lookup reuse is the forwarding method (`methods/reuse.py`), a broker tells the next one which
subscriptions the event's content matched: four bytes for each. A list is *complete* if it names all that
matched behind the link that it crosses. Then it carries a *digest* of what its keys stand for at the broker
that wrote it, by which the reader sees whether they stand for the same there.

    certain      count of keys whose covers hold for certain
    doubtful     count of keys whose covers may hold
    keys         4 bytes each, lowest first: the certain ones ascending, then the doubtful ones ascending
    digest       8 bytes, lowest first; only if the list is complete

What is too long for a header is cut. Then the list is not complete, and its reader matches where no key
leads: a cut costs time, and never an event.
"""

import struct
from dataclasses import dataclass
from itertools import pairwise

from branchline.routing.prefix.varints import put

KEY_BYTES = 4
DIGEST_BYTES = 8


@dataclass(frozen=True, slots=True)
class Keys:
    """A list of keys; each stands in it once."""

    certain: tuple[int, ...] = ()
    """Ascending."""
    doubtful: tuple[int, ...] = ()
    """Ascending; the event may match what they stand for, or only their covers."""
    digest: int | None = None
    """What the keys stand for, told from everything else; None if the list is not complete."""

    @property
    def complete(self) -> bool:
        """Whether nothing else behind the link had matched."""
        return self.digest is not None

    def __len__(self) -> int:
        return len(self.certain) + len(self.doubtful)

    def cut(self, most: int) -> "Keys":
        """At most so many of them."""
        if len(self) <= most:
            return self
        certain = self.certain[:most]
        return Keys(certain, self.doubtful[: most - len(certain)])

    def is_possible(self) -> bool:
        """Whether the list is as one is written."""
        ascending = all(
            one < other for part in (self.certain, self.doubtful) for one, other in pairwise(part)
        )
        return ascending and not set(self.certain) & set(self.doubtful)


NO_KEYS = Keys()
"""Nothing is known of what matched."""


def put_keys(out: bytearray, keys: Keys) -> None:
    """Append the list."""
    put(out, len(keys.certain))
    put(out, len(keys.doubtful))
    out += struct.pack(f"<{len(keys)}I", *keys.certain, *keys.doubtful)
    if keys.digest is not None:
        out += keys.digest.to_bytes(DIGEST_BYTES, "little")


def read_keys(data: bytes, certain: int, digest: int | None) -> Keys:
    """The list of which these are the keys, so many of them certain."""
    keys = struct.unpack(f"<{len(data) // KEY_BYTES}I", data)
    return Keys(keys[:certain], keys[certain:], digest)
