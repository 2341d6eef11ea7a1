"""Strategies: who is told of which filter, as a configuration names it.

`simple` alone floods: every broker hears of every subscription. Everything else goes along the spanning tree,
as a summary: `identity` tells identical filters once, `covering` only those that no other one covers; so does
`cbcb`, by which nothing is taken back until somebody asks (`pulling.py`). Behind `covering` may stand, joined
by +, `poset`: then all neighbours share one table, and a filter is compared once for all (`shared.py`). With
`rto` in its place, subscribers that have volunteered compare for the broker, as soon as so many new filters
wait as the number says (`routing/offloading/offloader.py`); with `ff`, subscriptions say where their filters
go in a fixed set of so many (`routing/offloading/assigner.py`).

Behind any of them may stand what is made of that: `merging`, `imperfect` with a bound in per cent,
`pre-prune` with a share of predicates in per cent; and `advertised`, by which filters go only where something
is advertised that they overlap, and events that are not advertised are refused, with the seconds for which an
advertisement lingers after its end; or `advertised-counted`, by which such events are only counted. `simple`
with any of these goes along the tree too, and a set of filters has each of them once: there it is `identity`.
"""

from collections.abc import Callable, Mapping, Set
from functools import partial
from importlib import import_module

from branchline.routing.dissemination.shared import SharedTable
from branchline.routing.dissemination.summaries import (
    CoveringSummary,
    IdentitySummary,
    MergedSummary,
    Merging,
    Summary,
)
from branchline.routing.filters import Filter
from branchline.routing.limits import LINGER_MS
from branchline.routing.methods.protocols import Dissemination, Offloading, OnTree
from branchline.routing.methods.simple import Simple
from branchline.routing.methods.words import Named, chosen_name, number_fault, unknown
from branchline.routing.offloading.messages import BATCH_MAX, FIXED_MAX
from branchline.routing.optimise.entries import plain
from branchline.routing.optimise.selectivity import Assumed

FLOODING = "simple"
"""The one strategy by which everybody is told of everything."""

STRATEGIES: Mapping[str, Callable[[], Summary]] = {
    "simple": IdentitySummary,
    "identity": IdentitySummary,
    "covering": CoveringSummary,
    "cbcb": CoveringSummary,
}

INFLATING = "cbcb"
PRUNED = "pre-prune"

MERGINGS: Mapping[str, tuple[str, str]] = {
    "merging": ("merging", "told_merged"),
    "imperfect": ("imperfect", "told_merged_imperfectly"),
    PRUNED: ("prune", "told_pruned"),
}
"""What may be made of a summary: the modules of `routing/optimise/` that do it, and what they count."""

OFFLOADED: Mapping[str, Offloading] = {each.value: each for each in Offloading}
"""The ways by which subscribers find out where filters go in that table."""

SHARED: Mapping[str, str] = dict.fromkeys(("poset", *OFFLOADED), "covering")
"""By what a summary is found with one table for all neighbours, and the strategy that it goes with."""

ADVERTISED, COUNTED = "advertised", "advertised-counted"
NUMBERED = frozenset({"imperfect", PRUNED, ADVERTISED, *OFFLOADED})
NUMBERS: Mapping[str, range] = {
    Offloading.ROUNDS.value: range(1, BATCH_MAX + 1),
    Offloading.FIXED.value: range(1, FIXED_MAX + 1),
}
_BEHIND = (*SHARED, *MERGINGS, ADVERTISED, COUNTED)
NAMES = (*STRATEGIES, *_BEHIND)


def parts_of(text: str) -> list[str]:
    """The strategy, and what stands behind it."""
    return [part.strip() for part in text.split("+")]


def strategy_fault(text: str) -> str | None:
    """Why the text names no dissemination; None if it does."""
    first, *more = parts_of(text)
    wrong = unknown("dissemination", first, STRATEGIES)
    behind = [unknown("dissemination", each, _BEHIND) for each in more]
    numbers = [number_fault("dissemination", each, NUMBERED, NUMBERS) for each in (first, *more)]
    found = next((each for each in (wrong, *behind) if each is not None), None)
    if found is None:
        found = next((each for each in numbers if each is not None), None)
    if found is None and len(set(more)) < len(more):
        found = f"dissemination = {text!r} names something twice"
    if found is None and {ADVERTISED, COUNTED} <= {chosen_name(each).name for each in more}:
        found = f"dissemination = {text!r}: {ADVERTISED} refuses what {COUNTED} lets in"
    return found or _shared_fault(text, first, more)


def _shared_fault(text: str, first: str, more: list[str]) -> str | None:
    """Why nothing is found in the way that is named."""
    shared = [name for each in more if (name := chosen_name(each).name) in SHARED]
    if len(shared) > 1:
        return f"dissemination = {text!r}: {' and '.join(shared)} exclude each other"
    if shared and first != SHARED[shared[0]]:
        return f"dissemination = {text!r}: {shared[0]} goes with {SHARED[shared[0]]} only"
    return None


def make_dissemination(text: str) -> Dissemination | OnTree:
    """The dissemination of this name, which was checked before."""
    if text == FLOODING:
        return Simple()
    first, *more = map(chosen_name, parts_of(text))
    mergings = tuple(each for each in more if each.name in MERGINGS)
    adverts = {each.name: each.number for each in more if each.name in (ADVERTISED, COUNTED)}
    linger_s = adverts.get(ADVERTISED)
    below, table, offloading = STRATEGIES[first.name], None, None
    shared = next((each for each in more if each.name in SHARED), None)
    if shared is not None:
        offloading = OFFLOADED.get(shared.name)
        table = SharedTable(waits=offloading is not None)
        below = table.view
    return OnTree(
        partial(_summary, below, mergings),
        ADVERTISED in adverts,
        first.name == INFLATING,
        COUNTED in adverts,
        LINGER_MS if linger_s is None else linger_s * 1_000,
        table,
        offloading,
        None if shared is None else shared.number,
    )


def on_tree(text: str) -> OnTree | None:
    """The dissemination of this name, if filters go along a tree by it."""
    made = make_dissemination(text)
    return made if isinstance(made, OnTree) else None


def _summary(below: Callable[[], Summary], mergings: tuple[Named, ...]) -> Summary:
    made = below()
    if not mergings:
        return made
    return MergedSummary(made, map(_merging, mergings))


def _merging(chosen: Named) -> Merging:
    module, counts = MERGINGS[chosen.name]
    optimisation = import_module(f"branchline.routing.optimise.{module}").make(chosen.number)

    def merged(filters: Set[Filter]) -> Set[Filter]:
        entries = [plain(each) for each in filters]
        made = optimisation.optimise(entries, Assumed(entries)).entries
        return {each for entry in made for each in entry.cover}

    return Merging(merged, counts, _predicates) if chosen.name == PRUNED else Merging(merged, counts)


def _predicates(filters: Set[Filter]) -> int:
    return sum(map(len, filters))
