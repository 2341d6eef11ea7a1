"""Every matching finds who an oracle says is interested, whatever has come and gone before.

A script subscribes, replaces and ends at one broker, where the subscriptions of its own are owners themselves
and those of other homes count for the home, so that one owner is interested in the same for several reasons.
The Routing Tree hears of it late and is told now and then, which matters to whoever matches along it. Who can
match many events at once is asked in both ways.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any, NamedTuple

import filter_texts
import pytest
import strategies as our
from every_method import EVERY_MATCHING
from hypothesis import assume, given, note
from hypothesis import strategies as st

from branchline.ops.simulation.drawing import random_event, random_filter
from branchline.routing.choices import each_choice
from branchline.routing.codes import Rejection
from branchline.routing.compiled.paths import Paths
from branchline.routing.compiling import Compiled, compile_expression
from branchline.routing.control import Identity
from branchline.routing.evaluate import evaluate
from branchline.routing.event import Event
from branchline.routing.methods.naming import Methods, make_matching
from branchline.routing.methods.protocols import Indexed, Interest, Matching
from branchline.routing.methods.table import TableMatching
from branchline.routing.overlay.entering import scan_attributes
from branchline.routing.prefix.delivering import decide
from branchline.routing.prefix.forwarding import Found
from branchline.routing.prefix.optimizer import Optimizer, Settings
from branchline.routing.prefix.places import Owner
from branchline.routing.prefix.trees import Trees
from branchline.routing.spellings import SPELLINGS
from branchline.routing.values import JsonValue

HERE = "here"
IDENTITIES = [
    Identity(home, subscriber, name)
    for home in (HERE, "far", "off")
    for subscriber in ("ann", "bob")
    for name in ("one", "two")
]
OWNERS = sorted({identity if identity.home == HERE else identity.home for identity in IDENTITIES}, key=str)
KINDS = "ssssssuummmmtt"
"""Subscribe or replace, unsubscribe, match, tell the tree."""


class Wanted(frozenset[Owner]):
    """These owners are looked for. All of them, as where events are delivered."""

    def enough(self, found: Found) -> bool:
        return self <= found.certain


class AnyOf(Wanted):
    """One of these owners is enough, as where all are behind one hop."""

    def enough(self, found: Found) -> bool:
        return bool(found.certain | found.doubtful)


class Step(NamedTuple):
    kind: str
    choice: int


@dataclass(frozen=True)
class Script:
    """What is subscribed to, what is published, and what happens."""

    pool: tuple[Compiled, ...]
    events: tuple[dict[str, JsonValue], ...]
    steps: tuple[Step, ...]


class Run:
    """A script as one matching plays it."""

    def __init__(self, name: str, script: Script, matching: Matching | None = None) -> None:
        self._script = script
        self._optimizer = Optimizer(1, Settings(threshold=0.0, spare_nodes=20))
        self._trees = Trees()
        self._matching = matching or make_matching(Methods(matching=name), self._trees)
        self._standing: dict[Identity, Compiled] = {}
        self._to_optimizer: list[tuple[bool, Compiled]] = []
        self._paths = Paths()
        self.found = self.matched = 0

    def play(self) -> "Run":
        """All steps, all events; then everybody leaves."""
        pool = self._script.pool
        for kind, choice in self._script.steps:
            identity = IDENTITIES[choice % len(IDENTITIES)]
            match kind:
                case "s":
                    self._exchange(identity, pool[choice // len(IDENTITIES) % len(pool)])
                case "u":
                    self._exchange(identity, None)
                case "m":
                    self.check(self._script.events[choice % len(self._script.events)], choice)
                case "t":
                    self._tell()
        for choice, event in enumerate(self._script.events):
            self.check(event, choice)
        for identity in list(self._standing):
            self._exchange(identity, None)
        for event in self._script.events:
            found = self._matching.match(Event(event))
            assert not found.certain and not found.doubtful, "found, and gone"
        return self

    def _exchange(self, identity: Identity, after: Compiled | None) -> None:
        """As a broker does it: first the new filter, then the old one goes."""
        owner = _owner(identity)
        before = self._standing.pop(identity, None)
        if after is not None:
            self._standing[identity] = after
            self._matching.add(Interest(identity, after, owner))
            self._to_optimizer.append((True, after))
        if before is not None:
            self._matching.remove(Interest(identity, before, owner))
            self._to_optimizer.append((False, before))

    def _tell(self) -> None:
        for joins, compiled in self._to_optimizer:
            (self._optimizer.subscribe if joins else self._optimizer.unsubscribe)(compiled.cover)
        self._to_optimizer.clear()
        for update in self._optimizer.updates(0):
            self._trees.apply(update)

    def check(self, attributes: dict[str, JsonValue], choice: int) -> None:
        """Nobody is missed, nobody is certain wrongly, and who is owed the event here is who gets it."""
        verdicts = {
            identity: evaluate(compiled.expression, attributes)
            for identity, compiled in self._standing.items()
        }
        interested = {_owner(identity) for identity, verdict in verdicts.items() if verdict is True}
        found = self._matching.match(Event(attributes))
        everybody = found.certain | found.doubtful
        assert interested <= everybody, "missed"
        assert everybody <= {_owner(identity) for identity in self._standing}, "found, and not there"
        covered = {
            _owner(identity)
            for identity, compiled in self._standing.items()
            if _owner(identity) in found.certain and _holds(compiled, attributes)
        }
        assert found.certain == covered, "certain, and wrong"
        again = self._matching.match(Event(attributes))
        assert (again.certain, again.doubtful) == (found.certain, found.doubtful), "matching changes nothing"
        self._check_batch(everybody, interested, attributes)
        self._check_delivered(found, verdicts, attributes)
        some = [owner for place, owner in enumerate(OWNERS) if choice >> place & 1]
        for wanted in (Wanted(some), AnyOf(some)):
            part = self._matching.match(Event(attributes), wanted)
            assert part.certain | part.doubtful <= wanted, "not wanted"
            assert interested & wanted <= part.certain | part.doubtful or wanted.enough(part), "missed"
        self.found += len(everybody)
        self.matched += len(interested)

    def _check_batch(
        self, everybody: Set[Owner], interested: Set[Owner], attributes: dict[str, JsonValue]
    ) -> None:
        """Among others, an event finds whom it finds alone; but for arrays, of which a batch knows more."""
        interests = self._matching.interests(self._paths) if isinstance(self._matching, Indexed) else None
        if interests is None:
            return
        batch: list[dict[str, JsonValue]] = [{}, attributes, attributes]
        scan = scan_attributes(self._paths, batch)
        found: list[set[Owner]] = [set() for _ in batch]
        for each in interests:
            for number, code in zip(*each.match(scan.scanned, len(batch)), strict=True):
                found[number].add(each.owner(int(code)))
        for number in {1, 2} - set(scan.unrowed):
            assert interested <= found[number] <= everybody, "another answer in a batch"
            assert scan.arrays[number] or found[number] == everybody, "another answer in a batch"

    def _check_delivered(
        self,
        found: Found,
        verdicts: Mapping[Identity, bool | Rejection],
        attributes: dict[str, JsonValue],
    ) -> None:
        own: dict[Any, Compiled] = {
            identity: compiled for identity, compiled in self._standing.items() if identity.home == HERE
        }
        local = Found(found.certain & own.keys(), found.doubtful & own.keys())
        owed = decide(local, own, Event(attributes))
        assert owed.owners == {identity for identity in own if verdicts[identity] is True}
        assert all(isinstance(verdicts[identity], Rejection) for identity in owed.undecided)  # type: ignore[index]


def _owner(identity: Identity) -> Owner:
    return identity if identity.home == HERE else identity.home


def _holds(compiled: Compiled, attributes: dict[str, JsonValue]) -> bool:
    """Whether the cover holds for one of the events that an event with arrays stands for."""
    paths = {constraint.path for filter_ in compiled.cover for constraint in filter_}
    choices: Any = each_choice(paths, attributes)
    return any(Event(choice).may_match(compiled.cover) for choice in choices)


# Scripts

OF_ARRAYS = ("items.a = 1 AND items.b > 1", "items.a = 0 AND items.b = 2", "items = 1 AND a = 1")


@cache
def simple_filters() -> list[Compiled]:
    """Filters that cover each other and overlap, of few attributes."""
    random = Random("matchings")
    return [made for _ in range(200) if (made := _compiled(random_filter(random))) is not None]


def _compiled(text: str) -> Compiled | None:
    made = compile_expression(filter_texts.expression_of("sql", text))
    return made if isinstance(made, Compiled) else None


@st.composite
def satisfiable(draw: st.DrawFn, expressions: st.SearchStrategy[Any]) -> Compiled:
    made = compile_expression(draw(expressions))
    for _ in range(4):
        if isinstance(made, Rejection):
            made = compile_expression(draw(expressions))
    assume(isinstance(made, Compiled))
    return made  # type: ignore[return-value]


steps = st.lists(st.builds(Step, st.sampled_from(KINDS), st.integers(0, 2**20)), max_size=25).map(tuple)


@st.composite
def scripts(draw: st.DrawFn, filters: st.SearchStrategy[Compiled]) -> Script:
    """Few filters, so that the same comes again and again, and events that each of them often matches."""
    pool = draw(st.lists(filters, min_size=1, max_size=5))
    events = [draw(filter_texts.events_for(each.expression)) for each in pool]
    events.append(draw(our.events(our.few_names)))
    return Script(tuple(pool), tuple(events), draw(steps))


def many(seed: int) -> Script:
    """A long script of filters that meet often, some of them in the same objects of an array."""
    random = Random(f"many {seed}")
    of_arrays = [compiled for text in OF_ARRAYS if (compiled := _compiled(text)) is not None]
    return Script(
        tuple(random.sample(simple_filters(), 10) + of_arrays),
        (*(random_event(random) for _ in range(20)), *our.EVENTS),
        tuple(Step(random.choice(KINDS), random.randrange(2**20)) for _ in range(80)),
    )


def play_all(script: Script) -> None:
    """The same script with every matching: drawing it is what takes time."""
    for name in EVERY_MATCHING:
        note(f"matching = {name}")
        Run(name, script).play()


@given(scripts(satisfiable(our.expressions())))
def test_nobody_is_missed_whatever_comes_and_goes(script: Script) -> None:
    """For expressions of all shapes, on values of all kinds, that are missing, null or in arrays."""
    play_all(script)


@pytest.mark.parametrize("spelling", sorted(SPELLINGS))
def test_nobody_is_missed_in_any_spelling(spelling: str) -> None:
    """The same for filters as the reader of each spelling makes them."""
    texts = filter_texts.TEXTS[spelling].map(lambda text: filter_texts.expression_of(spelling, text))

    @given(scripts(satisfiable(texts)))
    def check(script: Script) -> None:
        play_all(script)

    check()


@pytest.mark.parametrize("matching", EVERY_MATCHING)
def test_nobody_is_missed_among_many(matching: str) -> None:
    """In long scripts of filters that meet often; and much is found in them."""
    found = matched = 0
    for seed in range(6):
        run = Run(matching, many(seed)).play()
        found, matched = found + run.found, matched + run.matched
    assert found >= matched > 200


# The scripts by themselves


class Forgetful(TableMatching):
    """Who leaves for one reason is gone for all."""

    def remove(self, interest: Interest) -> None:
        for filter_ in interest.compiled.cover:
            if filter_ in self._owning:
                self._owning[filter_].pop(interest.owner, None)


class Sure(TableMatching):
    """Arrays leave no doubt."""

    def match(self, event: Event, wanted: Any = None) -> Found:
        found = super().match(event, wanted)
        return Found(found.certain | found.doubtful)


class Generous(TableMatching):
    """Finds also whom nobody looks for."""

    def match(self, event: Event, wanted: Any = None) -> Found:
        return super().match(event)


class Narrow(TableMatching):
    """Keeps only the first filter of each cover."""

    def add(self, interest: Interest) -> None:
        super().add(replace(interest, compiled=replace(interest.compiled, cover=interest.compiled.cover[:1])))

    def remove(self, interest: Interest) -> None:
        super().remove(
            replace(interest, compiled=replace(interest.compiled, cover=interest.compiled.cover[:1]))
        )


class Clinging(TableMatching):
    """Forgets nobody."""

    def remove(self, interest: Interest) -> None:
        return


@pytest.mark.parametrize("bug", [Forgetful, Sure, Generous, Narrow, Clinging])
def test_the_scripts_see_what_is_wrong(bug: type[TableMatching]) -> None:
    """A matching that misses, is sure without reason, or finds whom it should not, fails."""
    with pytest.raises(AssertionError):
        for seed in range(6):
            Run("table", many(seed), bug()).play()
