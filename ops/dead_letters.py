"""`dead-letters`: list, show and retry."""

from collections import Counter
from collections.abc import Iterator

import click

from branchline.kafka.admin import list_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.dead_letters import DeadLetter, decode_dead_letter, retry_headers
from branchline.kafka.errors import ConfigError, PublishFailed, TopicMissing
from branchline.kafka.listing import NO_NAMESPACE
from branchline.kafka.reading import read_to_end
from branchline.kafka.topics import Topics, check_name
from branchline.ops.output import emit, readable, say, table
from branchline.ops.settings import (
    BROKER,
    cluster_options,
    find_cluster,
    json_option,
    make_topics,
    option,
)

FLUSH_TIMEOUT_S = 30.0
SHOWN_BYTES = 60


@click.group("dead-letters", short_help="List, show and retry what could not be used or delivered.")
def dead_letters() -> None:
    """What could not be used or delivered: why, and what is still owed.

    \b
    Examples:
      branchline dead-letters list --code json-number
      branchline dead-letters show 17
      branchline dead-letters retry 17 18
    """


@dead_letters.command("list")
@cluster_options
@click.option("--code", help="Only those with this code.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=100, show_default=True, help="The newest so many."
)
@json_option
def list_letters(
    bootstrap: str | None,
    client_properties: str | None,
    namespace: str,
    code: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List dead letters, the newest last.

    \b
    Example:
      branchline dead-letters list --code json-number --limit 20
    """
    topics = make_topics(namespace)
    found = [
        letter
        for letter in _letters(find_cluster(bootstrap, client_properties), topics)
        if code in (None, letter.code)
    ]
    shown = found[-limit:]
    if as_json:
        for letter in shown:
            emit(_fields(letter))
        return
    if not found:
        click.echo(f"no dead letters with code {code}" if code else "no dead letters")
        return
    rows = [
        (
            letter.record.place.offset,
            letter.code,
            letter.owed,
            letter.place or "?",
            _glance(letter.record.value),
        )
        for letter in shown
    ]
    click.echo(table(("NUMBER", "CODE", "OWES", "PUBLISHED AT", "VALUE"), rows))
    counts = ", ".join(
        f"{number} {name}" for name, number in Counter(each.code for each in found).most_common()
    )
    say(f"{len(found)} in all ({counts}); see one with: branchline dead-letters show NUMBER")


@dead_letters.command()
@click.argument("number", type=int)
@cluster_options
@json_option
def show(
    number: int, bootstrap: str | None, client_properties: str | None, namespace: str, as_json: bool
) -> None:
    """Show dead letter NUMBER whole.

    \b
    Example:
      branchline dead-letters show 17
    """
    [letter] = _chosen(find_cluster(bootstrap, client_properties), make_topics(namespace), (number,))
    fields = _fields(letter)
    if as_json:
        emit(fields)
        return
    headers = {f"header {name}": value for name, value in letter.record.headers}
    for name, value in {**fields, **{name: _glance(value) for name, value in headers.items()}}.items():
        if value is not None and name != "headers":
            click.echo(f"{name}: {value}")
    if letter.cut is not None and letter.place is not None:
        say(f"it was cut to size and cannot be retried; {_where_whole(letter)}")


@dead_letters.command(short_help="Send what they owe through the router again.")
@click.argument("numbers", type=int, nargs=-1, required=True)
@cluster_options
@option(BROKER)
@json_option
def retry(
    numbers: tuple[int, ...],
    bootstrap: str | None,
    client_properties: str | None,
    namespace: str,
    broker: str,
    as_json: bool,
) -> None:
    """Send what dead letters NUMBERS still owe through the router again, under its old identity.

    \b
    Example:
      branchline dead-letters retry 17 18
    """
    cluster, topics = find_cluster(bootstrap, client_properties), make_topics(namespace)
    if topics.broker(check_name("broker", broker)) not in list_topics(cluster):
        raise TopicMissing(f"there is no broker {broker} at {cluster.bootstrap}", hint=NO_NAMESPACE)
    letters = _chosen(cluster, topics, tuple(dict.fromkeys(numbers)))
    for letter in letters:
        if not letter.retryable:
            raise cannot_retry(letter)
    failures: list[str] = []
    producer = cluster.producer()
    for letter in letters:
        producer.produce(
            topics.broker(broker),
            letter.record.value,
            letter.record.key,
            headers=list(retry_headers(letter)),
            on_delivery=lambda error, _: failures.append(error.str()) if error else None,
        )
    if producer.flush(FLUSH_TIMEOUT_S) or failures:
        reason = failures[0] if failures else "no answer from Kafka"
        raise PublishFailed(
            f"not all were sent: {reason}", hint="try again: a retry that comes twice does no harm"
        )
    if as_json:
        emit({"retried": len(letters)})
    else:
        say(f"{len(letters)} sent again; what fails again becomes a new dead letter")


def cannot_retry(letter: DeadLetter) -> ConfigError:
    """Why a dead letter cannot be retried, and what to do instead."""
    which = f"dead letter {letter.record.place.offset} cannot be retried"
    if letter.cut is None or letter.place is None:
        return ConfigError(f"{which}: it owes nothing", hint="none was sent; leave it out and try again")
    return ConfigError(
        f"{which}: it was cut to size ({letter.cut})",
        hint=f"none was sent; {_where_whole(letter)}: make it smaller and publish it anew",
    )


def _where_whole(letter: DeadLetter) -> str:
    """Where the original of a dead letter that was cut is to be found."""
    place = letter.place
    assert place is not None
    where = f"partition {place.partition}, offset {place.offset} of {place.topic}"
    return f"the original is at {where}, for as long as that topic keeps it"


def _letters(cluster: Cluster, topics: Topics) -> Iterator[DeadLetter]:
    for record in read_to_end(cluster, topics.dead_letters, hint=NO_NAMESPACE):
        yield decode_dead_letter(record)


def _chosen(cluster: Cluster, topics: Topics, numbers: tuple[int, ...]) -> list[DeadLetter]:
    found = {letter.record.place.offset: letter for letter in _letters(cluster, topics)}
    for number in numbers:
        if number not in found:
            raise ConfigError(f"there is no dead letter {number}", hint="see `branchline dead-letters list`")
    return [found[number] for number in numbers]


def _fields(letter: DeadLetter) -> dict[str, object]:
    key = {f"key{name[5:]}": value for name, value in readable(letter.record.key).items()}
    return {
        "number": letter.record.place.offset,
        "code": letter.code,
        "reason": letter.reason,
        "owes": letter.owed,
        "published_at": str(letter.place) if letter.place else None,
        "cut": letter.cut,
        **key,
        **readable(letter.record.value),
        "headers": [[name, readable(value)] for name, value in letter.record.headers],
    }


def _glance(value: bytes | None) -> str:
    if value is None:
        return "(null)"
    text = value[:SHOWN_BYTES].decode(errors="replace")
    plain = "".join(character if character.isprintable() else "·" for character in text)
    return plain + ("…" if len(value) > SHOWN_BYTES else "")
