"""`branchline bench recovery`: how long a router that was killed takes until it delivers again.

A Kafka of its own, and the router as a process, as a user runs it. Once all subscriptions stand and an event
has come through, the whole process family is killed with SIGKILL; an event is published, the router started
again, and what it says is timed, line by line, until the event is delivered. Then the images of its shards
are deleted too, and it is done once more: that is a router on another machine.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from branchline.kafka.admin import ensure_topics
from branchline.kafka.asking import ask
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import WaitExpired
from branchline.kafka.home import Home
from branchline.kafka.reading import follow, open_topic
from branchline.kafka.topics import Topics
from branchline.ops.output import emit, say, table
from branchline.ops.run import prepare, start_kafka, unwound_by_sigterm
from branchline.ops.settings import json_option
from branchline.routing.control import Operation, Request

PER_SUBSCRIBER = 10_000
WAIT_S = 1_800.0
BROKER = "main"
WATCHED = "watched"
"""The subscriber whose deliveries are timed."""


@click.command(short_help="Time the recovery of a killed router, on Kafka and Spark.")
@click.option(
    "--subscriptions", type=click.IntRange(1, 1_000_000), default=100_000, show_default=True, help="In all."
)
@click.option("--delivery", type=click.Choice(["at-least-once", "exactly-once"]), default="exactly-once")
@json_option
def recovery(subscriptions: int, delivery: str, as_json: bool) -> None:
    """Kill a router with many subscriptions, start it again, and say what the time until it delivers goes to.

    \b
    Examples:
      branchline bench recovery
      branchline bench recovery --subscriptions 1000 --json
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(unwound_by_sigterm())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="branchline-bench-")))
        kafka = start_kafka(stack, prepare(Home.default(), say), say, folder / "kafka", folder)
        router = _Router(Cluster(kafka.bootstrap), folder, delivery)
        ensure_topics(router.cluster, router.topics.of_broker(BROKER))
        stack.callback(router.kill)
        router.start()
        say(f"subscribing {subscriptions:,} times")
        started = time.monotonic()
        router.subscribe(subscriptions)
        say(f"all stand after {time.monotonic() - started:.0f} s")
        router.deliver(0)
        rows = []
        for number, what in enumerate(("killed", "killed, images gone"), 1):
            router.kill()
            if number == 2:
                router.delete_images()
            began = time.monotonic()
            router.start()
            router.deliver(number)
            rows.append({"what": what, **router.phases(began, time.monotonic())})
            say(f"{what}: delivered {rows[-1]['all_s']:.1f} s after its start")
    if as_json:
        for row in rows:
            emit(row)
        return
    names = list(rows[0])
    click.echo(table(names, [[str(row[name]) for name in names] for row in rows]))


@dataclass
class _Router:
    """The process, and what it has said when."""

    cluster: Cluster
    folder: Path
    delivery: str

    def __post_init__(self) -> None:
        self.topics = Topics()
        self._process: subprocess.Popen[str] | None = None
        self._said: list[tuple[float, str]] = []

    def start(self) -> None:
        """Start it; returns at once."""
        command = [sys.executable, "-c", "from branchline.ops.cli import main; main()", "router"]
        command += ["--bootstrap", self.cluster.bootstrap, "--delivery", self.delivery]
        command += ["--checkpoint", str(self.folder / "checkpoint")]
        environment = {**os.environ, "BRANCHLINE_IMAGES": str(self.folder / "images")}
        with (self.folder / "router.output").open("wb") as output:
            self._process = subprocess.Popen(
                command, stdout=output, stderr=output, text=True, start_new_session=True, env=environment
            )
        self._said = []

    def kill(self) -> None:
        """End the whole family at once."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def delete_images(self) -> None:
        for file in (self.folder / "images").rglob("*"):
            if file.is_file():
                file.unlink()

    def subscribe(self, count: int) -> None:
        requests = [
            Request(
                Operation.SUBSCRIBE,
                f"subscriber-{number // PER_SUBSCRIBER}",
                f"s{number}",
                filter=f"kind = 'k{number}' AND price >= {number % 1_000}",
            )
            for number in range(count - 1)
        ]
        requests.append(Request(Operation.SUBSCRIBE, WATCHED, "s", filter="n >= 0"))
        ask(self.cluster, self.topics, requests, timeout_s=WAIT_S)

    def deliver(self, number: int) -> None:
        """Publish an event, and return when it is delivered; meanwhile note what the router says."""
        consumer = open_topic(self.cluster, self.topics.out(WATCHED), from_beginning=False, hint="")
        producer = self.cluster.producer()
        producer.produce(self.topics.entry(BROKER), json.dumps({"n": number}), "k")
        producer.flush(30)
        deadline = time.monotonic() + WAIT_S
        try:
            for record in follow(consumer):
                self._listen()
                if record is not None and json.loads(record.value or b"")["n"] == number:
                    return
                if time.monotonic() > deadline:
                    raise WaitExpired(f"nothing was delivered within {WAIT_S:.0f} s", hint="see the output")
        finally:
            consumer.close()

    def phases(self, began: float, delivered: float) -> dict[str, Any]:
        """What the time went to, in seconds."""
        marks = [began, self._when("spark: starting"), self._when("router: running"), delivered]
        python, spark, first = (round(b - a, 1) for a, b in pairwise(marks))
        return {
            "python_s": python,
            "spark_s": spark,
            "first_batch_s": first,
            "all_s": round(delivered - began, 1),
        }

    def _listen(self) -> None:
        lines = (self.folder / "router.output").read_text().splitlines()
        self._said += [(time.monotonic(), line) for line in lines[len(self._said) :]]

    def _when(self, words: str) -> float:
        return next((at for at, line in self._said if line.startswith(words)), time.monotonic())
