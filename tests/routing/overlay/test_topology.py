"""The topology: its routes are shortest paths, its rules are those that it says, and its order decides."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise, permutations, product
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from branchline.routing.overlay.topology import (
    BROKER_NUMBER_MAX,
    FIRST,
    LINK_COST_MAX,
    TOPOLOGY_NUMBER_MAX,
    Link,
    Member,
    Topology,
    fault,
    founded,
    link,
    routes,
)

NAMES = tuple("abcdefg")


@st.composite
def graphs(draw: st.DrawFn) -> Topology:
    """Any graph, in one piece or not, with cycles, leaving brokers and numbers that have gaps."""
    names = draw(st.permutations(NAMES[: draw(st.integers(1, len(NAMES)))]))
    numbers = sorted(draw(st.sets(st.integers(0, 20), min_size=len(names), max_size=len(names))))
    leaving = draw(st.lists(st.sampled_from((False, False, True)), min_size=len(names), max_size=len(names)))
    members = [
        Member(*each, leaving=left)
        for each, left in zip(zip(names, numbers, strict=True), leaving, strict=True)
    ]
    pairs = sorted({link(one, other)[:2] for one, other in permutations(names, 2)})
    costs = {pair: draw(st.sampled_from((0, 0, 0, 1, 1, 2, 3))) for pair in pairs}
    links = tuple(Link(*pair, cost) for pair, cost in costs.items() if cost)
    retired = [("gone", 21)] if draw(st.booleans()) else []
    return Topology(5, tuple(members), links, tuple(retired))


@lru_cache(maxsize=4)
def distances(topology: Topology) -> Mapping[tuple[str, str], float]:
    """Floyd and Warshall, where only those who stay may be on the way."""
    names = [member.name for member in topology.members]
    far = {(one, other): 0 if one == other else inf for one, other in product(names, names)}
    for one, other, cost in topology.links:
        far[one, other] = far[other, one] = cost
    for way in (member.name for member in topology.members if not member.leaving):
        for one, other in product(names, names):
            far[one, other] = min(far[one, other], far[one, way] + far[way, other])
    return far


# Routes


@given(graphs())
def test_every_hop_is_a_neighbour_on_a_shortest_path(topology: Topology) -> None:
    """Whoever can be reached has a hop, nobody else has, and the hop lies on a shortest path."""
    far = distances(topology)
    costs = {(one, other): cost for one, other, cost in topology.links}
    costs |= {(other, one): cost for (one, other), cost in costs.items()}
    for member in topology.members:
        hops = routes(topology, member.name).hops
        reached = {home for (one, home), there in far.items() if one == member.name != home and there < inf}
        assert set(hops) == reached
        for home, hop in hops.items():
            assert hop in topology.neighbours(member.name)
            assert costs[member.name, hop] + far[hop, home] == far[member.name, home]
            staying = topology.member(hop)
            assert hop == home or (staying is not None and not staying.leaving)


@given(graphs())
def test_the_distance_falls_with_every_hop_whoever_follows(topology: Topology) -> None:
    """From anybody to anybody, following each broker's own routes, the rest of the way gets shorter."""
    far = distances(topology)
    for member in topology.members:
        for home in routes(topology, member.name).hops:
            at = member.name
            while at != home:
                following = routes(topology, at).hops[home]
                assert far[following, home] < far[at, home]
                at = following


@given(graphs())
def test_the_homes_behind_the_hops_are_all_others_each_once(topology: Topology) -> None:
    """The masks are disjoint, together they are whoever can be reached, and a bit is a broker's number."""
    for member in topology.members:
        made = routes(topology, member.name)
        assert list(made.behind) == sorted(set(made.hops.values()), key=lambda hop: made.numbers[hop])
        assert sum(made.behind.values()) == sum(1 << made.numbers[home] for home in made.hops)
        for hop, homes in made.behind.items():
            for home, number in made.numbers.items():
                assert bool(homes >> number & 1) == (made.hops.get(home) == hop)
        assert made.numbers == {each.name: each.number for each in topology.members}
        assert made.everybody == sum(1 << each.number for each in topology.members)


@given(graphs())
def test_of_two_hops_that_are_as_good_the_lower_number_is_taken(topology: Topology) -> None:
    """So routes depend on the graph, and on nothing that could differ from process to process."""
    far = distances(topology)
    costs = {frozenset(each[:2]): each.cost for each in topology.links}
    numbers = {member.name: member.number for member in topology.members}
    for member in topology.members:
        for home, hop in routes(topology, member.name).hops.items():
            as_good = [
                each
                for each in topology.neighbours(member.name)
                if each == home or not next(other.leaving for other in topology.members if other.name == each)
                if costs[frozenset((member.name, each))] + far[each, home] == far[member.name, home]
            ]
            assert hop == min(as_good, key=numbers.__getitem__)


