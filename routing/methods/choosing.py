"""Methods as people name them: all in one word, as in `rematch+counting(10)`.

The word has the forwarding first, then the matching if it is not the usual one, then what is done to tables.
Each part says by itself what it is, since no two kinds have a name in common; so parts may also be read in
any order, and what is not named is as it usually is.
"""

from collections.abc import Mapping

from branchline.routing.methods.naming import FORWARDING, MATCHING, Methods, misfit, named

KINDS: Mapping[str, Mapping[str, str]] = {"forwarding": FORWARDING, "matching": MATCHING}
"""What is chosen by one name each."""

USUAL = Methods()


def spelled(methods: Methods) -> str:
    """The methods in one word, the same for equal ones."""
    parts = [methods.forwarding]
    if methods.matching != USUAL.matching:
        parts.append(methods.matching)
    return "+".join(parts)


def read_methods(word: str) -> Methods | str:
    """The methods that a word names, or why it names none that can be used."""
    chosen: dict[str, str] = {}
    for part in word.replace("/", "+").split("+"):
        name = named(part.strip())
        kind = None if name is None else next((each for each in KINDS if name.name in KINDS[each]), None)
        if kind is None:
            known = ", ".join(each for names in KINDS.values() for each in names)
            return f"{part.strip()!r} is no method; there are {known}"
        if kind in chosen:
            return f"{chosen[kind]!r} and {part.strip()!r} are both for {kind}"
        chosen[kind] = part.strip()
    methods = Methods(
        chosen.get("forwarding", USUAL.forwarding),
        chosen.get("matching", USUAL.matching),
    )
    return misfit(methods) or methods
