"""Methods as people name them: all in one word, as in `rematch+counting(10)+covering`.

The word has the forwarding first, then the matching if it is not the usual one, then the optimisations in
their order. Each part says by itself what it is, since no two kinds have a name in common; so parts may also
be read in any order, and what is not named is as it usually is.
"""

from collections.abc import Mapping

from branchline.routing.methods.naming import FORWARDING, MATCHING, OPTIMISATIONS, Methods, misfit, named

KINDS: Mapping[str, Mapping[str, str]] = {
    "forwarding": FORWARDING,
    "matching": MATCHING,
    "optimise": OPTIMISATIONS,
}
"""What is chosen, and the names there are. Of the last there may be none, or several."""

USUAL = Methods()


def spelled(methods: Methods) -> str:
    """The methods in one word, the same for equal ones."""
    parts = [methods.forwarding]
    if methods.matching != USUAL.matching:
        parts.append(methods.matching)
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
        if chosen[kind] and kind != "optimise":
            return f"{chosen[kind][0]!r} and {part!r} are both for {kind}"
        chosen[kind].append(part)
    methods = Methods(
        "".join(chosen["forwarding"]) or USUAL.forwarding,
        "".join(chosen["matching"]) or USUAL.matching,
        optimise=tuple(chosen["optimise"]),
    )
    return misfit(methods) or methods
