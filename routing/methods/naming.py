"""Where methods are named: a configuration says which, and each is made by the module of that name.

Forwarding: `prefix` follows the result of the one content match, `rematch` matches at every broker,
`always-reuse` and `partial-reuse` look up the keys of what matched, `bloom` and `bloom-sbstree` a Bloom
filter of it. Matching: `tree` matches against the Routing Tree, `table` asks every filter, `counting` counts
satisfied constraints, `access` asks an index of access predicates, `kd` k-d trees, `boolean` evaluates trees
of predicates. Dissemination: see `routing/dissemination/strategies.py`. Optimisations of what a broker keeps
of other homes: see `routing/optimise/`. A name may have a number behind it, as in `counting(10)`, which is
the method's own.

A method's module is imported when it is chosen, and has a `make`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, cast

from branchline.routing.bloom.bits import SIZE_MAX
from branchline.routing.dissemination.strategies import FLOODING, strategy_fault
from branchline.routing.methods.protocols import Forwarding, Matching
from branchline.routing.methods.words import chosen_name, named, number_fault, unknown
from branchline.routing.prefix.trees import Trees
from branchline.routing.prefix.vocabulary import KEPT_VERSIONS

if TYPE_CHECKING:
    from branchline.routing.optimise.protocols import Optimisation

FORWARDING: Mapping[str, str] = {
    "prefix": "prefix",
    "rematch": "rematch",
    "always-reuse": "reuse",
    "partial-reuse": "reuse",
    "bloom": "bloom",
    "bloom-sbstree": "bloom",
}
"""Names, and the modules of this package that make them."""

MATCHING: Mapping[str, str] = {
    "tree": "tree",
    "table": "table",
    "counting": "counting",
    "access": "access",
    "kd": "kd",
    "boolean": "boolean",
}

EVALUATING: frozenset[str] = frozenset({"boolean"})
"""Names of matchings that evaluate trees of predicates, and not only covers."""

OPTIMISATIONS: Mapping[str, str] = {
    "covering": "covering",
    "merging": "merging",
    "imperfect": "imperfect",
    "replace": "replace",
    "prune": "prune",
    "prune-time": "prune_time",
    "prune-precision": "prune_precision",
}
"""Names, and the modules of `routing/optimise/` that make them."""

UNTOLD: Mapping[str, str] = {
    "pre-prune": "what is pruned before it is told to others is chosen with the dissemination, as in "
    "covering+pre-prune",
}
"""Names of optimisations that are chosen elsewhere, and where."""

NUMBERED: frozenset[str] = frozenset(
    {
        *("bloom", "bloom-sbstree", "counting", "imperfect", "partial-reuse"),
        *("prune", "prune-precision", "prune-time", "replace"),
    }
)
"""Names that may have a number behind them."""

NUMBERS: Mapping[str, range] = dict.fromkeys(("bloom", "bloom-sbstree"), range(1, SIZE_MAX + 1))
"""Names of which not every number can be used, and which can."""

BATCHES_FROM = 2_000
"""For fewer, asking one by one takes less than to make the arrays. What is delivered is the same."""


@dataclass(frozen=True, slots=True)
class Methods:
    """Which methods a job uses, and how."""

    forwarding: str = "prefix"
    matching: str = "tree"
    dissemination: str = "simple"
    optimise: tuple[str, ...] = ()
    """What keeps a broker's entries of other homes few, in the order in which it is applied."""
    parts: int = 1
    """Parts of the Routing Tree; as many as the Tree Optimizer has."""
    height: int | None = None
    """Levels of the Routing Tree that a content match goes down to; None for all."""
    kept_versions: int = KEPT_VERSIONS
    batches_from: int | None = BATCHES_FROM
    """Events that enter at a broker, or copies that come to it, times subscriptions, from which on they are
    routed as one batch; None for never, which shows what prefix forwarding alone does."""
    paper_delivery: bool = False
    """Deliver to whoever was found, checking nothing: shows what forwarding alone lets through."""

    @property
    def on_tree(self) -> bool:
        """Whether filters go along a tree, so that no broker knows all subscriptions."""
        return self.dissemination != FLOODING


