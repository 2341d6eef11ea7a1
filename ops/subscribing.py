"""`subscribe`, `renew` and `unsubscribe`."""

from pathlib import Path

import click

from branchline.kafka.asking import ask
from branchline.kafka.errors import ConfigError
from branchline.kafka.fixed_sets import FixedSets
from branchline.kafka.messages import DEFAULT_ID
from branchline.ops.durations import duration_ms
from branchline.ops.numbers import FiniteRange
from branchline.ops.output import say
from branchline.ops.settings import (
    cluster_options,
    find_cluster,
    json_option,
    make_topics,
    own_control_option,
)
from branchline.ops.spelling import Spelled
from branchline.ops.subscription_files import checked, read_lines
from branchline.ops.telling import tell, tell_guesses, tell_written
from branchline.routing.control import Operation, Request, Status
from branchline.routing.spellings import SPELLINGS

WAITS = {"accepted": Status.ACCEPTED, "in-force": Status.IN_FORCE, "none": None}

wait_option = click.option(
    "--wait", type=click.Choice(list(WAITS)), default="in-force", show_default=True, help="How far to wait."
)
timeout_option = click.option(
    "--timeout",
    "timeout_s",
    type=FiniteRange(min=0),
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
@click.option(
    "--claim",
    is_flag=True,
    help="Say where the filter goes in the home's fixed set; needs --home, and covering+ff there.",
)
@wait_option
@timeout_option
@own_control_option
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
    claim: bool,
    wait: str,
    timeout_s: float,
    own: bool,
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
      branchline subscribe alice "price < 10" --home dublin --claim
    """
    if path is not None:
        if name is not None:
            raise ConfigError("both NAME and --file were given", hint="give one of them")
        lines = read_lines(str(path), path.read_bytes(), home, spelling, lease_ms)
        requests, guessed = [line.request for line in lines], [line.guessed for line in lines if line.guessed]
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
        requests, guessed = [checked(request, "subscribe")], [filter_] if filter_.guessed else []
    topics = make_topics(namespace)
    cluster = find_cluster(bootstrap, client_properties)
    if not as_json:
        tell_guesses(guessed, of_file=path is not None)

    if claim:
        fixed_sets = FixedSets(cluster, topics, own)
        requests = [fixed_sets.claiming(each, timeout_s) for each in requests]

    def progress(answered: int) -> None:
        if answered % 1000 == 0:
            say(f"{answered:,} of {len(requests):,} answered")

    answers = ask(cluster, topics, requests, WAITS[wait], timeout_s, progress, own=own)
    if WAITS[wait] is None:
        tell_written(requests, as_json)
    ctx.exit(tell(requests, answers, as_json))


@click.command(short_help="Begin a subscription's lease anew.")
@click.argument("name")
@cluster_options
@click.option("--id", "subscription_id", default=DEFAULT_ID, show_default=True, help="Which subscription.")
@lease_option
@home_option
@click.option("--no-wait", is_flag=True, help="Do not wait for the answer.")
@timeout_option
@own_control_option
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
    own: bool,
    as_json: bool,
) -> None:
    """Begin the lease of a subscription of NAME anew, as long as it was or as --lease says.

    \b
    Example:
      branchline renew alice --id this-hour --lease 2h
    """
    request = Request(Operation.RENEW, name, subscription_id, home, lease_ms=lease_ms)
    requests = [checked(request, "renew")]
    cluster = find_cluster(bootstrap, client_properties)
    answers = ask(
        cluster, make_topics(namespace), requests, None if no_wait else Status.RENEWED, timeout_s, own=own
    )
    if no_wait:
        tell_written(requests, as_json)
    ctx.exit(tell(requests, answers, as_json))


@click.command(short_help="End a subscription, or all of a subscriber.")
@click.argument("name")
@cluster_options
@click.option("--id", "subscription_id", show_default=DEFAULT_ID, help="Which subscription.")
@click.option("--all", "all_", is_flag=True, help="All that NAME has.")
@home_option
@click.option("--no-wait", is_flag=True, help="Do not wait for the answer.")
@timeout_option
@own_control_option
@json_option
@click.pass_context
def unsubscribe(
    ctx: click.Context,
    name: str,
    bootstrap: str | None,
    client_properties: str | None,
    namespace: str,
    subscription_id: str | None,
    all_: bool,
    home: str | None,
    no_wait: bool,
    timeout_s: float,
    own: bool,
    as_json: bool,
) -> None:
    """End a subscription of NAME, or with --all every one. What was delivered stays in its topic.

    \b
    Examples:
      branchline unsubscribe alice --id to-madrid
      branchline unsubscribe alice --all
    """
    if all_ and subscription_id is not None:
        raise ConfigError("both --id and --all were given", hint="give one of them")
    which = "" if all_ else DEFAULT_ID if subscription_id is None else subscription_id
    requests = [checked(Request(Operation.UNSUBSCRIBE, name, which, home, all=all_), "unsubscribe")]
    cluster = find_cluster(bootstrap, client_properties)
    answers = ask(
        cluster, make_topics(namespace), requests, None if no_wait else Status.ENDED, timeout_s, own=own
    )
    if no_wait:
        tell_written(requests, as_json)
    ctx.exit(tell(requests, answers, as_json))
