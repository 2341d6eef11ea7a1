"""Links: neighbours come to know what is wanted behind each link, and only answer when all is settled."""

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from table_filters import filters_in, sql

from branchline.routing.dissemination.link_facts import Answered, Confirmed, Heard, LinkFact
from branchline.routing.dissemination.links import Links
from branchline.routing.dissemination.strategies import make_dissemination
from branchline.routing.dissemination.telling import TOLD_PIECE, Exchange, Settled, Stream, Told, pieces
from branchline.routing.filters import EVERYTHING, Filter, covers, overlaps
from branchline.routing.methods.protocols import OnTree
from branchline.routing.overlay.position import Position
from branchline.routing.overlay.topology import Topology, founded, link

NAMES = ("a", "b", "c", "d", "e")
TEXTS = ("x > 1", "x > 5", "x = 7", "y = 1", "x > 5 AND y = 1", "z = 'k'", "TRUE", "x BETWEEN 2 AND 3")
FILTERS: list[Filter] = [each for text in TEXTS for each in filters_in(sql(text))]


@dataclass
class Side:
    """One broker's links, what is asked on behalf of neighbours, and the facts so far."""

    name: str
    strategy: str
    asked: dict[str, Counter[Filter]] = field(default_factory=dict)
    facts: list[LinkFact] = field(default_factory=list)

    def __post_init__(self) -> None:
        made = make_dissemination(self.strategy)
        assert isinstance(made, OnTree)
        self.position = Position(self.name, on_tree=True)
        self.links = Links(self.position, made.summary, self._exchange, made.advertising)

    def _exchange(self, name: str, before: Iterable[Filter], after: Iterable[Filter]) -> None:
        asked = self.asked.setdefault(name, Counter())
        asked.update(after)
        asked.subtract(before)
        assert min(asked.values(), default=0) >= 0, "what goes was there"

    def wanted(self, name: str) -> set[Filter]:
        return set(+self.asked.get(name, Counter()))

    def take(self, topology: Topology) -> None:
        before = self.position.topology
        self.position.take(topology)
        self.links.rebase(before)

    def do(self, fact: LinkFact) -> None:
        self.facts.append(fact)
        self.links.obey(fact)


class Overlay:
    """Brokers whose letters arrive in the order of each link, in whatever order otherwise."""

    def __init__(self, topology: Topology, strategy: str, random: Random) -> None:
        self.sides = {member.name: Side(member.name, strategy) for member in topology.members}
        self.mail: dict[tuple[str, str], deque[Told | Settled]] = {}
        self.random = random
        self.own: dict[str, Counter[Filter]] = {name: Counter() for name in self.sides}
        for side in self.sides.values():
            side.take(topology)

    def finish(self, side: Side) -> None:
        for sent in side.links.tell(1):
            side.do(sent)
            self.mail.setdefault((side.name, sent.to), deque()).append(sent.told)
        for owed in side.links.owing():
            side.do(owed)
        for to, settled in list(side.links.answers()):
            side.do(Answered(to, settled.number))
            self.mail.setdefault((side.name, to), deque()).append(settled)

    def step(self) -> bool:
        ways = sorted(way for way, letters in self.mail.items() if letters)
        if not ways:
            return False
        sender, to = self.random.choice(ways)
        letters, side = self.mail[sender, to], self.sides[to]
        for _ in range(self.random.randint(1, len(letters))):
            body = letters.popleft()
            if isinstance(body, Told):
                if side.links.accepts(sender, body):
                    side.do(Heard(sender, body))
            elif side.links.confirms(sender, body):
                side.do(Confirmed(sender, body))
        self.finish(side)
        return True

    def change(self) -> None:
        name = self.random.choice(sorted(self.sides))
        own, filter_ = self.own[name], self.random.choice(FILTERS)
        if own[filter_] and self.random.random() < 0.5:
            own[filter_] -= 1
            self.sides[name].links.own([filter_], [])
        else:
            own[filter_] += 1
            self.sides[name].links.own([], [filter_])
        self.finish(self.sides[name])

    def behind(self, side: Side, neighbour: str) -> list[Filter]:
        """All that is wanted behind a link, as an oracle knows it."""
        homes = side.position.routes.behind[neighbour]
        numbers = side.position.routes.numbers
        return [each for name, own in self.own.items() if homes >> numbers[name] & 1 for each in +own]

    def check(self) -> None:
        """Each side knows just what is wanted behind each link, and all is settled."""
        for side in self.sides.values():
            assert not side.links.marks()
            for neighbour in side.position.routes.behind:
                wanted, behind = side.wanted(neighbour), self.behind(side, neighbour)
                assert wanted <= set(behind)
                for each in behind:
                    assert any(covers(told, each) for told in wanted), (side.name, neighbour, each)


