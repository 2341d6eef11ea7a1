"""`publish`: events from arguments, a file or standard input."""

import sys
from collections.abc import Iterable, Iterator
from typing import IO

import click

from branchline.kafka.client import Publisher
from branchline.kafka.errors import ConfigError
from branchline.kafka.jsontext import read_json
from branchline.ops.output import emit, say
from branchline.ops.settings import BROKER, cluster_options, find_cluster, json_option, make_topics, option
from branchline.routing.codes import Rejection

PROGRESS_EVERY = 10_000


@click.command()
@click.argument("events", nargs=-1)
@cluster_options
@option(BROKER)
@click.option("--file", type=click.File("rb"), help="JSON lines; - is standard input.")
@click.option("--key", help="The record key of every event.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header; may be repeated.")
@click.option("--raw", is_flag=True, help="Take each line as it is: it need not be JSON.")
@json_option
def publish(
    events: tuple[str, ...],
    bootstrap: str | None,
    client_properties: str | None,
    namespace: str,
    broker: str,
    file: IO[bytes] | None,
    key: str | None,
    headers: tuple[str, ...],
    raw: bool,
    as_json: bool,
) -> None:
    """Publish EVENTS, each a JSON document, or JSON lines from a file or standard input.

    \b
    Examples:
      branchline publish '{"type": "flight", "price": 420}'
      branchline publish --key BCN --header source=demo '{"price": 42}'
      branchline publish --file events.jsonl
      generate-events | branchline publish
    """
    if events and file is not None:
        raise ConfigError("both events and --file were given", hint="give one of them")
    make_topics(namespace)
    pairs = [_header(header) for header in headers]
    lines: Iterable[bytes] = (event.encode() for event in events)
    if not events:
        lines = file if file is not None else sys.stdin.buffer
    cluster = find_cluster(bootstrap, client_properties)
    with Publisher(cluster, namespace=namespace, broker=broker) as publisher:
        for document in _documents(lines, raw, publisher):
            publisher.publish(document, key=key, headers=pairs)
            if publisher.published % PROGRESS_EVERY == 0:
                say(f"published {publisher.published:,}")
    if as_json:
        emit({"published": publisher.published, "broker": broker})
    else:
        say(f"published {publisher.published:,} to broker {broker}")


def _documents(lines: Iterable[bytes], raw: bool, publisher: Publisher) -> Iterator[bytes]:
    for number, line in enumerate(lines, 1):
        document = line.rstrip(b"\r\n")
        if not document.strip():
            continue
        fault = None if raw else read_json(document)
        if isinstance(fault, Rejection):
            publisher.flush()
            raise ConfigError(
                f"line {number} was not published: {fault.code}: {fault.reason}; "
                f"{publisher.published} before it were",
                hint="correct it, or publish lines as they are with --raw",
            )
        yield document


def _header(text: str) -> tuple[str, bytes]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ConfigError(f"--header {text!r} is not NAME=VALUE", hint="for example: --header source=demo")
    return name, value.encode()
