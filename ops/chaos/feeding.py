"""The feed of a run: events at a steady rate, and subscriptions that come and go, whatever else happens."""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from branchline.ops.chaos.clients import a_filter, a_key, an_event, identities
from branchline.ops.chaos.observing import Observer
from branchline.ops.chaos.reading import Tail
from branchline.routing.control import Identity

SUBSCRIBERS = 9
STEADY, CHANGING = 18, 9
"""Subscriptions that stand from the beginning to the end, and such that come, go and are replaced: events
that those which stand want are owed beyond doubt."""

EVENTS_PER_CHANGE = 20
EVENTS_PER_LOOK = 10
"""How often the feed looks for acks."""

ENDED = 0.3
"""Of the changes, how many are ends."""


class Feed:
    """Publishes and subscribes in a thread of its own, all of it drawn from the seed."""

    def __init__(
        self, observer: Observer, acks: Tail, brokers: tuple[str, ...], events_per_s: float, seed: int
    ) -> None:
        self._observer = observer
        self._acks = acks
        self._brokers = brokers
        self._period_s = 1 / events_per_s
        self._draw = random.Random(f"feed {seed}")
        wanted = list(identities(brokers, SUBSCRIBERS, STEADY + CHANGING).items())
        self._standing, self._changing = dict(wanted[:STEADY]), dict(wanted[STEADY:])
        self._step = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)
        self._failure: Exception | None = None
        self.events = self.requests = 0

    def begin(self) -> None:
        """Make all subscriptions, wait until they are in force, and begin to publish."""
        observer = self._observer
        asked = [self._subscribe(each) for each in (*self._standing, *self._changing)]
        observer.await_in_force(asked)
        self._thread.start()

    def end(self) -> None:
        """Publish no more. Does nothing if it never began."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def check(self) -> None:
        """Raise what has ended the feed, if something has."""
        if self._failure is not None:
            raise self._failure

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing is published within, and the observer is the caller's alone."""
        with self._step:
            yield

    def _subscribe(self, identity: Identity) -> str:
        spelling = self._standing.get(identity) or self._changing[identity]
        self.requests += 1
        return self._observer.subscribe(identity, spelling, a_filter(self._draw, spelling))

    def _run(self) -> None:
        due = time.monotonic()
        try:
            while not self._stop.wait(max(0.0, due - time.monotonic())):
                # After a pause it goes on at its rate: what was not published is not made up for.
                due = max(due + self._period_s, time.monotonic() - self._period_s)
                with self._step:
                    self._publish()
        except Exception as error:
            self._failure = error

    def _publish(self) -> None:
        self._observer.publish(self._draw.choice(self._brokers), a_key(self._draw), an_event(self._draw))
        self.events += 1
        if self.events % EVENTS_PER_CHANGE == 0:
            self._change()
        if self.events % EVENTS_PER_LOOK == 0:
            self._observer.heard(self._acks.new())

    def _change(self) -> None:
        identity = self._draw.choice(list(self._changing))
        if self._draw.random() < ENDED:
            self._observer.unsubscribe(identity)
            self.requests += 1
        else:
            self._subscribe(identity)
