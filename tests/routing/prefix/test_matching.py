"""One content match: the Forwarding Prefix Tree, its height limit, and arrays."""

import pytest
from amounts import often
from filter_world import WORLD
from hypothesis import given
from hypothesis import strategies as st
from prefix_scripts import ARRAYS, Just, is_true, only, some_filters, sql
from strategies import constraints, events, expressions, few_names, paths

from branchline.routing.codes import Rejection
from branchline.routing.compiling import Compiled, compile_expression
from branchline.routing.evaluate import evaluate
from branchline.routing.event import Event
from branchline.routing.expression import Expression
from branchline.routing.filters import Filter
from branchline.routing.prefix.delivering import decide
from branchline.routing.prefix.forwarding import Forwarder
from branchline.routing.prefix.matching import follow, match
from branchline.routing.prefix.optimizer import Optimizer, Settings
from branchline.routing.prefix.trees import PartPrefix, Prefix, Trees
from branchline.routing.values import JsonValue


def network(subscriptions: dict[str, Compiled], heights: tuple[int | None, ...] = (None,)) -> list[Forwarder]:
    """Brokers that all know these subscriptions and the tree for them."""
    optimizer = Optimizer(1, Settings(threshold=0))
    brokers = [Forwarder(Trees(height=height)) for height in heights]
    for name, compiled in subscriptions.items():
        optimizer.subscribe(compiled.cover)
        for broker in brokers:
            broker.subscribe(compiled.cover, name)
    for update in optimizer.updates(0):
        for broker in brokers:
            broker.trees.apply(update)
    return brokers


PAPER = {text: sql(text) for text in ("x > 5 AND y < 3", "x <= 5 AND z > 1", "z < 3", "x > 5 AND y > 4")}


def test_the_worked_case_of_the_paper() -> None:
    """Event x=6, y=5, z=2 has a level-1 FPT {0, 2}; cut there, x>5∧y<3 is a false positive, else not."""
    event = {"x": 6, "y": 5, "z": 2}
    whole, cut = network(PAPER, (None, 1))
    prefix = cut.enter(Event(event))
    assert prefix.parts[0].entries == ((1, 0), (1, 2))
    assert prefix.parts[0].cut
    found = whole.find(prefix, Event({}))
    assert found.certain == {"z < 3"}
    assert found.doubtful == {"x > 5 AND y < 3", "x > 5 AND y > 4"}
    assert decide(found, PAPER, Event(event)).owners == {"z < 3", "x > 5 AND y > 4"}
    assert "x > 5 AND y < 3" in decide(found, PAPER, Event(event), paper=True).owners
    prefix = whole.enter(Event(event))
    assert prefix.parts[0].entries == ((1, 0), (2, 1), (1, 2))
    assert not prefix.parts[0].cut
    found = cut.find(prefix, Event({}))
    assert (found.certain, found.doubtful) == ({"z < 3", "x > 5 AND y > 4"}, set())


def test_one_value_may_satisfy_nested_nodes() -> None:
    """An attribute follows one child of a dimension on each level, however many levels there are."""
    [broker] = network({text: sql(text) for text in ("x > 1", "x > 2", "x > 3", "x < 0")})
    prefix = broker.enter(Event({"x": 3}))
    assert prefix.parts[0].entries == ((1, 0), (2, 0))
    assert broker.find(prefix, Event({})).certain == {"x > 1", "x > 2"}


def test_addresses_at_the_root_always_match() -> None:
    """A filter for everything stands at the root and is certain there, whatever was followed."""
    [broker] = network({"all": sql("TRUE"), "some": sql("x = 1")})
    assert broker.find(broker.enter(Event({"y": 1})), Event({})).certain == {"all"}


