"""Methods can be exchanged: who gets what stays the same, and only the work differs."""

from collections import Counter
from random import Random

import pytest

from branchline.ops.simulation.drawing import random_event, random_filter, random_setting
from branchline.ops.simulation.setting import Faults, Setting
from branchline.ops.simulation.world import World
from branchline.routing.checking import check
from branchline.routing.compiling import Compiled, compile_filter
from branchline.routing.control import Identity, Number, Operation, Request, Subscribed
from branchline.routing.dissemination.strategies import STRATEGIES, make_dissemination
from branchline.routing.event import Event
from branchline.routing.history import Read
from branchline.routing.methods.naming import (
    FORWARDING,
    MATCHING,
    Methods,
    make_forwarding,
    make_matching,
    misfit,
)
from branchline.routing.methods.protocols import Interest
from branchline.routing.methods.simple import Simple
from branchline.routing.methods.table import TableMatching
from branchline.routing.methods.words import Named, named, unknown
from branchline.routing.overlay.topology import founded
from branchline.routing.prefix.optimizer import Settings
from branchline.routing.prefix.trees import UNMATCHED, Trees

PREFIX = Methods()
TREE = Methods("rematch", "tree")
TABLE = Methods("rematch", "table")
ALWAYS = Methods("always-reuse", "table")
PARTIAL = Methods("partial-reuse(1)", "tree")
BLOOM = Methods("bloom", "table")
SPARSE = Methods("bloom-sbstree(4)", "tree")
COUNTING = Methods("rematch", "counting")
BOOLEAN = Methods("rematch", "boolean")
SEEDS = range(6)


def played(seed: int, methods: Methods) -> World:
    """A calm world in which every change settles before events are published, which settle too."""
    random = Random(f"methods {seed}")
    drawn = random_setting(random)
    trees = Settings(threshold=0.0, spare_nodes=random.choice((2, 1_000)))
    world = World(Setting(drawn.topology, drawn.jobs, methods=methods, trees=trees, faults=Faults(5)), seed)
    names = [member.name for member in drawn.topology.members]
    homes = {f"s{index}": random.choice(names) for index in range(5)}
    for _ in range(12):
        for _ in range(2):
            subscriber = random.choice(sorted(homes))
            operation = random.choice((Operation.SUBSCRIBE,) * 4 + (Operation.UNSUBSCRIBE,))
            world.ask(
                Request(
                    operation,
                    subscriber,
                    random.choice(("one", "two")),
                    homes[subscriber],
                    filter=random_filter(random),
                    request=f"r{world.counts['asked']}",
                )
            )
            world.counts["asked"] += 1
            world.settle()
        for _ in range(8):
            world.publish(random.choice(names), random_event(random), random.choice(("k", None)))
        world.settle()
    assert world.failures == []
    return world


def deliveries(world: World) -> list[tuple[object, str]]:
    return sorted((entry.event, entry.subscriber) for entry in world.history if isinstance(entry, Read))


@pytest.mark.parametrize("seed", SEEDS)
def test_all_methods_find_the_same_deliveries(seed: int) -> None:
    """Each event reaches the same subscribers, once, and those are the ones that it is owed to."""
    methods = (PREFIX, TREE, TABLE, COUNTING, BOOLEAN, ALWAYS, PARTIAL, BLOOM, SPARSE)
    worlds = [played(seed, each) for each in methods]
    first = deliveries(worlds[0])
    assert first
    for world in worlds:
        verdict = check(world.history, repeats="none")
        assert verdict.clean, verdict.describe()
        assert verdict.owed + verdict.optional == len(first)
        assert deliveries(world) == first


OPTIMISED = {
    ("covering",): "filters_hidden",
    ("merging",): "filters_merged",
    ("imperfect(40)",): "filters_merged_imperfectly",
    ("replace(40)",): "predicates_replaced",
    ("covering", "merging", "imperfect(20)", "replace(20)"): "filters_hidden",
}
"""Optimisations of tables, and what one of them must have counted."""


OPTIMISED_SEEDS = (14, 16, 23)
"""In which filters of one home meet: what is covered, can be joined or replaced."""


@pytest.mark.parametrize("optimise", OPTIMISED)
def test_optimised_tables_change_no_delivery(optimise: tuple[str, ...]) -> None:
    """Who gets what is the same, the optimisation had something to do, and an exact one sends no more."""
    counted: Counter[str] = Counter()
    plain: Counter[str] = Counter()
    for seed in OPTIMISED_SEEDS:
        world = played(seed, Methods("rematch", "table", optimise=optimise))
        verdict = check(world.history, repeats="none")
        assert verdict.clean, verdict.describe()
        without = played(seed, TABLE)
        assert deliveries(world) == deliveries(without)
        counted.update(world.counts)
        plain.update(without.counts)
    assert counted[OPTIMISED[optimise]] > 0
    if optimise in (("covering",), ("merging",)):
        assert counted["visits"] == plain["visits"]
    else:
        assert counted["visits"] > plain["visits"]


@pytest.mark.parametrize("matching", sorted(MATCHING))
@pytest.mark.parametrize("batches_from", [0, None])
def test_tables_are_optimised_in_front_of_every_matching(matching: str, batches_from: int | None) -> None:
    """Whether events are matched singly or as batches."""
    seed, optimise = OPTIMISED_SEEDS[0], tuple(OPTIMISED)[-1]
    methods = Methods("rematch", matching, optimise=optimise, batches_from=batches_from)
    assert deliveries(played(seed, methods)) == deliveries(played(seed, TABLE))


