"""`subscribe`, `renew`, `unsubscribe` and `subscriptions`."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from branchline.kafka.asking import Answer, ask
from branchline.kafka.errors import ConfigError
from branchline.kafka.fields import dump
from branchline.kafka.jsontext import read_json
from branchline.kafka.listing import list_subscriptions
from branchline.kafka.messages import DEFAULT_ID, BadRequest, decode_request, encode_request
from branchline.ops.durations import duration_ms
from branchline.ops.output import emit, say, table
from branchline.ops.settings import cluster_options, find_cluster, json_option, make_topics
from branchline.ops.spelling import IN_WORDS, Spelled
from branchline.routing.codes import Rejection
from branchline.routing.control import Operation, Request, Status, Subscribed
from branchline.routing.spellings import SPELLINGS
from branchline.routing.spellings.errors import caret

WAITS = {"accepted": Status.ACCEPTED, "in-force": Status.IN_FORCE, "none": None}

EXIT_REFUSED = 5

wait_option = click.option(
    "--wait", type=click.Choice(list(WAITS)), default="in-force", show_default=True, help="How far to wait."
)
timeout_option = click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    help="Seconds to wait at most.",
)
lease_option = click.option(
    "--lease",
    "lease_ms",
    type=duration_ms,
    metavar="DURATION",
    help="How long it stands unless renewed: 90s, 30m, 1h, 7d.",
)
FILE_HINT = 'each line is like {"subscriber": "alice", "id": "cheap", "filter": "price < 100"}'

home_option = click.option("--home", help="The home broker; needed only if the cluster has several.")


@click.command(short_help="Subscribe to the events that match a filter.")
@click.argument("name", required=False)
@click.argument("filter", required=False)
@cluster_options
@click.option(
    "--id", "subscription_id", default=DEFAULT_ID, show_default=True, help="Names the subscription."
)
@click.option("--spelling", show_default="guessed", help=f"The filter's language: {', '.join(SPELLINGS)}.")
@click.option(
    "--file",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='Many at once: JSON lines like {"subscriber": "alice", "id": "cheap", "filter": "price < 100"}.',
)
@lease_option
@home_option
@wait_option
@timeout_option
@json_option
@click.pass_context
def subscribe(
    ctx: click.Context,
    name: str | None,
    filter: str | None,
    bootstrap: str | None,
    client_properties: str | None,
    namespace: str,
    subscription_id: str,
    spelling: str | None,
    path: Path | None,
    lease_ms: int | None,
    home: str | None,
    wait: str,
    timeout_s: float,
    as_json: bool,
) -> None:
    """Subscribe NAME to the events that match FILTER, or replace its subscription of that id.

    \b
    Examples:
      branchline subscribe alice "type = 'flight' AND price < 500"
      branchline subscribe alice "origin LIKE 'M%'" --id to-madrid --wait accepted
      branchline subscribe alice "origin = 'DUB'" --id this-hour --lease 1h
      branchline subscribe alice '{"type": ["flight"]}' --spelling eventbridge
      branchline subscribe --file subscriptions.jsonl
    """
    if path is not None:
        if name is not None:
            raise ConfigError("both NAME and --file were given", hint="give one of them")
        requests, guessed = _read_file(path, home, spelling, lease_ms)
    elif name is None or filter is None:
        raise ConfigError("NAME and FILTER are needed", hint='branchline subscribe alice "price < 100"')
    else:
        filter_ = Spelled.of(filter, spelling)
        request = Request(
            Operation.SUBSCRIBE,
            name,
            subscription_id,
            home,
            filter_.spelling,
            filter,
            lease_ms=lease_ms,
        )
        requests, guessed = [_checked(request, "subscribe")], [filter_] if filter_.guessed else []
    topics = make_topics(namespace)
    cluster = find_cluster(bootstrap, client_properties)
    if not as_json:
        _tell_guesses(guessed, of_file=path is not None)

    def progress(answered: int) -> None:
        if answered % 1000 == 0:
            say(f"{answered:,} of {len(requests):,} answered")

    answers = ask(cluster, topics, requests, WAITS[wait], timeout_s, progress)
    if WAITS[wait] is None:
        _tell_written(requests, as_json)
    ctx.exit(_tell(requests, answers, as_json))


@click.command(short_help="Begin a subscription's lease anew.")
@click.argument("name")
@cluster_options
@click.option("--id", "subscription_id", default=DEFAULT_ID, show_default=True, help="Which subscription.")
@lease_option
@home_option
@click.option("--no-wait", is_flag=True, help="Do not wait for the answer.")
@timeout_option
@json_option
@click.pass_context
def renew(
    ctx: click.Context,
    name: str,
    bootstrap: str | None,
    client_properties: str | None,
    namespace: str,
    subscription_id: str,
    lease_ms: int | None,
    home: str | None,
    no_wait: bool,
    timeout_s: float,
    as_json: bool,
) -> None:
    """Begin the lease of a subscription of NAME anew, as long as it was or as --lease says.

    \b
    Example:
      branchline renew alice --id this-hour --lease 2h
    """
    request = Request(Operation.RENEW, name, subscription_id, home, lease_ms=lease_ms)
    requests = [_checked(request, "renew")]
    cluster = find_cluster(bootstrap, client_properties)
    answers = ask(cluster, make_topics(namespace), requests, None if no_wait else Status.RENEWED, timeout_s)
    if no_wait:
        _tell_written(requests, as_json)
    ctx.exit(_tell(requests, answers, as_json))


@click.command(short_help="End a subscription.")
@click.argument("name")
@cluster_options
@click.option("--id", "subscription_id", default=DEFAULT_ID, show_default=True, help="Which subscription.")
@home_option
@click.option("--no-wait", is_flag=True, help="Do not wait for the answer.")
@timeout_option
@json_option
@click.pass_context
def unsubscribe(
    ctx: click.Context,
    name: str,
    bootstrap: str | None,
    client_properties: str | None,
    namespace: str,
    subscription_id: str,
    home: str | None,
    no_wait: bool,
    timeout_s: float,
    as_json: bool,
) -> None:
    """End a subscription of NAME. What was delivered stays in its topic.

    \b
    Example:
      branchline unsubscribe alice --id to-madrid
    """
    requests = [_checked(Request(Operation.UNSUBSCRIBE, name, subscription_id, home), "unsubscribe")]
    cluster = find_cluster(bootstrap, client_properties)
    answers = ask(cluster, make_topics(namespace), requests, None if no_wait else Status.ENDED, timeout_s)
    if no_wait:
        _tell_written(requests, as_json)
    ctx.exit(_tell(requests, answers, as_json))


@click.command(short_help="List the subscriptions in force.")
@cluster_options
@click.option("--subscriber", help="Only this subscriber's.")
@json_option
def subscriptions(
    bootstrap: str | None,
    client_properties: str | None,
    namespace: str,
    subscriber: str | None,
    as_json: bool,
) -> None:
    """List the subscriptions in force.

    \b
    Example:
      branchline subscriptions --subscriber alice --json
    """
    topics = make_topics(namespace)
    found = [
        change
        for change in list_subscriptions(find_cluster(bootstrap, client_properties), topics)
        if subscriber in (None, change.identity.subscriber)
    ]
    if as_json:
        for change in found:
            emit(
                {
                    **change.identity._asdict(),
                    "number": list(change.number),
                    "spelling": change.spelling,
                    "filter": change.filter,
                    "topic": topics.out(change.identity.subscriber),
                    **({} if change.until_ms is None else {"until_ms": change.until_ms}),
                }
            )
        return
    if not found:
        whose = f" of {subscriber}" if subscriber else ""
        example = f'branchline subscribe {subscriber or "alice"} "price < 100"'
        click.echo(f"no subscriptions{whose}; add one with: {example}")
        return
    rows = [
        (*change.identity[1:], change.identity.home, _until(change), _in_one_line(change.filter))
        for change in found
    ]
    click.echo(table(("SUBSCRIBER", "ID", "HOME", "UNTIL", "FILTER"), rows))


def _until(change: Subscribed) -> str:
    """When the lease is over, to the second."""
    if change.until_ms is None:
        return "-"
    return datetime.fromtimestamp(change.until_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _read_file(
    path: Path, home: str | None, spelling: str | None, lease_ms: int | None
) -> tuple[list[Request], list[Spelled]]:
    """The requests, and of their filters those whose spelling nobody says."""
    requests: list[Request] = []
    guessed: list[Spelled] = []
    # Split as bytes: text may hold other characters that Python takes for the end of a line.
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        fields = read_json(line.rstrip(b"\r"))
        if isinstance(fields, Rejection):
            at = f" at column {fields.column}" if fields.column else ""
            raise ConfigError(f"{where}: not JSON: {fields.reason}{at}", hint=FILE_HINT)
        if not isinstance(fields, dict):
            raise ConfigError(f"{where}: not a JSON object", hint=FILE_HINT)
        if isinstance(text := fields.get("filter"), str) and "spelling" not in fields:
            filter_ = Spelled.of(text, spelling)
            fields["spelling"] = filter_.spelling
            guessed += [filter_] if filter_.guessed else []
        said = {"version": 1, "op": Operation.SUBSCRIBE, "home": home, "lease_ms": lease_ms}
        message = dump({**said, **fields})
        request = _decoded(message, where)
        if request.operation is not Operation.SUBSCRIBE:
            raise ConfigError(f'{where}: "op" is not "subscribe"', hint="leave it out")
        requests.append(request)
    if not requests:
        raise ConfigError(f"{path} holds no subscription", hint=FILE_HINT)
    return requests, guessed


def _checked(request: Request, where: str) -> Request:
    try:
        message = encode_request(request)
    except UnicodeEncodeError:
        raise ConfigError(
            f"{where}: an argument is not UTF-8", hint="check the terminal's encoding"
        ) from None
    return _decoded(message, where)


def _decoded(message: bytes, where: str) -> Request:
    """What the router would read, so that a slip is told at once and not from afar."""
    request = decode_request(message)
    if isinstance(request, BadRequest):
        raise ConfigError(f"{where}: {request.rejection.reason}", hint="see --help for examples")
    return request


def _tell_guesses(guessed: Sequence[Spelled], of_file: bool) -> None:
    """Say what was not taken for SQL: who meant it otherwise would wonder why nothing matches."""
    others = [each for each in guessed if each.spelling != "sql"]
    if not of_file:
        for filter_ in others:
            say(filter_.note)
    elif others:
        counts = Counter(each.spelling for each in others)
        told = ", ".join(f"{number:,} as {IN_WORDS[spelling]}" for spelling, number in sorted(counts.items()))
        say(f'filters read {told}; --spelling, or "spelling" in a line, says otherwise')


def _tell_written(requests: Sequence[Request], as_json: bool) -> None:
    if as_json:
        spellings = sorted({each.spelling for each in requests if each.operation is Operation.SUBSCRIBE})
        emit(
            {
                "status": "written",
                "requests": len(requests),
                **({"spellings": spellings} if spellings else {}),
            }
        )
    else:
        say(f"{len(requests)} written, not waited for")


def _tell(requests: Sequence[Request], answers: Sequence[Answer], as_json: bool) -> int:
    refused = [answer for answer in answers if answer.status is Status.REFUSED]
    for request, answer in zip(requests, answers, strict=False):
        if as_json:
            fields = {
                "status": answer.status,
                "subscriber": request.subscriber,
                "id": request.id,
                "spelling": request.spelling if request.operation is Operation.SUBSCRIBE else None,
                "number": answer.number,
                "code": answer.code,
                "reason": answer.reason,
                "line": answer.line,
                "column": answer.column,
                "note": answer.note,
            }
            emit({name: value for name, value in fields.items() if value is not None})
        elif answer.status is Status.REFUSED:
            say(f"{request.subscriber}/{request.id}: refused [{answer.code}]: {_why(answer)}")
            if answer.line is not None and answer.column is not None:
                say(caret(request.filter, answer.line, answer.column))
        elif len(requests) == 1:
            say(f"{request.subscriber}/{request.id}: {answer.status}")
            if answer.status in (Status.ACCEPTED, Status.IN_FORCE):
                if answer.note is not None:
                    say(f"note: {answer.note}")
                say(f"read what it gets with: branchline consume {request.subscriber}")
    if not as_json and len(answers) > 1:
        say(f"{len(answers) - len(refused):,} done, {len(refused):,} refused")
    return EXIT_REFUSED if refused else 0


def _why(answer: Answer) -> str:
    place = f" (line {answer.line}, column {answer.column})" if answer.line is not None else ""
    return f"{answer.reason}{place}"


def _in_one_line(filter: str) -> str:
    return " ".join(line.strip() for line in filter.splitlines())