def test_a_number_stays_when_others_are_retired() -> None:
    """After brokers have gone, the bits of the others are the same, and newcomers get new ones."""
    topology = founded(["a", "b", "c"], [link("a", "b"), link("b", "c"), link("a", "c")])
    topology = topology.left("b").without("b").joined("d", {"a": 1})
    assert routes(topology, "a").numbers == {"a": 0, "c": 2, "d": 3}
    assert routes(topology, "c").behind == {"a": 0b1001}
    assert routes(topology, "c").everybody == 0b1101
    gone = topology.left("d").without("d").joined("e", {"a": 1})
    assert routes(gone, "a").numbers == {"a": 0, "c": 2, "e": 4}, "nor is the highest used again"


def test_no_path_runs_through_a_broker_that_is_leaving() -> None:
    """The way round is taken though it is longer; the leaver itself is still reached, and reaches others."""
    ring = founded("abcd", [link("a", "b"), link("b", "c"), link("c", "d", 5), link("a", "d", 5)])
    assert routes(ring, "a").hops == {"b": "b", "c": "b", "d": "d"}
    leaving = ring.left("b")
    assert routes(leaving, "a").hops == {"b": "b", "c": "d", "d": "d"}
    assert routes(leaving, "b").hops == {"a": "a", "c": "c", "d": "a"}


# Rules


def naive_fault(topology: Topology) -> bool:
    """The rules for one topology, read one by one."""
    members, links, retired = topology.members, topology.links, topology.retired
    names = [member.name for member in members] + [name for name, _ in retired]
    numbers = [member.number for member in members] + [number for _, number in retired]
    rules = [
        len(members) > 0,
        all(names.count(member.name) == 1 for member in members),
        all(numbers.count(member.number) == 1 for member in members),
        all(member.number >= 0 for member in members),
        all(one.number < other.number for one, other in pairwise(members)),
        all(one < other for one, other in pairwise(links)),
        len({each[:2] for each in links}) == len(links),
        all(topology.member(each.one) and topology.member(each.other) for each in links),
        all(each.one < each.other for each in links),
        all(1 <= each.cost <= LINK_COST_MAX for each in links),
        FIRST <= topology.number <= TOPOLOGY_NUMBER_MAX,
        all(member.number <= BROKER_NUMBER_MAX for member in members),
        any(not member.leaving for member in members),
    ]
    if not all(rules):
        return True
    staying = next(member.name for member in members if not member.leaving)
    return any(distances(topology)[staying, member.name] == inf for member in members)


some_links = st.builds(Link, st.sampled_from(NAMES), st.sampled_from(NAMES), st.sampled_from((0, 1, 1, 1, 2)))
some_members = st.builds(Member, st.sampled_from(NAMES), st.integers(-1, 21))


def spoiled(topology: Topology) -> st.SearchStrategy[Topology]:
    """The topology with something in it that may be wrong."""
    members, links = topology.members, topology.links
    taken = members[0].number if members else 0
    return st.one_of(
        some_links.map(lambda each: replace(topology, links=(*links, each))),
        some_links.map(lambda each: replace(topology, links=tuple(sorted((*links, each))))),
        some_members.map(lambda each: replace(topology, members=(*members, each))),
        st.just(replace(topology, members=members[1:])),
        st.sampled_from((("a", 21), ("h", taken))).map(lambda each: replace(topology, retired=(each,))),
    )


@given(graphs() | graphs().flatmap(spoiled) | graphs().flatmap(spoiled).flatmap(spoiled))
def test_the_rules_accept_exactly_what_a_naive_reading_accepts(topology: Topology) -> None:
    """Also for graphs of which a few things are wrong."""
    assert (fault(topology) is not None) == naive_fault(topology)


TRIO = founded(["a", "b", "c"], [link("a", "b"), link("b", "c")])
A, B, C = TRIO.members
AB, BC = TRIO.links
LEFT = TRIO.left("c")


