"""A script of changes of the topology, given by commands while events flow, judged by the history of clients.

Sizes are parameters: the everyday test runs it small, a soak may run it large and often.
"""

import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from observing import Observer
from routers import Site, ends
from waiting import wait_until

from branchline.ops.cli import main
from branchline.ops.settings import SETTINGS
from branchline.routing.control import Identity
from branchline.routing.history import Lapsing, Unsteady, Verdict
from branchline.routing.overlay.topology import Topology
from branchline.streaming.job import RouterJob
from branchline.streaming.router import RouterConfig

START_DEADLINE_S = 60
KINDS = ("flight", "hotel", "train")


@dataclass
class Town(Site):
    """A namespace whose brokers are served by several supervised jobs, each with a checkpoint of its own."""

    jobs: list[tuple[threading.Event, threading.Thread]] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)
    """What the jobs said of themselves."""

    def serve(self, *brokers: str, topology: Topology | None = None, join: bool = False) -> None:
        """Start a job for these brokers, and return once its query runs."""
        config = RouterConfig(
            self.cluster,
            str(self.checkpoint / brokers[0]),
            self.namespace,
            brokers,
            self.shards,
            self.max_events_per_batch,
            topology,
            join=join,
        )
        stop, started = threading.Event(), threading.Event()
        job = RouterJob(self.spark, config, self.reports.append)
        thread = threading.Thread(target=job.run, args=(stop, started), name=f"job {brokers[0]}")
        self.jobs.append((stop, thread))
        thread.start()
        wait_until(lambda: started.is_set() or not thread.is_alive(), START_DEADLINE_S, "the job runs")
        assert thread.is_alive(), "the job has ended"

    def stop(self) -> None:
        for stop, _ in self.jobs:
            stop.set()
        for _, thread in self.jobs:
            thread.join()

    def settle(self) -> None:
        """Return when all jobs have handled everything, also what they wrote for each other."""
        inputs = [*self.topics.of_brokers(self.brokers)]
        before: dict[tuple[str, int], int] = {}
        while before != (before := ends(self.cluster, inputs)):
            for query in self.spark.streams.active:
                if query.name is not None and query.name.startswith(f"{self.namespace}.router"):
                    query.processAllAvailable()


@dataclass
class Operator:
    """Gives commands, as a person would at a terminal."""

    site: Site
    properties: Path
    told: str = ""
    """What the last command said on standard error."""

    def __post_init__(self) -> None:
        lines = (f"{name}={value}\n" for name, value in self.site.cluster.properties.items())
        self.properties.write_text("".join(lines))

    def give(self, *arguments: str, exit_code: int = 0) -> dict[str, Any]:
        """A command on the topology; what it prints as JSON."""
        (printed,) = (json.loads(line) for line in self.read(*arguments, "--json", exit_code=exit_code))
        assert isinstance(printed, dict)
        return printed

    def read(self, *arguments: str, exit_code: int = 0, answer: str | None = None) -> list[str]:
        """A command on the topology, and an answer if it asks for one; the lines that it prints."""
        unset: dict[str, str | None] = {setting.variable: None for setting in SETTINGS}
        where = ("--bootstrap", self.site.cluster.bootstrap, "--namespace", self.site.namespace)
        command = ("topology", *arguments, *where, "--client-properties", str(self.properties))
        result = CliRunner().invoke(main, command, input=answer, env=unset, catch_exceptions=False)
        self.told = result.stderr
        assert result.exit_code == exit_code, (arguments, result.output)
        return result.stdout.splitlines()


