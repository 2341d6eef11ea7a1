"""Rules of having subscribers place filters taken out, one by one, to show that the checker misses each."""

from collections.abc import Callable, Iterator

import pytest

from branchline.routing.dissemination.link_facts import Spared
from branchline.routing.dissemination.links import Links
from branchline.routing.dissemination.marking import MarkedPending
from branchline.routing.dissemination.neighbour import Neighbour
from branchline.routing.offloading.fixed import FixedSet
from branchline.routing.offloading.messages import Claim
from branchline.routing.offloading.placing import Claims, Verifying
from branchline.routing.overlay.pending import Awaited
from branchline.routing.posets.searching import Known

Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]


def believe_claims(patch: Patch) -> None:
    """What volunteers claim is linked without a test."""

    def believe(self: Verifying, claims: Claims, number: int) -> bool:
        return True

    patch.setattr(Verifying, "above", believe)
    patch.setattr(Verifying, "below", believe)


def answer_before_it_is_placed(patch: Patch) -> None:
    """A neighbour is answered though what it told waits, and others have not heard of it."""

    def heard(self: Links, link: Neighbour) -> int:
        return link.heard[1] if link.heard is not None else 0

    patch.setattr(Links, "_heard_and_placed", heard)


def mark_before_it_is_placed(patch: Patch) -> None:
    """A subscription is marked with what was told, though it waits and was not told."""

    def unmarked(self: MarkedPending) -> list[Awaited]:
        return [each for each in self.awaited() if each.marks is None]

    patch.setattr(MarkedPending, "unmarked", unmarked)


def take_back_at_once(patch: Patch) -> None:
    """What was told is taken back while that which is to stand for it waits."""

    def spare(self: Links, name: str, link: Neighbour) -> Iterator[Spared]:
        return iter(())

    patch.setattr(Links, "_spare", spare)


def begin_before_it_is_placed(patch: Patch) -> None:
    """A new neighbour is told a whole table from which what waits is missing."""

    def may_tell(self: Links, link: Neighbour) -> bool:
        return link.take_changed() or bool(link.spared)

    patch.setattr(Links, "_may_tell", may_tell)


def believe_claims_of_a_set(patch: Patch) -> None:
    """What a subscription claims of the fixed set is taken for true."""
    known = FixedSet.known

    def believe(self: FixedSet, claim: Claim) -> Known:
        table = self._table
        above, _ = self._claimed(claim.above, self._above)
        below, _ = self._claimed(claim.below, self._below)
        return known(self, claim)._replace(
            above=table.all_above(above),
            below=table.all_below(below - above),
            not_above=set(),
            not_below=set(),
        )

    patch.setattr(FixedSet, "known", believe)


BUGS: list[Plant] = [
    believe_claims,
    answer_before_it_is_placed,
    mark_before_it_is_placed,
    take_back_at_once,
    begin_before_it_is_placed,
    believe_claims_of_a_set,
]
