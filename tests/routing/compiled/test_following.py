"""Following prefixes in whole batches finds whom the reference finds, whatever has changed before."""

import ast
from collections import Counter
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prefix_runs import Broker, Run
from prefix_scripts import EVENTS, Script, Step, seeded, sql
from random_prefixes import some_entries

from branchline.routing.compiled import names, standing
from branchline.routing.compiled.following import Followed, Follower
from branchline.routing.compiled.lookups import NOTHING, Lookup
from branchline.routing.compiled.names import Names
from branchline.routing.compiled.prefixes import flat
from branchline.routing.event import Event
from branchline.routing.prefix import stored_places, trees
from branchline.routing.prefix.forwarding import Forwarder, Found
from branchline.routing.prefix.optimizer import Optimizer, Settings
from branchline.routing.prefix.trees import PartPrefix, Prefix, Trees

SEEDS = 16


def follower_of(forwarder: Forwarder) -> Follower:
    parts = range(len(forwarder.trees.vocabularies))
    return Follower(forwarder, [Names(forwarder.trees, part) for part in parts])


def found(follower: Follower, followed: Followed, row: int) -> Found:
    """What was found for a row, as the reference has it."""
    made = Found()
    for place in range(followed.first[row], followed.first[row + 1]):
        owner = follower.owners.table[followed.owner[place]]
        assert owner not in made.certain | made.doubtful, "each owner once"
        (made.certain if followed.certain[place] else made.doubtful).add(owner)
    return made


def can_follow(forwarder: Forwarder, prefix: Prefix) -> bool:
    """Whether no part has to be left to the reference."""
    vocabularies = forwarder.trees.vocabularies
    return len(prefix.parts) >= len(vocabularies) and all(
        told.version == vocabulary.version
        and not (told.cut or told.many)
        and forwarder.trees.follow(part, told) is not None
        for part, (told, vocabulary) in enumerate(zip(prefix.parts, vocabularies, strict=False))
    )


class Followers(Run):
    """A script in which everything that is looked for is also followed in arrays.

    A broker's follower is made at some step, and from then on follows all that changes.
    """

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.followers: dict[int, Follower] = {}

    def check(self, broker: Broker, prefix: Prefix, attributes: dict[str, Any]) -> None:
        """Who is owed what is checked elsewhere."""

    def _check_places(self, broker: Broker) -> None:
        """As is where filters stand."""

    def _check_told(self, broker: Broker) -> None:
        """And what brokers were told."""

    def check_flights(self) -> None:
        source = Random(self._owners)
        for place, broker in enumerate(self.brokers):
            prefixes = [prefix for prefix, _ in self.flights]
            prefixes += [broker.forwarder.enter(Event(each)) for each in source.sample(EVENTS, 6)]
            if place not in self.followers and self._owners >= 2 * place:
                self.followers[place] = follower_of(broker.forwarder)
            if place in self.followers:
                self._check_followed(self.followers[place], broker, prefixes)

    def _check_followed(self, follower: Follower, broker: Broker, prefixes: list[Prefix]) -> None:
        rows = np.arange(len(prefixes)) % 5 != 4
        followed = follower.find(flat(prefixes), rows)
        for row, prefix in enumerate(prefixes):
            assert followed.handled[row] == (rows[row] and can_follow(broker.forwarder, prefix))
            self.seen["rows"] += 1
            if not followed.handled[row]:
                assert followed.first[row] == followed.first[row + 1]
                continue
            expected, made = broker.forwarder.find(prefix, Event({})), found(follower, followed, row)
            assert (made.certain, made.doubtful) == (expected.certain, expected.doubtful)
            self.seen["handled"] += 1
            self.seen["followed certain"] += bool(made.certain)
            self.seen["followed doubtful"] += bool(made.doubtful)
            self.seen["followed numbers"] += any(part.numbers for part in prefix.parts)
            self.seen["followed parts"] += len(prefix.parts) > 1 and bool(prefix.parts[1].entries)

    def leave(self) -> None:
        super().leave()
        for follower in self.followers.values():
            follower.catch_up()
            assert not any(follower.owners.table), "whoever has left has no code"


class Reopened(Followers):
    """The same with brokers that are now and then opened from what they have stored."""

    def step(self, step: Step) -> None:
        super().step(step)
        for place, broker in enumerate(self.brokers):
            if (step.choice >> place) % 5 == 0:
                before = broker.forwarder
                trees = Trees(
                    len(before.trees.vocabularies),
                    broker.height,
                    self.script.keep,
                    list(map(memoryview, before.trees.stored())),
                )
                broker.forwarder = Forwarder(trees, list(map(memoryview, before.stored())))
                self.followers[place] = follower_of(broker.forwarder)
                self.seen["opened"] += 1


