"""Router and Tree Optimizer as processes that are killed at random moments: nothing is missing.

The small run has both in one `up --brokers 4`, which is killed twice; the large one kills either of two
processes, ten times in all.
"""

import json
import random
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from machines import START_DEADLINE_S, STOP_DEADLINE_S, Machine, linked_home
from observing import Observer
from overlays import FULL, SIZE, a_filter, a_key, an_event, identities
from remote_sites import RemoteSite
from routers import Site
from waiting import wait_until

from branchline.kafka.cluster import Cluster
from branchline.kafka.topologies import topology_fields
from branchline.ops.overlay import small_overlay

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(3_600 if FULL else 800),
]

OVERLAY = small_overlay(8 if FULL else 4, "main")
BROKERS = tuple(member.name for member in OVERLAY.members)

_ROUTER = ["--max-events-per-batch", "200", "--delivery", "exactly-once"]
_EAGER = ["--threshold", "0.05", "--limit", "1s"]
JOBS = {"up": ["--brokers", str(len(BROKERS)), *_ROUTER, *_EAGER]}
if FULL:
    JOBS = {"router": _ROUTER, "optimizer": _EAGER}


SERVED = {"up": ("router", "optimizer")}


@dataclass
class Processes:
    """The jobs, each a process, and what they print."""

    machine: Machine
    site: Site
    folder: Path
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    starts: int = 0

    def start(self, name: str) -> None:
        options = [
            *("--bootstrap", self.site.cluster.bootstrap, "--namespace", self.site.namespace),
            *("--checkpoint", str(self.folder / f"checkpoint-{name}"), *JOBS[name]),
        ]
        if self.site.cluster.properties:
            file = self.folder / "client.properties"
            file.write_text(
                "".join(f"{key}={value}\n" for key, value in self.site.cluster.properties.items())
            )
            options += ["--client-properties", str(file)]
        if name == "router":
            file = self.folder / "overlay.json"
            file.write_text(json.dumps(topology_fields(OVERLAY)))
            options += ["--topology", str(file)]
            options += [word for broker in BROKERS for word in ("--broker", broker)]
        self.starts += 1
        with self.output(name).open("wb") as output:
            self.running[name] = self.machine.popen(name, *options, stdout=output, stderr=output)

    def where(self) -> list[str]:
        """The options that say which Kafka, and which topics."""
        cluster = self.site.cluster
        file = self.folder / "client.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in cluster.properties.items()))
        where = ["--bootstrap", cluster.bootstrap, "--namespace", self.site.namespace]
        return [*where, "--client-properties", str(file)]

    def output(self, name: str) -> Path:
        return self.folder / f"{name}.output"

    def await_running(self, name: str) -> None:
        process = self.running[name]

        def is_up() -> bool:
            assert process.poll() is None, self.output(name).read_text()
            said = self.output(name).read_text()
            return all(f"{each}: running" in said for each in SERVED.get(name, (name,)))

        wait_until(is_up, START_DEADLINE_S, f"the {name} runs")

    def kill(self, name: str) -> None:
        self.running[name].kill()
        self.running[name].wait()

    def end(self) -> None:
        for process in self.running.values():
            process.terminate()
        for process in self.running.values():
            process.wait(STOP_DEADLINE_S)


def test_killed_jobs_lose_and_repeat_nothing(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    """SIGKILL of either job while events and subscriptions come; it starts again, and nothing comes twice."""
    draw = random.Random(11)
    site = RemoteSite(None, cluster, namespace, tmp_path / "unused", brokers=BROKERS)  # type: ignore[arg-type]
    observer = Observer(site)
    jobs = Processes(Machine(linked_home(tmp_path / "home")), site, tmp_path)
    wanted = identities(BROKERS, SIZE.subscribers, SIZE.subscriptions // 2)
    killed: list[str] = []
    try:
        for name in JOBS:
            jobs.start(name)
        for name in JOBS:
            jobs.await_running(name)
        observer.await_in_force(
            [
                observer.subscribe(each, spelling, a_filter(draw, spelling))
                for each, spelling in wanted.items()
            ]
        )
        for number in range(SIZE.kills):
            name = list(JOBS)[number] if number < len(JOBS) else draw.choice(list(JOBS))
            moment = draw.randrange(SIZE.events // SIZE.kills // 2)
            for place in range(SIZE.events // SIZE.kills // 2):
                observer.publish(draw.choice(BROKERS), a_key(draw), an_event(draw))
                if place % 20 == 0:
                    identity = draw.choice(list(wanted))
                    observer.subscribe(identity, wanted[identity], a_filter(draw, wanted[identity]))
                if place == moment:
                    site.flush()
                    time.sleep(draw.random())  # a random moment: nothing is waited for
                    jobs.kill(name)
                    killed.append(name)
                    jobs.start(name)
            jobs.await_running(name)
        observer.settle()
        job = router(jobs)
        assert job["topologies"] == dict.fromkeys(BROKERS, 1) and job["joining"] == []
        assert job["pending"] == {"count": 0, "first": []} and len(job["tree"]) == 1
    finally:
        jobs.end()
    verdict = observer.verdict(repeats="none")
    assert verdict.clean, verdict.describe()
    print(f"\nkilled {', '.join(killed)}: {verdict.describe()}")
    assert verdict.owed > SIZE.events / 4, verdict.describe()
    assert jobs.starts == SIZE.kills + len(JOBS)


def router(jobs: Processes) -> dict[str, Any]:
    """What `status` tells of the router."""
    [found] = jobs.machine.ask("status", *jobs.where())
    return next(each for each in found["jobs"] if each["job"] == "router")
