"""`consume`: what was delivered to a subscriber."""

import sys
import time
from typing import Any

import click

from branchline.kafka.client import Delivered, Subscriber
from branchline.kafka.errors import WaitExpired
from branchline.ops.numbers import FiniteRange
from branchline.ops.output import emit, readable, say
from branchline.ops.settings import cluster_options, find_cluster, json_option, make_topics


@click.command(short_help="Print what was delivered to a subscriber.")
@click.argument("name")
@cluster_options
@click.option("--from-beginning", is_flag=True, help="Also what was delivered before now.")
@click.option("--count", type=click.IntRange(min=1), help="End after so many events.")
@click.option(
    "--timeout",
    "timeout_s",
    type=FiniteRange(min=0),
    help="End after so many seconds; with --count, fail if it was not reached.",
)
@json_option
def consume(
    name: str,
    bootstrap: str | None,
    client_properties: str | None,
    namespace: str,
    from_beginning: bool,
    count: int | None,
    timeout_s: float | None,
    as_json: bool,
) -> None:
    """Print the events delivered to subscriber NAME as they come, repeats dropped.

    \b
    Examples:
      branchline consume alice
      branchline consume alice --from-beginning --count 10 --json
    """
    make_topics(namespace)
    subscriber = Subscriber(find_cluster(bootstrap, client_properties), name, namespace=namespace)
    if sys.stdout.isatty() and count is None and timeout_s is None:
        say(f"events for {name}, as they come; end with Ctrl-C")
    deadline: float | None = None
    seen = 0
    for event in subscriber.poll_events(from_beginning=from_beginning):
        if event is not None:
            _show(event, as_json)
            seen += 1
        if seen == count:
            return
        if timeout_s is None:
            continue
        # Counted from here on: reaching the cluster has a deadline of its own.
        deadline = deadline or time.monotonic() + timeout_s
        if time.monotonic() > deadline:
            if count is None:
                return
            raise WaitExpired(
                f"{seen} of {count} events came in {timeout_s:g} s",
                hint="is anything published that matches? See `branchline subscriptions` and `status`",
            )


def _show(event: Delivered, as_json: bool) -> None:
    if not as_json:
        sys.stdout.buffer.write((event.value or b"") + b"\n")
        sys.stdout.buffer.flush()
        return
    key: dict[str, Any] = {f"key{name[5:]}": value for name, value in readable(event.key).items()}
    headers = [[name, readable(value)] for name, value in event.headers]
    emit({"id": event.id, **key, **readable(event.value), "headers": headers})