@pytest.mark.parametrize(
    ("topology", "reason"),
    [
        (Topology(1, ()), "it has no broker"),
        (replace(TRIO, members=(A, B, C, Member("a", 3))), "a name is used twice"),
        (replace(TRIO, retired=(("a", 9),)), "a name is used twice, or is that of a retired broker"),
        (replace(TRIO, members=(A, B, C._replace(number=1))), "a number is used twice"),
        (replace(TRIO, retired=(("z", 2),)), "a number is used twice, or is that of a retired broker"),
        (replace(TRIO, members=(A._replace(number=-1), B, C)), "a number is used twice"),
        (replace(TRIO, members=(B, A, C)), "not in the order of their numbers"),
        (replace(TRIO, links=(AB, AB._replace(cost=2), BC)), "a link is there twice"),
        (replace(TRIO, links=(BC, AB)), "the links are not sorted"),
        (replace(TRIO, links=(AB, BC, Link("b", "z"))), "'b' and 'z' is not one of two of its brokers"),
        (replace(TRIO, links=(AB, BC, Link("c", "c"))), "'c' and 'c' is not one of two of its brokers"),
        (replace(TRIO, links=(AB, BC, Link("c", "a"))), "'c' and 'a' is not one of two of its brokers"),
        (replace(TRIO, links=(AB._replace(cost=0), BC)), "'a' and 'b' costs 0; it must be from 1"),
        (replace(TRIO, links=(AB, BC._replace(cost=LINK_COST_MAX + 1))), "'b' and 'c' costs 2147483649;"),
        (replace(TRIO, number=0), "its number is 0, and must be from 1"),
        (replace(TRIO, number=TOPOLOGY_NUMBER_MAX + 1), "and must be from 1 to 9007199254740992"),
        (
            replace(TRIO, members=(A, B, C._replace(number=BROKER_NUMBER_MAX + 1))),
            "a broker has the number 16384; the highest is 16383",
        ),
        (
            replace(TRIO, members=tuple(each._replace(leaving=True) for each in TRIO.members)),
            "all of its brokers are leaving",
        ),
        (replace(TRIO, links=(AB,)), "no path that avoids leaving brokers leads from 'a' to 'c'"),
        (TRIO.left("b"), "no path that avoids leaving brokers leads from 'a' to 'c'"),
    ],
)
def test_each_rule_is_told_by_its_own_words(topology: Topology, reason: str) -> None:
    """One thing is wrong, and the fault names it."""
    assert reason in str(fault(topology))
    assert naive_fault(topology)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (TRIO, TRIO, "its number is 1, and 1 is known already"),
        (TRIO.linked("a", "c"), TRIO, "its number is 1, and 2 is known already"),
        (LEFT.without("c"), replace(LEFT.without("c"), number=9, retired=()), "no longer listed"),
        (TRIO, TRIO.without("c"), "'c' may only go after it was leaving"),
        (
            LEFT,
            replace(LEFT.without("c"), retired=()),
            "'c' may only go after it was leaving, and must then be listed as retired",
        ),
        (LEFT, replace(LEFT.without("c"), retired=(("c", 7),)), "must then be listed as retired"),
        (LEFT, replace(TRIO, number=3), "'c' is leaving and cannot stay"),
        *(
            (
                TRIO,
                replace(TRIO, number=2, members=(A, B, C._replace(**change))),
                "'c' cannot get another number, cluster or beginning",
            )
            for change in ({"number": 3}, {"cluster": "far"}, {"since": 2})
        ),
        *(
            (
                LEFT.without("c"),
                replace(
                    LEFT.without("c").joined("d", {"a": 1}),
                    members=(A, B, Member("d", **{"number": 3, "since": 4} | change)),  # type: ignore[arg-type]
                ),
                "'d' is new: it needs a number above all others and since 4",
            )
            for change in ({"since": 3}, {"since": 5}, {"since": FIRST})
        ),
        (
            TRIO.joined("d", {"a": 1}).left("d").without("d"),
            replace(
                TRIO.joined("d", {"a": 1}).left("d").without("d"),
                number=9,
                members=(A, B, C, Member("e", 3, since=9)),
                retired=(("d", 3),),
            ),
            "a number is used twice, or is that of a retired broker",
        ),
        (
            replace(TRIO, members=(A, B, C._replace(number=5))),
            replace(TRIO, number=2, members=(A, B, Member("d", 4, since=2), C._replace(number=5))).linked(
                "a", "d"
            ),
            "'d' is new: it needs a number above all others",
        ),
    ],
)
def test_what_may_not_follow_is_told_why(before: Topology, after: Topology, reason: str) -> None:
    """A topology that is well by itself may still not follow the one before."""
    assert reason in str(fault(after, before))