def some_topology(random: Random) -> Topology:
    names = NAMES[: random.randint(2, len(NAMES))]
    links = {link(names[at], random.choice(names[:at]), random.choice((1, 2))) for at in range(1, len(names))}
    for _ in range(random.randint(0, 2)):
        one, other = random.sample(names, 2)
        if not any(each[:2] == link(one, other)[:2] for each in links):
            links.add(link(one, other, random.choice((1, 2))))
    return founded(names, links)


@given(st.integers(0, 10**6), st.sampled_from(["identity", "covering", "covering+poset"]))
def test_when_all_is_quiet_each_side_knows_what_is_wanted_behind_a_link(seed: int, strategy: str) -> None:
    """All of it and nothing else, whatever came and went; and everything that was told is settled."""
    random = Random(seed)
    overlay = Overlay(some_topology(random), strategy, random)
    for side in overlay.sides.values():
        overlay.finish(side)
    for _ in range(random.randint(0, 25)):
        overlay.change()
        for _ in range(random.randint(0, 3)):
            overlay.step()
    while overlay.step():
        pass
    overlay.check()


@given(st.integers(0, 10**6))
def test_when_all_is_quiet_each_side_knows_what_overlaps_its_advertisements(seed: int) -> None:
    """Of what is wanted behind a link, just what overlaps something that is advertised on this side of it."""
    random = Random(seed)
    overlay = Overlay(some_topology(random), "identity+advertised", random)
    adverts: dict[str, Counter[Filter]] = {name: Counter() for name in overlay.sides}
    for side in overlay.sides.values():
        overlay.finish(side)
    for _ in range(random.randint(0, 25)):
        if random.random() < 0.5:
            overlay.change()
        else:
            name, filter_ = random.choice(sorted(overlay.sides)), random.choice(FILTERS)
            ends = adverts[name][filter_] > 0 and random.random() < 0.5
            before, after = ([filter_], []) if ends else ([], [filter_])
            adverts[name].update(after)
            adverts[name].subtract(before)
            overlay.sides[name].links.own_adverts(before, after)
            overlay.finish(overlay.sides[name])
        for _ in range(random.randint(0, 3)):
            overlay.step()
    while overlay.step():
        pass
    for side in overlay.sides.values():
        assert not side.links.marks()
        numbers = side.position.routes.numbers
        for neighbour, homes in side.position.routes.behind.items():
            here = [each for name, own in adverts.items() if not homes >> numbers[name] & 1 for each in +own]
            behind = overlay.behind(side, neighbour)
            overlapping = {each for each in behind if any(overlaps(each, advert) for advert in here)}
            assert side.wanted(neighbour) == overlapping


@given(st.integers(0, 10**6))
def test_what_is_settled_is_known_wherever_it_leads(seed: int) -> None:
    """A home whose marks are settled is stood for at every broker, while others still change things."""
    random = Random(seed)
    overlay = Overlay(some_topology(random), "covering", random)
    for side in overlay.sides.values():
        overlay.finish(side)
    for _ in range(10):
        overlay.change()
    home = overlay.sides[random.choice(sorted(overlay.sides))]
    filter_ = random.choice(FILTERS)
    home.links.own([], [filter_])
    overlay.own[home.name][filter_] += 1
    overlay.finish(home)
    marks = home.links.marks()
    while home.links.missing(marks):
        assert overlay.step(), "who waits gets an answer"
    for side in overlay.sides.values():
        if side is not home:
            hop = side.position.routes.hops[home.name]
            assert any(covers(told, filter_) for told in side.wanted(hop)), side.name


@given(
    st.integers(0, 10**6), st.sampled_from(["identity", "covering", "covering+advertised", "covering+poset"])
)
def test_facts_make_equal_links(seed: int, strategy: str) -> None:
    """Those that were written down, and those of a snapshot; then both tell and owe the same."""
    random = Random(seed)
    overlay = Overlay(some_topology(random), strategy, random)
    for side in overlay.sides.values():
        overlay.finish(side)
    for _ in range(random.randint(0, 12)):
        overlay.change()
        for _ in range(random.randint(0, 4)):
            overlay.step()
    for side in overlay.sides.values():
        assert side.position.topology is not None
        for facts in (side.facts, list(side.links.facts())):
            again = Side(side.name, strategy)
            again.take(side.position.topology)
            for filter_, reasons in (+overlay.own[side.name]).items():
                again.links.own([], [filter_] * reasons)
            for fact in facts:
                again.links.obey(fact)
            assert list(again.links.facts()) == list(side.links.facts())
            assert list(again.links.tell(1)) == []
            assert again.links.owing() == side.links.owing() == []
            for neighbour in side.position.routes.behind:
                assert again.wanted(neighbour) == side.wanted(neighbour)


