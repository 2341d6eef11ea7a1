"""Random overlays that can stand: connected, with cycles, several clusters and brokers that are leaving."""

from hypothesis import strategies as st

from branchline.routing.overlay.topology import FIRST, Link, Member, Topology, fault, link

CLUSTERS = ("main", "eu", "us")


@st.composite
def overlays(draw: st.DrawFn, most: int = 30, first: bool = False) -> Topology:
    """An overlay of 1 to `most` brokers; with `first`, one to begin with."""
    count = draw(st.integers(1, most))
    numbers = list(range(count))
    if not first:
        numbers = sorted(draw(st.sets(st.integers(0, 2 * most), min_size=count, max_size=count)))
    names = draw(st.permutations([f"b{place}" for place in range(count)]))
    links: dict[tuple[str, str], Link] = {}
    for place in range(1, count):
        made = link(names[place], names[draw(st.integers(0, place - 1))], draw(st.integers(1, 12)))
        links[made.one, made.other] = made
    for _ in range(draw(st.integers(0, 6)) if count > 1 else 0):
        one, other = draw(st.lists(st.sampled_from(names), min_size=2, max_size=2, unique=True))
        made = link(one, other, draw(st.integers(1, 12)))
        links[made.one, made.other] = made
    clusters = draw(st.lists(st.sampled_from(CLUSTERS), min_size=count, max_size=count))
    members = [Member(*each, FIRST) for each in zip(names, numbers, clusters, strict=True)]
    found = Topology(FIRST if first else 7, tuple(members), tuple(sorted(links.values())))
    for name in () if first else draw(st.lists(st.sampled_from(names), max_size=2)):
        # Only who can be spared leaves: nobody's path may run through it.
        if fault(found.left(name)) is None:
            found = found.left(name)
    return found
