"""The key table of a broker: which subscriptions a key stands for, and on whose account they are kept.

Theory of operation. The *imprint* of a subscription is a hash of its identity and its cover: four bytes of it
are the *key* that travels, eight others the *check* that tells it from all else. Two subscriptions may have
the same key, so a key stands for a set of them. And a key stands for nothing, or for something else, at a
broker that has another filter for the subscription than the broker that wrote the key, or none.

So whoever writes a list of keys that is to be relied on adds its *digest*, which is the sum, without carry,
of the checks of all that its keys stand for. Whoever reads it adds up what they stand for there. Only if the
two are the same do the keys mean there what they meant where they were written.

Cost: of a look-up, one in a dictionary. Memory: an entry for each subscription.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from branchline.routing.control import Identity
from branchline.routing.methods.protocols import Interest
from branchline.routing.prefix.edges import plain, stable_hash
from branchline.routing.prefix.keys import DIGEST_BYTES, KEY_BYTES
from branchline.routing.prefix.places import Owner

_KEYS = 1 << 8 * KEY_BYTES
_CHECKS = 1 << 8 * DIGEST_BYTES


class Imprint(NamedTuple):
    """What a subscription with its filter is known by, the same in every process."""

    key: int
    check: int


def imprint(interest: Interest) -> Imprint:
    """The imprint of a subscription; of what a neighbour wants, that of the filter, the same everywhere."""
    cover = tuple(tuple(map(plain, filter_)) for filter_ in interest.compiled.cover)
    made = stable_hash((*interest.identity, cover) if interest.identity.subscriber else cover)
    return Imprint(made % _KEYS, made // _KEYS % _CHECKS)


@dataclass(slots=True)
class Known:
    """A subscription that a key stands for."""

    identity: Identity
    owner: Owner
    check: int
    count: int = 1


@dataclass(slots=True)
class Entry:
    """All that a key stands for."""

    known: tuple[Known, ...]
    check: int
    """The sum of theirs, without carry."""


class KeyTable:
    """Keys, and what they stand for at one broker."""

    def __init__(self, made_by: Callable[[Interest], Imprint] = imprint) -> None:
        self._imprint = made_by
        self._entries: dict[int, Entry] = {}
        self._current: dict[Identity, tuple[int, Owner]] = {}
        self.find = self._entries.get
        """What a key stands for; None if for nothing."""
        self.current = self._current.__getitem__
        """The key of a subscription that is known, and its owner."""

    def add(self, interest: Interest) -> None:
        """From now on there is this interest; it is what the subscription is known by."""
        key, check = self._imprint(interest)
        identity, owner = interest.identity, interest.owner
        self._current[identity] = key, owner
        entry = self._entries.get(key)
        same = self._same(entry, identity, check)
        if same is not None:
            same.count += 1
        elif entry is None:
            self._entries[key] = Entry((Known(identity, owner, check),), check)
        else:
            entry.known += (Known(identity, owner, check),)
            entry.check ^= check

    def remove(self, interest: Interest) -> None:
        """There no longer is; the subscription may have another filter by now, and another key."""
        key, check = self._imprint(interest)
        entry = self._entries.get(key)
        same = self._same(entry, interest.identity, check)
        assert entry is not None and same is not None, "what is removed was added"
        same.count -= 1
        if same.count:
            return
        entry.check ^= check
        entry.known = tuple(each for each in entry.known if each is not same)
        if not entry.known:
            del self._entries[key]
        identity = interest.identity
        is_left = any(each.identity == identity for each in entry.known)
        if self._current[identity][0] == key and not is_left:
            del self._current[identity]

    def seen_by(self, home: str) -> "KeyTable":
        """The table of the home of these subscriptions, where all others have the same as here."""
        made = KeyTable(self._imprint)
        made._entries |= self._entries
        made._current |= self._current
        for identity, (key, _) in self._current.items():
            if identity.home == home:
                made._current[identity] = key, identity
                entry = made._entries[key]
                known = tuple(replace(each, owner=_owner(each.identity, home)) for each in entry.known)
                made._entries[key] = Entry(known, entry.check)
        return made

    def digest(self, keys: Iterable[int]) -> int:
        """What these keys, all known, stand for, told from everything else."""
        made = 0
        for key in keys:
            made ^= self._entries[key].check
        return made

    def describe(self) -> str:
        """The table for people: keys, and what they stand for."""
        lines = []
        for key, entry in sorted(self._entries.items()):
            stands = ", ".join(sorted(f"{each.identity} for {each.owner}" for each in entry.known))
            lines.append(f"{key:08x}: {stands}")
        return "\n".join(lines)

    @staticmethod
    def _same(entry: Entry | None, identity: Identity, check: int) -> Known | None:
        for each in entry.known if entry is not None else ():
            if each.identity == identity and each.check == check:
                return each
        return None


def _owner(identity: Identity, home: str) -> Owner:
    return identity if identity.home == home else identity.home