def test_a_prefix_that_names_what_never_was_is_matched_afresh() -> None:
    """A child or overflow number that the version did not have: nobody is lost, and it is counted."""
    [broker] = network(PAPER)
    event = Event({"x": 6, "y": 5, "z": 2})
    honest = broker.enter(event)
    expected = broker.find(honest, event)
    [part] = honest.parts
    for forged in (
        PartPrefix(part.version, ((1, 7), *part.entries)),
        PartPrefix(part.version, ((2, 0),)),
        PartPrefix(part.version, part.entries, (3,)),
    ):
        found = broker.find(Prefix((forged,)), event)
        assert (found.certain, found.doubtful, found.afresh) == (expected.certain, expected.doubtful, 1)


@often
@given(st.lists(some_filters, min_size=1, max_size=8), st.sampled_from(WORLD))
def test_a_lower_height_only_adds(filters: list[Filter], event: Event) -> None:
    """The lower the FPT is cut, the more are found and the fewer are certain; none is missed."""
    subscriptions = {str(place): only(each) for place, each in enumerate(filters)}
    brokers = network(subscriptions, (None, 3, 2, 1, 0))
    attributes = dict(event.attributes)
    owed = {name for name, each in subscriptions.items() if is_true(each, attributes)}
    entries = None
    last, certain = owed, owed
    for broker in brokers:
        prefix = broker.enter(Event(attributes))
        found = brokers[0].find(prefix, Event({}))
        assert last <= found.certain | found.doubtful
        assert found.certain <= certain
        last, certain = found.certain | found.doubtful, found.certain
        made = prefix.parts[0].entries
        entries = made if entries is None else entries
        assert made == tuple(
            entry for entry in entries if broker.trees._height is None or entry[0] <= broker.trees._height
        )
    assert brokers[0].find(brokers[0].enter(Event(attributes)), Event({})).certain == owed


@often
@given(st.lists(some_filters, min_size=1, max_size=8), st.sampled_from(WORLD))
def test_a_match_follows_exactly_the_paths_that_hold(filters: list[Filter], event: Event) -> None:
    """A node is in the FPT if and only if the event satisfies all constraints on its path."""
    optimizer = Optimizer(1)
    for filter_ in filters:
        optimizer.subscribe((filter_,))
    tree = optimizer.part(0).tree
    expected = set()
    pending = [0]
    while pending:
        for edges in tree.children(pending.pop()).values():
            for edge in edges:
                if event.may_match(((tree.constraint(tree.child(edge)),),)):
                    expected.add(tree.child(edge))
                    pending.append(tree.child(edge))
    entries, cut = match(tree, event)
    assert not cut
    followed = [node for node, _ in follow(tree, entries, 1)]
    assert len(followed) == len(set(followed))
    assert set(followed) == {0, *expected}


ARRAY_FILTERS = (
    "a = 0 AND b = 1",
    "a > 1 AND a < 1.2",
    "a = 'ab' AND b = 1",
    "a IS NULL",
    "a = 1",
    "a <> 1",
    "b < a",
    "c.d = 1 AND c.e = 2",
)


@pytest.mark.parametrize("attributes", ARRAYS)
def test_an_event_with_arrays_is_found_in_doubt(attributes: dict[str, object]) -> None:
    """Its prefix is flagged, everything found is doubtful, and delivered is what some choice makes true."""
    subscriptions = {text: sql(text) for text in ARRAY_FILTERS}
    enter, other = network(subscriptions, (None, 1))
    prefix = enter.enter(Event(attributes))  # type: ignore[arg-type]
    assert prefix.arrays
    for broker in (enter, other):
        found = broker.find(prefix, Event({}))
        assert not found.certain
        assert not found.afresh
        owed = {text for text, each in subscriptions.items() if is_true(each, attributes)}
        assert decide(found, subscriptions, Event(attributes)).owners == owed  # type: ignore[arg-type]


