"""What brokers take from the Tree Optimizer and what they refuse: gaps, repeats, foreign trees, snapshots."""

from collections.abc import Callable
from dataclasses import replace
from itertools import chain

import pytest
from amounts import often
from filter_world import WORLD
from hypothesis import given
from hypothesis import strategies as st
from prefix_scripts import budgets, cover, some_filters

from branchline.routing.event import Event
from branchline.routing.filters import Filter
from branchline.routing.prefix.forwarding import Forwarder
from branchline.routing.prefix.optimizer import Optimizer, Settings
from branchline.routing.prefix.trees import Trees
from branchline.routing.prefix.updates import NO_VERSION, Snapshot, Update, Version
from branchline.routing.prefix.vocabulary import Fit, Vocabulary

TEXTS = ("x > 5 AND y = 1", "x < 9", "y = 1", "x > 0 AND z = 1", "q LIKE '%a%'", "w = 1 AND v = 1")


def told(*batches: tuple[str, ...], settings: Settings | None = None, incarnation: int = 7) -> list[Update]:
    """The updates of an optimizer that hears of these filters and tells after each batch."""
    optimizer = Optimizer(incarnation, settings or Settings(threshold=0, limit_ms=0))
    updates = []
    for batch in batches:
        for text in batch:
            optimizer.subscribe(cover(text))
        updates += optimizer.updates(0)
    return updates


def state(vocabulary: Vocabulary) -> tuple[object, ...]:
    return vocabulary.version, vocabulary.digest, vocabulary.describe(), tuple(vocabulary.clocks())


def fits(vocabulary: Vocabulary, update: Update) -> Fit:
    """What became of the update; one that is refused changes nothing."""
    before = state(vocabulary)
    fit, _ = vocabulary.apply(update)
    assert fit is Fit.APPLIED or state(vocabulary) == before
    return fit


def test_updates_fit_one_after_the_other() -> None:
    """Each is taken once, in its order; a repeat is old, and nothing is taken behind a gap."""
    first, second, third = told(TEXTS[:2], TEXTS[2:4], TEXTS[4:])
    vocabulary = Vocabulary(0)
    assert fits(vocabulary, second) is Fit.GAP
    assert fits(vocabulary, first) is Fit.APPLIED
    assert fits(vocabulary, first) is Fit.OLD
    assert fits(vocabulary, third) is Fit.GAP
    assert fits(vocabulary, second) is Fit.APPLIED
    assert fits(vocabulary, third) is Fit.APPLIED
    assert [fits(vocabulary, each) for each in (first, second, third)] == [Fit.OLD] * 3
    assert vocabulary.digest == third.digest


def test_an_update_for_another_tree_is_foreign() -> None:
    """One that follows by its number but not by its digest is refused."""
    first, _ = told(TEXTS[:2], TEXTS[2:4])
    _, foreign = told(TEXTS[1:3], TEXTS[3:4])
    vocabulary = Vocabulary(0)
    assert fits(vocabulary, first) is Fit.APPLIED
    assert fits(vocabulary, foreign) is Fit.FOREIGN


def _tampered(update: Update) -> dict[str, Update]:
    """The update with one thing changed each."""
    made = {}
    for place, edge in enumerate(update.born):
        before, behind = update.born[:place], update.born[place + 1 :]
        changed = {
            "dropped": (),
            "other number": (edge._replace(number=edge.number + 1),),
            "other parent": (edge._replace(parent=edge.child),),
            "other child": (edge._replace(child=edge.child + 100),),
            "no constraint": (edge._replace(constraint=None),),
            "twice": (edge, edge),
        }
        for what, edges in changed.items():
            if edges != (edge,):
                made[f"born {place} {what}"] = replace(update, born=(*before, *edges, *behind))
    for place, (parent, number) in enumerate(update.died):
        others = (*update.died[:place], *update.died[place + 1 :])
        made[f"died {place} dropped"] = replace(update, died=others)
        made[f"died {place} other"] = replace(update, died=(*others, (parent, number + 50)))
        made[f"died {place} unknown"] = replace(update, died=(*others, (parent + 1_000, number)))
    for place, (number, filter_) in enumerate(update.numbered):
        others = (*update.numbered[:place], *update.numbered[place + 1 :])
        made[f"numbered {place} dropped"] = replace(update, numbered=others)
        made[f"numbered {place} other"] = replace(update, numbered=(*others, (number + 1, filter_)))
    for number in update.unnumbered:
        rest = tuple(each for each in update.unnumbered if each != number)
        made[f"unnumbered {number} dropped"] = replace(update, unnumbered=rest)
        made[f"unnumbered {number} other"] = replace(update, unnumbered=(*rest, number + 50))
    made["other digest"] = replace(update, digest=update.digest ^ 1)
    made["other digest before"] = replace(update, digest_before=update.digest_before ^ 1)
    return made


