"""Random prefixes and headers, from a source of chance: of all shapes that travel."""

from random import Random

from branchline.routing.overlay.topology import TOPOLOGY_NUMBER_MAX
from branchline.routing.prefix.header import Header
from branchline.routing.prefix.matching import Entries
from branchline.routing.prefix.trees import PartPrefix, Prefix
from branchline.routing.prefix.updates import Version


def some_entries(source: Random) -> Entries:
    """A tree of child numbers: below every entry some more, in the order of their numbers."""
    made: list[tuple[int, int]] = []
    depth = source.randrange(5)
    highest = source.choice((3, 300, 2**31 - 1))

    def below(level: int) -> None:
        for number in sorted({source.randint(0, highest) for _ in range(source.randrange(4))}):
            made.append((level, number))
            if level < depth:
                below(level + 1)

    below(1)
    return tuple(made)


def some_part(source: Random) -> PartPrefix:
    return PartPrefix(
        Version(source.randrange(source.choice((2, 2**60))), source.randrange(source.choice((2, 2**30)))),
        some_entries(source),
        tuple(sorted({source.randrange(source.choice((9, 2**40))) for _ in range(source.randrange(6))})),
        source.random() < 0.2,
        source.random() < 0.2,
    )


def some_headers(source: Random, count: int) -> list[Header]:
    """Headers of all shapes that fit: small ones, and some with the largest that there is."""
    return [
        Header(
            Prefix(tuple(some_part(source) for _ in range(source.randrange(4))), source.random() < 0.3),
            source.randrange(source.choice((2, 2**20, 2**64))),
            source.randint(0, source.choice((9, TOPOLOGY_NUMBER_MAX))),
            source.randrange(source.choice((2, 2**30))),
        )
        for _ in range(count)
    ]