_MISFITS: Sequence[tuple[Callable[[str, str, str], bool], str]] = (
    (
        lambda forwarding, matching, _: forwarding == "prefix" and matching != "tree",
        "prefix forwarding matches against the Routing Tree",
    ),
    (
        lambda forwarding, _, dissemination: forwarding == "always-reuse" and dissemination != FLOODING,
        "always-reuse names all subscriptions that match, and only simple dissemination makes them all known",
    ),
    (
        lambda forwarding, _, dissemination: forwarding.startswith("bloom") and dissemination != FLOODING,
        "a Bloom filter is of the constraints known where an event enters, and only simple dissemination "
        "makes them known everywhere",
    ),
)
"""Names of a forwarding, a matching and a dissemination that do not go together, and why."""

_UNOPTIMISED: Mapping[str, str] = {
    "prefix": "prefix forwarding matches content once for all brokers, so none may make a table of its own",
    "always-reuse": "keys name subscriptions one by one, so none may be left out or become one with another",
    "partial-reuse": "keys name subscriptions one by one, so none may be left out or become one with another",
    **dict.fromkeys(
        ("bloom", "bloom-sbstree"),
        "a Bloom filter is of constraints that all brokers know, so none may leave any out or change them",
    ),
}
"""Names of forwardings that no optimisation goes together with, and why."""


def misfit(methods: Methods) -> str | None:
    """Why the methods cannot be used, or not together; None if they can."""
    kinds = (
        ("forwarding", methods.forwarding, FORWARDING),
        ("matching", methods.matching, MATCHING),
    )
    for what, text, known in (*kinds, *(("optimise", text, OPTIMISATIONS) for text in methods.optimise)):
        chosen = named(text)
        if chosen is not None and chosen.name in UNTOLD:
            return f"{what} = {text!r}: {UNTOLD[chosen.name]}"
        wrong = unknown(what, text, known)
        if wrong is not None:
            return wrong
        wrong = number_fault(what, text, NUMBERED, NUMBERS)
        if wrong is not None:
            return wrong
    wrong = strategy_fault(methods.dissemination)
    if wrong is not None:
        return wrong
    names = [*(chosen_name(text).name for _, text, _ in kinds), methods.dissemination]
    if methods.optimise and names[0] in _UNOPTIMISED:
        return f"optimise = {', '.join(methods.optimise)}: {_UNOPTIMISED[names[0]]}"
    return next((why for excluded, why in _MISFITS if excluded(*names)), None)


def make_matching(methods: Methods, trees: Trees) -> Matching:
    """A broker's way to match content."""
    chosen = chosen_name(methods.matching)
    made = cast(Matching, _module(MATCHING[chosen.name]).make(chosen.number, trees))
    if not methods.optimise:
        return made
    from branchline.routing.methods.optimised import OptimisedMatching

    return OptimisedMatching(made, make_optimisations(methods), trees=chosen.name in EVALUATING)


def make_optimisations(methods: Methods) -> "list[Optimisation]":
    """What keeps entries of other homes few, in the order in which it is applied."""
    chosen = [chosen_name(text) for text in methods.optimise]
    made = [import_module(f"branchline.routing.optimise.{OPTIMISATIONS[each.name]}") for each in chosen]
    return [module.make(each.number) for module, each in zip(made, chosen, strict=True)]


def make_forwarding(methods: Methods, trees: Trees, stored: Sequence[memoryview] = ()) -> Forwarding:
    """A broker's forwarding; one that goes on from what it had stored, if that is given."""
    chosen = chosen_name(methods.forwarding)
    return cast(Forwarding, _module(FORWARDING[chosen.name]).make(chosen.number, methods, trees, stored))


def _module(name: str):  # type: ignore[no-untyped-def]
    return import_module(f"branchline.routing.methods.{name}")
