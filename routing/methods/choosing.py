"""Methods as people name them: all in one word, as in `rematch+counting(10)+covering`.

The word has the forwarding first, then the matching if it is not the usual one, then the dissemination, each
of its parts with `tell-` before it, then the optimisations in their order, as in
`rematch+access+tell-covering+tell-merging+replace`. Each part says by itself what it is, since no two kinds
have a name in common; so parts may also be read in any order, and what is not named is as it usually is.
"""

from collections.abc import Collection, Mapping

from branchline.routing.dissemination.strategies import NAMES, parts_of
from branchline.routing.methods.naming import FORWARDING, MATCHING, OPTIMISATIONS, Methods, misfit
from branchline.routing.methods.words import named

TOLD = "tell-"
"""Before the names of a dissemination, since tables are optimised by what has the same names."""

KINDS: Mapping[str, Collection[str]] = {
    "forwarding": FORWARDING,
    "matching": MATCHING,
    "dissemination": [f"{TOLD}{name}" for name in NAMES],
    "optimise": OPTIMISATIONS,
}
"""What is chosen, and the names there are. Of the last two there may be several."""

_SEVERAL = ("dissemination", "optimise")

USUAL = Methods()


def spelled(methods: Methods) -> str:
    """The methods in one word, the same for equal ones."""
    parts = [methods.forwarding]
    if methods.matching != USUAL.matching:
        parts.append(methods.matching)
    if methods.dissemination != USUAL.dissemination:
        parts += [f"{TOLD}{each}" for each in parts_of(methods.dissemination)]
    return "+".join((*parts, *methods.optimise))


def read_methods(word: str) -> Methods | str:
    """The methods that a word names, or why it names none that can be used."""
    chosen: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for part in map(str.strip, word.replace("/", "+").split("+")):
        name = named(part)
        kind = None if name is None else next((each for each in KINDS if name.name in KINDS[each]), None)
        if kind is None:
            known = ", ".join(each for names in KINDS.values() for each in names)
            return f"{part!r} is no method; there are {known}"
        if chosen[kind] and kind not in _SEVERAL:
            return f"{chosen[kind][0]!r} and {part!r} are both for {kind}"
        chosen[kind].append(part)
    methods = Methods(
        "".join(chosen["forwarding"]) or USUAL.forwarding,
        "".join(chosen["matching"]) or USUAL.matching,
        "+".join(each.removeprefix(TOLD) for each in chosen["dissemination"]) or USUAL.dissemination,
        optimise=tuple(chosen["optimise"]),
    )
    return misfit(methods) or methods