def test_whoever_has_told_nothing_wants_everything() -> None:
    """Also as others are told; until it has told what it wants."""
    line = founded(["a", "b", "c"], [link("a", "b"), link("b", "c")])
    middle = Side("b", "covering")
    middle.take(line)
    assert middle.wanted("a") == middle.wanted("c") == {EVERYTHING}
    (to_a, to_c) = list(middle.links.tell(1))
    assert (to_a.told.wanted.added, to_c.told.wanted.added) == ((EVERYTHING,), (EVERYTHING,))
    middle.links.obey(to_a)
    middle.links.obey(to_c)
    told = Told(Stream(line.order, 5), 1, Exchange((FILTERS[2],)), whole=True)
    assert middle.links.accepts("a", told)
    middle.do(Heard("a", told))
    assert middle.wanted("a") == {FILTERS[2]}
    (again,) = list(middle.links.tell(2))
    assert again.to == "c"
    assert again.told.wanted == Exchange((FILTERS[2],), (EVERYTHING,))


def test_a_change_of_links_forgets_only_what_it_touches() -> None:
    """A neighbour that has no home behind it which it has not told of is still known."""
    line = founded(["a", "b", "c", "d"], [link("a", "b"), link("b", "c"), link("c", "d")])
    side = Side("b", "covering")
    side.take(line)
    for name, filter_ in (("a", FILTERS[0]), ("c", FILTERS[3])):
        side.do(Heard(name, Told(Stream(line.order, 1), 1, Exchange((filter_,)), whole=True)))
    moved = line.linked("a", "d").unlinked("c", "d")
    side.take(moved)
    assert side.wanted("a") == {EVERYTHING}, "d is behind it now"
    assert side.wanted("c") == {FILTERS[3]}
    joined = moved.joined("e", {"c": 1})
    side.take(joined)
    assert side.wanted("c") == {FILTERS[3]}, "who is new has told nobody anything"


def test_whoever_waits_is_answered_though_a_stream_begins_anew() -> None:
    """What was told before is in the new one, whose numbers begin with one again."""
    side = Side("b", "covering")
    side.take(founded(["a", "b"], [link("a", "b")]))
    for filter_ in FILTERS[:4]:
        side.links.own([], [filter_])
        for sent in side.links.tell(1):
            side.do(sent)
    marks = side.links.marks()
    assert marks[0][1] > 1
    side.links.tell_anew("a")
    assert side.links.missing(marks) == ["a"]
    (again,) = side.links.tell(2)
    side.do(again)
    assert side.links.missing(marks) == ["a"]
    side.do(Confirmed("a", Settled(again.told.stream, 1)))
    assert side.links.missing(marks) == []


def test_letters_of_another_time_are_let_lie() -> None:
    """Of another topology, an earlier stream, or a second time; one that leaves a gap makes one ask."""
    line = founded(["a", "b"], [link("a", "b")])
    side = Side("b", "covering")
    side.take(line)
    stream = Stream(line.order, 5)
    whole = Told(stream, 1, Exchange((FILTERS[0],)), whole=True)
    assert side.links.accepts("c", whole) is False
    assert side.links.accepts("a", Told(Stream((2, 2), 5), 1, Exchange(), whole=True)) is False
    assert side.links.accepts("a", Told(stream, 2, Exchange())) is None
    side.do(Heard("a", whole))
    assert side.links.accepts("a", whole) is False
    assert side.links.accepts("a", Told(stream, 2, Exchange())) is True
    assert side.links.accepts("a", Told(stream, 3, Exchange())) is None
    assert side.links.accepts("a", Told(Stream(line.order, 4), 1, Exchange(), whole=True)) is False
    assert side.links.accepts("a", Told(Stream(line.order, 6), 1, Exchange(), whole=True)) is True


def test_a_table_is_told_in_pieces_and_stands_when_it_is_whole() -> None:
    """Until then what was known before stands; what comes is told before what goes."""
    many = tuple(filters_in(sql(*(f"x = {number}" for number in range(2 * TOLD_PIECE + 1)))))
    cut = pieces(Exchange(many, many[:1]))
    assert [len(each.added) for each in cut] == [TOLD_PIECE, TOLD_PIECE, 1, 0]
    assert cut[-1].removed == many[:1]
    line = founded(["a", "b"], [link("a", "b")])
    teller, hearer = Side("a", "identity"), Side("b", "identity")
    for side in (teller, hearer):
        side.take(line)
    teller.links.own([], many)
    letters = [sent.told for sent in teller.links.tell(1)]
    assert [told.complete for told in letters] == [False, False, True]
    for told in letters:
        assert hearer.wanted("a") == {EVERYTHING}
        hearer.do(Heard("a", told))
    assert hearer.wanted("a") == set(many)