def test_a_tampered_update_is_foreign() -> None:
    """Whatever is dropped, added or changed in an update, it is refused, and the right one still fits."""
    settings = Settings(threshold=0, limit_ms=0, nodes_per_filter=0, spare_nodes=8)
    optimizer = Optimizer(7, settings)
    vocabulary = Vocabulary(0)
    tried = 0
    heard = (
        *TEXTS,
        "a = 1",
        "b = 1 AND c = 1",
        "-a = 1",
        "x < 20",
        "-x > 5 AND y = 1",
        "c = 1",
        "-b = 1 AND c = 1",
    )
    for text in heard:
        if text[0] == "-":
            optimizer.unsubscribe(cover(text[1:]))
        else:
            optimizer.subscribe(cover(text))
        for update in optimizer.updates(0):
            for what, tampered in _tampered(update).items():
                assert fits(vocabulary, tampered) is Fit.FOREIGN, what
                tried += 1
            assert fits(vocabulary, update) is Fit.APPLIED
    assert tried > 60


def test_no_update_of_another_life_fits() -> None:
    """Neither of an earlier one nor of a later one, whatever its clock: that takes a snapshot."""
    vocabulary = Vocabulary(0)
    [first] = told(TEXTS[:2])
    assert fits(vocabulary, first) is Fit.APPLIED
    for incarnation, fit in ((6, Fit.OLD), (8, Fit.GAP)):
        for update in told(TEXTS[:2], TEXTS[2:4], incarnation=incarnation):
            assert fits(vocabulary, update) is fit


def snapshots(incarnation: int, texts: tuple[str, ...], edges: int = 5_000) -> list[Snapshot]:
    optimizer = Optimizer(incarnation, Settings(threshold=0, limit_ms=0, snapshot_edges=edges))
    for text in texts:
        optimizer.subscribe(cover(text))
    optimizer.updates(0)
    return optimizer.snapshots()


def test_a_snapshot_of_a_later_life_replaces_the_tree() -> None:
    """And one of an earlier life, or of the version that is known, is old."""
    vocabulary = Vocabulary(0)
    [piece] = snapshots(8, TEXTS[:3])
    assert vocabulary.load(piece)[0] is Fit.APPLIED
    assert (vocabulary.version, vocabulary.digest) == (Version(8, 1), piece.digest)
    assert [*vocabulary.clocks()] == [1], "no earlier version is left"
    known = state(vocabulary)
    for old in (*snapshots(7, TEXTS), piece):
        assert vocabulary.load(old)[0] is Fit.OLD
        assert state(vocabulary) == known
    [later] = snapshots(9, TEXTS[3:])
    assert vocabulary.load(later)[0] is Fit.APPLIED
    assert (vocabulary.version, vocabulary.digest) == (Version(9, 1), later.digest)


def test_an_empty_snapshot_begins_a_life() -> None:
    """An optimizer that has told nothing yet still says which life it is: then its first update fits."""
    vocabulary = Vocabulary(0)
    [piece] = Optimizer(9).snapshots()
    assert vocabulary.load(piece)[0] is Fit.APPLIED
    assert vocabulary.version == Version(9, 0)
    [first] = told(TEXTS, incarnation=9)
    assert fits(vocabulary, first) is Fit.APPLIED


@pytest.mark.parametrize(
    "tamper",
    [
        lambda piece: replace(piece, edges=piece.edges[1:]),
        lambda piece: replace(piece, edges=piece.edges[:-1]),
        lambda piece: replace(piece, edges=(piece.edges[0]._replace(number=9), *piece.edges[1:])),
        lambda piece: replace(piece, edges=(piece.edges[0]._replace(constraint=None), *piece.edges[1:])),
        lambda piece: replace(piece, edges=(*piece.edges[1:], piece.edges[0]._replace(parent=10_000))),
        lambda piece: replace(piece, digest=piece.digest ^ 1),
    ],
)
def test_a_tampered_snapshot_is_foreign(tamper: Callable[[Snapshot], Snapshot]) -> None:
    """It changes nothing, and the right one still fits."""
    vocabulary = Vocabulary(0)
    [piece] = snapshots(8, TEXTS)
    known = state(vocabulary)
    assert vocabulary.load(tamper(piece))[0] is Fit.FOREIGN
    assert state(vocabulary) == known
    assert vocabulary.load(piece)[0] is Fit.APPLIED


def test_pieces_of_two_snapshots_are_not_mixed() -> None:
    """A piece of another version, or of the same one cut otherwise, begins anew."""
    vocabulary = Vocabulary(0)
    small, large = snapshots(8, TEXTS, edges=2), snapshots(8, TEXTS, edges=4)
    later = snapshots(9, TEXTS[:4], edges=2)
    assert len(small) > len(large) > 1
    for piece in (*small[1:], *large[1:], small[0], later[0], *large[:-1]):
        assert vocabulary.load(piece)[0] is Fit.INCOMPLETE
    assert vocabulary.load(large[-1])[0] is Fit.APPLIED
    assert vocabulary.digest == large[0].digest
    for piece in later[:-1]:
        assert vocabulary.load(piece)[0] is Fit.INCOMPLETE
    assert vocabulary.load(later[-1])[0] is Fit.APPLIED