def test_elements_that_satisfy_one_constraint_each_are_a_false_positive() -> None:
    """Two constraints met by different elements of one array are found, and fail the check."""
    subscriptions = {"both": sql("items.a = 1 AND items.b = 2")}
    [broker] = network(subscriptions)
    event = {"items": [{"a": 1, "b": 0}, {"a": 0, "b": 2}]}
    found = broker.find(broker.enter(Event(event)), Event({}))
    assert found.doubtful == {"both"}
    decided = decide(found, subscriptions, Event(event))
    assert (decided.owners, decided.checks) == (set(), 1)


def test_an_array_that_nothing_asks_for_leaves_no_doubt() -> None:
    """Only arrays that a constraint was compared with are of any matter."""
    [broker] = network({"x": sql("x = 1")})
    prefix = broker.enter(Event({"x": 1, "tags": [1, 2]}))
    assert not prefix.arrays
    assert broker.find(prefix, Event({})).certain == {"x"}


def test_what_cannot_be_decided_is_said() -> None:
    """An event with too many choices is neither delivered nor dropped in silence."""
    subscriptions = {"x": sql("x = 1 AND y = 1"), "z": sql("z = 1")}
    [broker] = network(subscriptions)
    event = {"x": list(range(200)), "y": list(range(200)), "z": 1}
    decided = decide(broker.find(broker.enter(Event(event)), Event({})), subscriptions, Event(event))
    assert decided.owners == {"z"}
    assert decided.undecided["x"].code == "too-many-choices"


def test_certain_owners_of_exact_filters_are_not_checked() -> None:
    """Only doubt, or a residual, costs a check."""
    subscriptions = {"exact": sql("x = 1"), "left": sql("x = 1 AND y < z")}
    [broker] = network(subscriptions)
    event = {"x": 1, "y": 1, "z": 2}
    found = broker.find(broker.enter(Event(event)), Event({}))
    assert found.certain == {"exact", "left"}
    decided = decide(found, subscriptions, Event(event))
    assert (decided.owners, decided.checks) == ({"exact", "left"}, 1)
    assert decide(found, subscriptions, Event(event | {"z": 0})).owners == {"exact"}


def test_looking_for_somebody_stops_when_all_are_found() -> None:
    """Of those who are not wanted nobody is found, and nothing is looked at after the last one."""
    [broker] = network({"all": sql("TRUE"), "x": sql("x = 1"), "y": sql("y = 1")})
    prefix = broker.enter(Event({"x": 1, "y": 1}))
    assert broker.find(prefix, Event({}), Just({"y"})).certain == {"y"}
    assert broker.find(prefix, Event({}), Just({"nobody"})).certain == set()
    unknown = prefix.parts[0].__class__(prefix.parts[0].version._replace(clock=99), ())
    assert broker.find(prefix.__class__((unknown,)), Event({}), Just({"all"})).afresh == 1


few_expressions = expressions(constraints(paths(few_names, longest=2)), depth=2)


@often
@given(st.lists(few_expressions, min_size=1, max_size=4), events(few_names), st.sampled_from((None, 0, 1)))
def test_filters_of_every_kind_are_delivered_right(
    wanted: list[Expression], event: dict[str, JsonValue], height: int | None
) -> None:
    """Whatever filters say, with residuals, and events hold, with arrays: delivered is what is true."""
    made = {str(place): compile_expression(each) for place, each in enumerate(wanted)}
    subscriptions = {name: each for name, each in made.items() if isinstance(each, Compiled)}
    enter, there = network(subscriptions, (height, None))
    found = there.find(enter.enter(Event(event)), Event({}))
    assert not found.afresh
    decided = decide(found, subscriptions, Event(event))
    truths = {name: evaluate(each.expression, event) for name, each in subscriptions.items()}
    undecided = {name for name, truth in truths.items() if isinstance(truth, Rejection)}
    owed = {name for name, truth in truths.items() if truth is True}
    assert decided.owners == owed
    assert set(decided.undecided) <= undecided
    assert found.certain | found.doubtful >= owed