def test_what_each_method_costs() -> None:
    """Prefixes, all keys and Bloom filters match where an event enters; rematching wherever it comes by."""
    every = {"prefix": PREFIX, "always": ALWAYS, "bloom": BLOOM, "tree": TREE, "table": TABLE}
    totals = {name: Counter[str]() for name in every}
    for seed in SEEDS:
        for name, methods in every.items():
            counts = played(seed, methods).counts
            totals[name].update(counts)
            assert counts["content_matches"] == counts["published"]
            if name in ("prefix", "always", "bloom"):
                assert counts["afresh_matches"] == 0
            else:
                assert counts["content_matches"] + counts["afresh_matches"] == counts["visits"]
    for name in ("tree", "table"):
        assert totals[name]["visits"] > totals[name]["content_matches"]
    assert totals["prefix"]["visits"] >= totals["table"]["visits"], "no tree is more precise than a table"


def test_an_overlay_of_one_broker_needs_no_second_match() -> None:
    """Whatever the method."""
    for methods in (PREFIX, TREE, TABLE, BOOLEAN, ALWAYS, PARTIAL, BLOOM, SPARSE):
        world = World(Setting(founded(["b0"]), (("b0",),), methods=methods), 1)
        world.ask(Request(Operation.SUBSCRIBE, "ann", "one", "b0", filter="x = 1", request="r"))
        world.settle()
        world.publish("b0", {"x": 1})
        world.settle()
        assert len(deliveries(world)) == 1
        assert (world.counts["content_matches"], world.counts["afresh_matches"]) == (1, 0)


# The methods by themselves


def interest(text: str, owner: str) -> Interest:
    compiled = compile_filter("sql", text)
    assert isinstance(compiled, Compiled)
    return Interest(Identity(owner, "ann", "one"), compiled, owner)


@pytest.mark.parametrize("name", sorted(MATCHING))
def test_a_matching_counts_who_is_interested_for_several_reasons(name: str) -> None:
    """Who leaves for one reason stays for the other; who has left for all is not found."""
    matching = make_matching(Methods(matching=name), Trees())
    event = Event({"x": 1})
    for owner in ("a", "a", "b"):
        matching.add(interest("x = 1", owner))
    matching.add(interest("x = 2", "c"))

    def found() -> set[object]:
        made = matching.match(event)
        return {each for each in made.certain | made.doubtful if each != "c"}

    assert found() == {"a", "b"}
    matching.remove(interest("x = 1", "a"))
    matching.remove(interest("x = 1", "b"))
    assert found() == {"a"}
    matching.remove(interest("x = 1", "a"))
    assert found() == set()


def test_a_table_finds_for_certain_but_for_arrays() -> None:
    """What an array may have matched by two of its elements is in doubt."""
    table = TableMatching()
    table.add(interest("x = 1", "a"))
    assert table.match(Event({"x": 1})).certain == {"a"}
    found = table.match(Event({"x": [1, 2]}))
    assert (found.certain, found.doubtful) == (set(), {"a"})
    assert table.match(Event({"x": 2})).certain == set()


def test_rematching_lets_nothing_travel() -> None:
    """What enters is told to nobody, and each look is a match."""
    forwarding = make_forwarding(TABLE, Trees())
    forwarding.add(interest("x = 1", "a"))
    event = Event({"x": 1})
    assert forwarding.enter(event) == UNMATCHED
    found = forwarding.find(UNMATCHED, event)
    assert (found.certain, found.afresh) == ({"a"}, 1)


def test_simple_tells_everybody_but_the_teller() -> None:
    """All of everything."""
    change = Subscribed(Identity("a", "ann", "one"), Number(1, 1), "sql", "TRUE")
    simple = make_dissemination("simple")
    assert isinstance(simple, Simple)
    assert list(simple.tell(change, "b", ("a", "b", "c"))) == [("a", change), ("c", change)]
    assert list(simple.tell(change, None, ("a",))) == [("a", change)]
    assert list(simple.tell_all([change])) == [change]


def test_every_method_has_a_name() -> None:
    """The names that a configuration may say."""
    assert {"prefix", "rematch"} <= FORWARDING.keys()
    assert {"tree", "table", "access", "kd", "boolean"} <= MATCHING.keys()
    assert PREFIX.forwarding in FORWARDING
    assert PREFIX.matching in MATCHING
    assert PREFIX.dissemination in STRATEGIES


def test_a_name_may_have_a_number() -> None:
    """What looks otherwise names nothing, and what is not known is said with what is."""
    assert named("prefix") == Named("prefix")
    assert named("counting(10)") == Named("counting", 10)
    for wrong in ("counting(", "counting()", "counting(1", "counting(-1)", "counting(1)x", "counting(٣)"):
        assert named(wrong) is None, wrong
        assert unknown("matching", wrong, MATCHING) is not None
    assert unknown("forwarding", "prefix", FORWARDING) is None
    assert unknown("forwarding", "flood", FORWARDING) == (
        "forwarding = 'flood' is not known; known are "
        "prefix, rematch, always-reuse, partial-reuse, bloom, bloom-sbstree"
    )


def test_methods_that_do_not_fit_together_are_said_to() -> None:
    """What is unknown, has a number too many, or goes with other methods only is named; the rest fits."""
    assert misfit(Methods()) is None
    assert misfit(Methods("rematch", "table")) is None
    assert misfit(Methods("flood")) == unknown("forwarding", "flood", FORWARDING)
    assert misfit(Methods("rematch", "hash")) == unknown("matching", "hash", MATCHING)
    assert misfit(Methods(dissemination="none")) == unknown("dissemination", "none", STRATEGIES)
    assert misfit(Methods("rematch", "table(2)")) == "matching = 'table(2)': table takes no number"
    assert misfit(Methods("prefix", "table")) == "prefix forwarding matches against the Routing Tree"