@dataclass
class Script:
    """Two brokers, then three, then another link at one cost and at another, then one broker leaves."""

    town: Town
    operator: Operator
    subscriptions: int
    """At home with each broker."""
    burst: int
    """Events that the feed publishes at once."""
    every_s: float
    """How long it pauses after that."""
    draw: random.Random

    def __post_init__(self) -> None:
        self.observer = Observer(self.town)
        self.took_s: dict[str, float] = {}

    def subscribe(self, home: str) -> list[Identity]:
        """Subscriptions at home there, in force when this returns."""
        begun = time.monotonic()
        wanted = [Identity(home, f"{home}-{number}", "one") for number in range(self.subscriptions)]
        texts = [
            f"type = '{self.draw.choice(KINDS)}' AND price < {self.draw.randrange(100, 900)}" for _ in wanted
        ]
        asked = [self.observer.subscribe(each, "sql", text) for each, text in zip(wanted, texts, strict=True)]
        self.observer.await_in_force(asked)
        self.took_s[f"subscribe {home}"] = time.monotonic() - begun
        return wanted

    @contextmanager
    def changing(self, what: str, *feed: str, ending: Sequence[Identity] = ()) -> Iterator[None]:
        """Events enter at these brokers while something is changed, and for a moment before and after."""
        self.observer.history += [Unsteady(), *map(Lapsing, ending)]
        with self.flowing(what, *feed):
            yield
        self._timed(f"{what}, settled", self.observer.settle)

    @contextmanager
    def flowing(self, what: str, *feed: str) -> Iterator[None]:
        """Events enter at these brokers while something happens."""
        stop = threading.Event()

        def publish() -> None:
            while not stop.wait(self.every_s):
                for _ in range(self.burst):
                    event = {"type": self.draw.choice(KINDS), "price": self.draw.randrange(1_000)}
                    key = f"key-{self.draw.randrange(5)}"
                    self.observer.publish(self.draw.choice(feed), key, event)

        thread = threading.Thread(target=publish, name="feed")
        thread.start()
        begun = time.monotonic()
        try:
            yield
            self.took_s[what] = time.monotonic() - begun
        finally:
            stop.set()
            thread.join()

    def _timed(self, what: str, act: Callable[[], object]) -> None:
        begun = time.monotonic()
        act()
        self.took_s[what] = time.monotonic() - begun

    def run(self, first: Topology) -> Verdict:
        """Give all commands; what the checker says of the history."""
        give = self.operator.give
        self._timed("start", lambda: self.town.serve("a", "b", topology=first))
        of_b = self.subscribe("b")
        self.subscribe("a")
        assert "no job serves d" in give("add", "d", "--link", "a", "--no-wait", exit_code=6)["message"]
        with self.changing("add", "a", "b"):
            self.town.serve("c", join=True)
            added = give("add", "c", "--link", "b")
        assert (added["number"], added["changed"]) == (2, True)
        assert give("add", "c", "--link", "b")["changed"] is False
        with self.changing("link", "a", "b", "c"):
            self.subscribe("c")
            give("link", "c", "a", "--cost", "3")
            assert give("link", "a", "c", "--cost", "1")["links"][1] == {"between": ["a", "c"], "cost": 1}
        refused = give("remove", "b", exit_code=2)
        assert f"{len(of_b)} subscriptions" in refused["message"] and "--yes" in refused["hint"]
        self.operator.read("remove", "b", exit_code=130, answer="n\n")
        assert f"{len(of_b)} subscriptions at home with b will be ended" in self.operator.told
        with self.changing("remove", "a", "c", ending=of_b):
            assert give("remove", "b", "--yes", "--no-wait")["number"] == 5
            # Given again, it goes on where it was.
            assert give("remove", "b")["number"] == 6
        assert give("unlink", "a", "c", exit_code=5)["error"] == "topology-invalid"
        with self.flowing("steady", "a", "c"):
            published = len(self.observer.history) + 2 * self.burst
            shown = give("show")
            wait_until(lambda: len(self.observer.history) >= published, 60, "events flow")
        self._timed("steady, settled", self.observer.settle)
        assert [(each["name"], each["state"], each["topology"]) for each in shown["brokers"]] == [
            ("a", "active", 6),
            ("c", "active", 6),
        ]
        lines = self.operator.read()
        assert lines[0] == "topology 6: 2 brokers, 1 link" and lines[2:4] == ["a", "└─1─ c"]
        assert lines[-1].split()[:4] == ["1", "b", "-", "retired"]
        assert shown["retired"] == [{"name": "b", "number": 1}] and shown["waiting"] == []
        return self.observer.verdict()