def test_whom_the_reference_finds_is_found() -> None:
    """After every step of scripts, at every broker, for every prefix of the newest version."""
    seen: Counter[str] = Counter()
    for seed in range(SEEDS):
        # Small limits, so that pools are swept and all is read anew now and then.
        with (
            patch.object(standing, "_SWEPT_FROM", seed % 5),
            patch.object(standing, "_FEW_TOUCHED", 1_000 if seed % 2 else 3),
            patch.object(names, "_SPARE_USED", 4_096 if seed % 3 else 0),
        ):
            seen += Followers(seeded(seed)).play().seen
    for what in ("followed certain", "followed doubtful", "followed numbers", "followed parts"):
        assert seen[what] > 9, what
    assert 0.3 * seen["rows"] < seen["handled"] < 0.9 * seen["rows"]


def test_more_numbers_than_travel_are_left_to_the_reference() -> None:
    """As are prefixes that were cut: what is found is the same."""
    with patch.object(trees, "NUMBERS_MAX", 1):
        runs = [Followers(seeded(seed)).play() for seed in range(1, 12, 4)]
    assert sum(run.seen["many"] for run in runs) > 2


def test_places_that_were_stored_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for trees and places that are opened again and again."""

    def encode(owner: Any) -> bytes:
        return repr(owner).encode()

    def decode(data: memoryview) -> Any:
        return ast.literal_eval(bytes(data).decode())

    # The owners of scripts are neither homes nor subscriptions.
    monkeypatch.setattr(stored_places, "_encode_owner", encode)
    monkeypatch.setattr(stored_places, "_decode_owner", decode)
    runs = [Reopened(seeded(seed)).play() for seed in range(7)]
    for name in ("opened", "followed certain", "followed numbers"):
        assert sum(run.seen[name] for run in runs) > 2, name


def test_prefixes_that_name_what_never_was_are_left_to_the_reference() -> None:
    """Any tree of child numbers, under the newest version, is followed only if all of it is there."""
    source = Random(1)
    run = Followers(seeded(2)).play()
    broker = run.brokers[0].forwarder
    for step in seeded(6).steps:
        run.step(step)
    follower = follower_of(broker)
    versions = [vocabulary.version for vocabulary in broker.trees.vocabularies]
    forged = [
        Prefix(
            tuple(
                PartPrefix(version, some_entries(source), tuple(range(source.randrange(2))))
                for version in versions
            )
        )
        for _ in range(300)
    ]
    followed = follower.find(flat(forged), np.ones(len(forged), np.bool_))
    for row, prefix in enumerate(forged):
        assert followed.handled[row] == can_follow(broker, prefix)
    assert followed.handled.any()
    assert not followed.handled.all()


def test_children_whose_numbers_lie_far_apart_are_followed() -> None:
    """Where they come and go at one node, few of its numbers live: these are found too, and no others."""
    optimizer, broker = Optimizer(1, Settings(threshold=0)), Forwarder()
    follower = follower_of(broker)
    told = Names(broker.trees, 0)
    beyond = 0
    for number in range(150):
        for change, apply, each in (
            (optimizer.subscribe, broker.subscribe, number),
            (optimizer.unsubscribe, broker.unsubscribe, number - 2 - number % 5 * 9),
        ):
            if each >= 0 and (each % 7 or each == number):
                cover = sql(f"x = {each} AND y > 0").cover
                change(cover)
                apply(cover, each)
        for update in optimizer.updates(number):
            broker.trees.apply(update)
        beyond += told.slots().others[1::2].max() > 0
        prefixes = [broker.enter(Event({"x": each, "y": 1})) for each in range(0, number + 1, 3)]
        followed = follower.find(flat(prefixes), np.ones(len(prefixes), np.bool_))
        assert followed.handled.all()
        for row, prefix in enumerate(prefixes):
            expected = broker.find(prefix, Event({}))
            assert found(follower, followed, row).certain == expected.certain
    assert beyond > 50


@given(st.lists(st.tuples(st.integers(-20, 20), st.integers(NOTHING, 9)), max_size=60), st.integers(1, 9))
def test_a_lookup_is_a_dictionary(pairs: list[tuple[int, int]], size: int) -> None:
    """Whatever is put and taken, in pieces of any size: what it has is what a dictionary has."""
    made, expected = Lookup(), dict[int, int]()
    for start in range(0, len(pairs), size):
        piece = pairs[start : start + size]
        keys, values = np.array(piece, np.int64).reshape(-1, 2).T.copy()
        made.put(keys, values)
        expected.update(piece)
    for key in range(-21, 22):
        assert made.get(key) == expected.get(key, NOTHING)
    keys, values = made.items()
    living = {key: value for key, value in expected.items() if value != NOTHING}
    assert dict(zip(keys.tolist(), values.tolist(), strict=True)) == living
