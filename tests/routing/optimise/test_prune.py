"""Pruning as an optimisation: tables of other homes grow simpler, and go by what was learned of events."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import events
from table_filters import NAMES, interests

from branchline.ops.simulation.runner import Runner
from branchline.ops.simulation.scripts import Script, play_all
from branchline.routing.boolean.trees import describe, leaves
from branchline.routing.compiling import Compiled, compile_filter
from branchline.routing.control import Identity
from branchline.routing.event import Event
from branchline.routing.methods.boolean import BooleanMatching
from branchline.routing.methods.naming import Methods, misfit
from branchline.routing.methods.optimised import OptimisedMatching
from branchline.routing.methods.protocols import Interest, Matching
from branchline.routing.methods.table import TableMatching
from branchline.routing.optimise import learned
from branchline.routing.optimise.entries import node_of
from branchline.routing.optimise.learned import Counted, Learned, is_due, learn, readable, sample
from branchline.routing.optimise.prune import PRUNED, make
from branchline.routing.optimise.prune_precision import make as make_precision
from branchline.routing.optimise.prune_time import make as make_time
from branchline.routing.optimise.selectivity import Assumed
from branchline.routing.shard import Shard
from branchline.routing.values import JsonValue

PRUNED_TREES = Methods("rematch", "boolean", optimise=("prune(60)",))
PRUNED_FILTERS = Methods("rematch", "table", optimise=("prune(60)",))


def told(asked: list[Interest], below: Matching, *percent: int) -> OptimisedMatching:
    trees = isinstance(below, BooleanMatching)
    made = OptimisedMatching(below, [make(each) for each in percent], trees=trees)
    for interest in asked:
        made.add(interest)
    return made


def here(owners: set[object]) -> set[object]:
    return {each for each in owners if isinstance(each, Identity)}


@pytest.mark.parametrize("below", [BooleanMatching, TableMatching])
@given(data=st.data())
def test_pruning_finds_more_and_here_the_same(below: type[Matching], data: st.DataObject) -> None:
    """The more is pruned the more homes are found, and those of subscriptions here are the same always."""
    asked = data.draw(interests())
    tables = [told(asked, below(), percent) for percent in (0, 40, 100)]
    for attributes in data.draw(st.lists(events(NAMES), max_size=4)):
        found = [table.match(Event(attributes)) for table in tables]
        owners = [each.certain | each.doubtful for each in found]
        assert owners[0] <= owners[1] <= owners[2]
        assert here(owners[0]) == here(owners[2])
        pruned = [each.counts.get(PRUNED, 0) for each in found]
        assert pruned[0] == 0
        assert pruned == sorted(pruned)


def test_what_is_pruned_is_counted_and_gone() -> None:
    """The table has as many predicates less as are counted, and the rest says what it said."""
    table = told([interest("x = 1 AND y > 2 AND (z = 3 OR z = 4)", "dublin")], BooleanMatching(), 100)
    found = table.match(Event({}))
    (entry,) = table.table("dublin")
    assert found.counts[PRUNED] == 4 - len(list(leaves(node_of(entry))))
    assert describe(node_of(entry)) in ("x = 1", "y > 2", "z = 3 OR z = 4")


def interest(text: str, owner: str) -> Interest:
    compiled = compile_filter("sql", text)
    assert isinstance(compiled, Compiled)
    return Interest(Identity(owner, "ann", text), compiled, owner)


def test_what_hardly_any_event_satisfies_is_kept() -> None:
    """Once it was learned that nearly all events have x > 0, that is what goes."""
    table = told([interest("x > 0 AND y > 0", "dublin")], BooleanMatching(), 50)
    happened = [Event({"x": 1, "y": -1})] * 30
    assert table.is_due()
    table.learn(table.sampled(happened))
    assert not table.is_due()
    (entry,) = table.table("dublin")
    assert describe(node_of(entry)) == "y > 0"
    assert table.match(happened[0]).certain == set()
    table.add(interest("x > 1 AND y > 1", "dublin"))
    assert not table.is_due()
    for number in range(3):
        table.add(interest(f"x > {number} AND y > 3", "virginia"))
    assert table.is_due(), "there are more than twice as many entries"


def test_targets_are_named() -> None:
    """Time and precision are other ways to say how far to go; what is told is pruned by what tells it."""
    assert misfit(PRUNED_TREES) is None
    for text in ("prune", "prune-time(30)", "prune-precision(5)"):
        assert misfit(Methods("rematch", "boolean", optimise=(text,))) is None
    wrong = misfit(Methods("rematch", "boolean", optimise=("pre-prune(30)",)))
    assert wrong == (
        "optimise = 'pre-prune(30)': what is pruned before it is told to others is chosen with the "
        "dissemination, as in covering+pre-prune"
    )
    asked = told([interest("x > 0 AND y > 0 AND z = 1", "dublin")], BooleanMatching())
    entries = list(asked.table("dublin"))
    assumed = Assumed(entries)
    for made in (make_time(100), make_precision(1_000), make(100)):
        assert made.optimise(entries, assumed).counts[PRUNED] == 2
    for made in (make_time(0), make_precision(0), make(0)):
        assert made.optimise(entries, assumed).counts[PRUNED] == 0


# What was learned


@given(interests(most=4), st.lists(events(NAMES), min_size=1, max_size=5))
def test_shares_are_what_was_counted(asked: list[Interest], happened: list[dict[str, JsonValue]]) -> None:
    """The share of a constraint is that of the events that satisfy it, or less than one of them has."""
    used = Counter(each for interest in asked for filter_ in interest.compiled.cover for each in filter_)
    looked = [Event(each) for each in happened]
    known = learn(1, len(asked), used, looked)
    shares = Counted(known, used, Assumed([]))
    for constraint in used:
        count = sum(event.may_match(((constraint,),)) for event in looked)
        share = shares.share(constraint)
        assert share == count / len(looked) if count else 0 < share <= 0.5 / len(looked)
    assert readable(known.counted) == known.counted
    assert learn(1, len(asked), Counter(dict(reversed(used.items()))), looked) == known


def test_others_borrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A constraint that was not counted has the mean share of its like, or what is assumed."""
    monkeypatch.setattr(learned, "COUNTED_MOST", 2)
    one, two, three, other = (
        next(leaves(node_of(entry)))
        for text in ("x > 1", "x > 5", "x > 3", "y = 1")
        for entry in told([interest(text, "a")], BooleanMatching()).table("a")
    )
    used = Counter({one: 5, two: 4, three: 1, other: 1})
    known = learn(1, 4, used, [Event({"x": 2}), Event({"x": 9})])
    assumed = Assumed([])
    shares = Counted(known, used, assumed)
    assert [shares.share(each) for each in (one, two, three)] == [1, 0.5, 3.5 / 4]
    assert shares.share(other) == assumed.share(other)