filters_in_batches = st.lists(st.lists(some_filters, min_size=1, max_size=4), min_size=1, max_size=5)


@often
@given(filters_in_batches, budgets, st.sampled_from((1, 2, 5_000)), st.integers(1, 3), st.data())
def test_updates_one_by_one_are_a_snapshot(
    batches: list[list[Filter]], budget: tuple[int, int, int], piece: int, parts: int, data: st.DataObject
) -> None:
    """Brokers that read every update, the last snapshot only, or one between and then updates, are alike."""
    optimizer = Optimizer(7, Settings(parts, 0, 0, 0.5, *budget, snapshot_edges=piece))
    begin = optimizer.snapshots()
    updates, pictures = [], []
    for place, batch in enumerate(batches):
        for filter_ in batch:
            optimizer.subscribe((filter_,))
        if place % 2:
            optimizer.unsubscribe((batches[place - 1][0],))
        updates.append(optimizer.updates(0))
        pictures.append(optimizer.snapshots())
    between = data.draw(st.integers(0, len(batches) - 1))
    shuffled = data.draw(st.permutations(pictures[between]))
    brokers = [Forwarder(Trees(parts)) for _ in range(3)]
    sent = (
        list(chain(*updates)),
        pictures[-1],
        [*shuffled, *chain(*updates[between + 1 :])],
    )
    for broker, mail in zip(brokers, sent, strict=True):
        for owner, filter_ in enumerate(chain(*batches)):
            broker.subscribe((filter_,), owner)
        for each in (*begin, *mail):
            fit = broker.trees.apply(each)
            assert fit is Fit.APPLIED or (isinstance(each, Snapshot) and fit in (Fit.INCOMPLETE, Fit.OLD))
    for part in range(parts):
        each = [broker.trees.vocabularies[part] for broker in brokers]
        assert len({(vocabulary.version, vocabulary.digest) for vocabulary in each}) == 1
        assert len({vocabulary.describe().partition("\n")[2] for vocabulary in each}) == 1
        assert len({broker.places[part].describe() for broker in brokers}) == 1
        tree = "\n".join(optimizer.part(part).describe().splitlines()[1:])
        assert each[0].describe().partition("\n")[2] == tree
    for event in WORLD[::25]:
        prefixes = [broker.enter(Event(event.attributes)) for broker in brokers]
        assert prefixes[0] == prefixes[1] == prefixes[2]
        results = [broker.find(prefixes[0], Event({})) for broker in brokers]
        assert results[0] == results[1] == results[2]
        assert not results[0].afresh


def test_nothing_was_told_yet() -> None:
    """A broker that has heard nothing has an empty tree, in which filters wait at the root and are found."""
    broker = Forwarder()
    broker.subscribe(cover("x > 5"), "f")
    assert broker.trees.vocabularies[0].version == NO_VERSION
    prefix = broker.enter(Event({"x": 6}))
    found = broker.find(prefix, Event({}))
    assert (found.doubtful, found.afresh) == ({"f"}, 0)


def test_the_description_of_a_vocabulary() -> None:
    """People see the version, the versions kept, the tree with child numbers, and the filters beside it."""
    settings = Settings(threshold=0, limit_ms=0, nodes_per_filter=0, spare_nodes=5)
    vocabulary = Vocabulary(0)
    for update in told(TEXTS[:2], TEXTS[2:], settings=settings):
        vocabulary.apply(update)
    assert vocabulary.describe() == (
        "part 0 at 7/2, versions kept: 0 to 2\n"
        "  1 x <= 5\n"
        "  0 x > 5\n"
        "    1 x > 5 AND x < 9\n"
        "    0 y = 1\n"
        "  2 y = 1\n"
        "  #0 x > 0 AND z = 1\n"
        "  #1 q CONTAINS 'a'\n"
        "  #2 v = 1 AND w = 1"
    )


def test_the_description_of_places() -> None:
    """People see where each filter stands now, and where it only waits."""
    settings = Settings(threshold=0, limit_ms=0, nodes_per_filter=0, spare_nodes=5)
    broker = Forwarder()
    for text in (*TEXTS[:4], "x > 20", "TRUE"):
        broker.subscribe(cover(text), text)
    for update in told(TEXTS[:2], TEXTS[2:], settings=settings):
        broker.trees.apply(update)
    assert broker.places[0].describe() == (
        "TRUE: node 0\n"
        "x < 9: node 3, node 4\n"
        "x > 0 AND z = 1: number 0\n"
        "x > 20: node 1 (approximate)\n"
        "x > 5 AND y = 1: node 2\n"
        "y = 1: node 5"
    )
