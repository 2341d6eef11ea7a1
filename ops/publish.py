"""`publish`: events from arguments, a file or standard input."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, NoReturn

import click

from branchline.kafka.client import Publisher
from branchline.kafka.errors import ConfigError, PublishFailed
from branchline.kafka.jsontext import read_json, utf8_text
from branchline.ops.output import emit, say
from branchline.ops.settings import BROKER, cluster_options, find_cluster, json_option, make_topics, option
from branchline.routing.codes import Rejection

PROGRESS_EVERY = 10_000


@click.command(short_help="Publish events.")
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
    documents = _of_arguments(events, raw) if events else _of_lines(file or _standard_input(), raw)
    record_key = None if key is None else os.fsencode(key)
    cluster = find_cluster(bootstrap, client_properties)
    with Publisher(cluster, namespace=namespace, broker=broker) as publisher:
        for where, document in documents:
            if isinstance(document, Rejection):
                _refuse(publisher, where, f"{document.code}: {_in_words(document)}")
            try:
                publisher.publish(document, key=record_key, headers=pairs)
            except PublishFailed as error:
                _refuse(publisher, where, str(error))
            if publisher.published % PROGRESS_EVERY == 0:
                say(f"published {publisher.published:,}")
    if as_json:
        emit({"published": publisher.published, "broker": broker})
    else:
        say(f"published {publisher.published:,} to broker {broker}")


Document = tuple[str, bytes | Rejection]
"""Where it was found, and what is to be published, or why it cannot be."""


def _of_arguments(events: Sequence[str], raw: bool) -> Sequence[Document]:
    found = [(f"event {number}", _checked(os.fsencode(event), raw)) for number, event in enumerate(events, 1)]
    # All are at hand: with one wrong among them, none is published.
    for where, document in found:
        if isinstance(document, Rejection):
            raise _refusal(where, f"{document.code}: {_in_words(document)}", published=0)
    return found


def _of_lines(lines: Iterable[bytes], raw: bool) -> Iterator[Document]:
    for number, line in enumerate(lines, 1):
        document = line.rstrip(b"\r\n")
        if document.strip():
            yield f"line {number}", _checked(document, raw)


def _checked(document: bytes, raw: bool) -> bytes | Rejection:
    read = None if raw else read_json(document)
    return read if isinstance(read, Rejection) else document


def _refuse(publisher: Publisher, where: str, why: str) -> NoReturn:
    publisher.flush()
    raise _refusal(where, why, publisher.published)


def _refusal(where: str, why: str, published: int) -> ConfigError:
    before = f"the {published:,} before it were published" if published else "none was"
    return ConfigError(
        f"{where} cannot be published: {why}; {before}",
        hint="correct it, or publish it as it is with --raw",
    )


def _in_words(fault: Rejection) -> str:
    return fault.reason + (f" at column {fault.column}" if fault.column else "")


def _standard_input() -> IO[bytes]:
    if sys.stdin.isatty():
        say("reading events from standard input, one a line; end with Ctrl-D")
    return sys.stdin.buffer


def _header(text: str) -> tuple[str, bytes]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ConfigError(f"--header {text!r} is not NAME=VALUE", hint="for example: --header source=demo")
    if utf8_text(os.fsencode(name)) is None:
        raise ConfigError(f"--header {text!r}: its name is not UTF-8", hint="check the terminal's encoding")
    return name, os.fsencode(value)