def test_when_it_is_time_to_learn() -> None:
    """At first, and when there are more than twice as many entries or fewer than half."""
    known = Learned(1, 20, 10, b"")
    assert [is_due(None, entries) for entries in (0, 1)] == [False, True]
    assert [entries for entries in range(50) if not is_due(known, entries)] == list(range(5, 21))
    assert len(sample(range(19))) == 0
    assert len(sample(range(20))) == 20
    assert 200 <= len(sample(range(100_000))) <= 400


# In worlds


@pytest.mark.parametrize("methods", [PRUNED_TREES, PRUNED_FILTERS], ids=["trees", "filters"])
def test_scripts_with_pruned_tables_are_clean(methods: Methods, monkeypatch: pytest.MonkeyPatch) -> None:
    """With batches that crash and jobs that come back from their state, each gets what is owed, no more."""
    monkeypatch.setattr(learned, "SAMPLE_LEAST", 1)
    wrong, counts = play_all(range(8), 60, methods=methods)
    assert wrong == []
    assert counts[PRUNED] and counts["crashes"]


def test_a_rebuilt_shard_has_learned_what_a_warm_one_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script with every shard rebuilt from its state after every batch gives the same to the byte."""
    monkeypatch.setattr(learned, "SAMPLE_LEAST", 1)

    def played(seed: int) -> str:
        script = Script(seed, methods=PRUNED_TREES)
        made = script.play(40)
        return repr((script.world.history, made.copies, sorted(made.counts.items()), made.failures))

    warm = [played(seed) for seed in range(4)]
    seen: Counter[str] = Counter()
    random = Random(1)
    commit = Runner._commit

    def commit_and_rebuild(self: Runner, batch: object, results: list[object]) -> None:
        commit(self, batch, results)  # type: ignore[arg-type]
        for index, shard in enumerate(self.shards):
            if random.random() < 0.5:
                self.shards[index] = Shard(self.job, index, [shard.state()])
                brokers = self.shards[index].brokers.values()
                seen["learned"] += sum(broker.learned is not None for broker in brokers)

    monkeypatch.setattr(Runner, "_commit", commit_and_rebuild)
    assert [played(seed) for seed in range(4)] == warm
    assert seen["learned"] > 0