def test_a_topology_may_follow_one_that_is_several_back() -> None:
    """Whoever missed some of them takes the newest: a broker that came and is leaving, one that has gone."""
    after = TRIO.left("c").without("c").joined("d", {"a": 1}).joined("e", {"d": 2}).left("e")
    assert fault(after) is None
    assert fault(after, LEFT) is None
    assert "may only go" in str(fault(after, TRIO)), "an operator must not skip the step of leaving"


# Topologies that follow each other


def steps(topology: Topology, newcomer: str) -> st.SearchStrategy[Topology]:
    """What an operator may make of a topology."""
    names = [member.name for member in topology.members]
    leavers = [member.name for member in topology.members if member.leaving]
    any_of, costs = st.sampled_from(names), st.integers(1, 5)
    made = [
        st.builds(topology.left, any_of),
        st.dictionaries(any_of, costs, min_size=1).map(lambda links: topology.joined(newcomer, links, "far")),
    ]
    if leavers:
        made.append(st.builds(topology.without, st.sampled_from(leavers)))
    if len(names) > 1:
        pairs = st.sampled_from(list(permutations(names, 2)))
        made.append(st.builds(lambda pair, cost: topology.linked(*pair, cost), pairs, costs))
        made.append(pairs.map(lambda pair: topology.unlinked(*pair)))
    return st.one_of(made)


@given(st.data())
def test_what_operators_do_makes_a_valid_successor_or_one_in_pieces(data: st.DataObject) -> None:
    """Joining, leaving, going, linking and unlinking break no rule but that all must be reached."""
    topology = founded(["a", "b"], [link("a", "b")])
    for step in range(data.draw(st.integers(1, 12))):
        made = data.draw(steps(topology, f"n{step}"))
        wrong = fault(made, topology)
        assert made.number == topology.number + 1
        assert made.order > topology.order
        if wrong is None:
            topology = made
        else:
            assert "no path" in wrong or "all of its brokers are leaving" in wrong
    assert fault(topology) is None


def test_what_each_step_makes() -> None:
    """A newcomer, a link at another cost, one less, and a broker that leaves and goes, with all its links."""
    joined = TRIO.joined("d", {"c": 2, "a": 3}, "far")
    assert joined.members[-1] == Member("d", 3, "far", since=2)
    assert joined.links == (AB, Link("a", "d", 3), BC, Link("c", "d", 2))
    assert joined.neighbours("d") == ("a", "c")
    assert TRIO.linked("c", "a", 4).links == (AB, Link("a", "c", 4), BC)
    assert TRIO.linked("b", "a", 4).links == (AB._replace(cost=4), BC)
    assert TRIO.unlinked("b", "a").links == (BC,)
    assert LEFT.members == (A, B, C._replace(leaving=True))
    assert LEFT.links == TRIO.links
    gone = LEFT.without("c")
    assert (gone.members, gone.links, gone.retired) == ((A, B), (AB,), (("c", 2),))
    assert gone.member("c") is None


def test_neighbours_are_by_their_numbers() -> None:
    """So the first of them, a newcomer's sponsor, is the one with the lowest number."""
    topology = founded(["z", "m", "a"], [link("z", "a"), link("m", "a")]).joined("b", {"a": 1, "z": 1})
    assert topology.neighbours("a") == ("z", "m", "b")
    assert topology.neighbours("b") == ("z", "a")
    assert topology.neighbours("nobody") == ()


# Order


@given(graphs(), graphs())
def test_of_two_topologies_one_wins_unless_they_are_equal(one: Topology, other: Topology) -> None:
    """The higher number, and of one number the higher digest: whoever compares comes to the same."""
    later = replace(one, number=other.number + 1)
    assert later.order > other.order
    assert (one.order == other.order) == (one == other)
    assert (hash(one) == hash(other)) or one != other
    assert replace(one).order == one.order


def test_the_order_is_the_same_in_every_process() -> None:
    """It is made of what the topology says and of nothing else."""
    assert TRIO.order == (1, 0xCAD20A2F8A15EDE3)
    assert founded(["a", "b", "c"], reversed(TRIO.links)).order == TRIO.order
    assert TRIO.linked("a", "c").order != TRIO.linked("a", "c", 2).order


def test_a_topology_describes_itself() -> None:
    """A line for each broker, and one for those that have gone."""
    topology = LEFT.joined("d", {"a": 3}, "far").without("c").left("a")
    assert topology.describe() == (
        "topology 5\n"
        "  0 a on main, leaving: linked with b (1), d (3)\n"
        "  1 b on main: linked with a (1)\n"
        "  3 d on far: linked with a (3)\n"
        "  retired: c"
    )
    assert founded(["a"]).describe() == "topology 1\n  0 a on main: linked with nobody"
