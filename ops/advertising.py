"""`advertise` and `unadvertise`: what a publisher says that it sends."""

import click

from branchline.kafka.asking import ask
from branchline.kafka.messages import DEFAULT_ID
from branchline.ops.settings import (
    cluster_options,
    find_cluster,
    json_option,
    make_topics,
    own_control_option,
)
from branchline.ops.spelling import Spelled
from branchline.ops.subscribing import WAITS, timeout_option, wait_option
from branchline.ops.subscription_files import checked
from branchline.ops.telling import tell, tell_guesses, tell_written
from branchline.routing.control import Operation, Request, Status
from branchline.routing.spellings import SPELLINGS

broker_option = click.option(
    "--broker", help="Where the publisher publishes; needed only if the cluster has several."
)


@click.command(short_help="Say what a publisher will send.")
@click.argument("publisher")
@click.argument("filter")
@cluster_options
@click.option("--id", "advert_id", default=DEFAULT_ID, show_default=True, help="Names the advertisement.")
@click.option("--spelling", show_default="guessed", help=f"The filter's language: {', '.join(SPELLINGS)}.")
@broker_option
@wait_option
@timeout_option
@own_control_option
@json_option
@click.pass_context
def advertise(
    ctx: click.Context,
    publisher: str,
    filter: str,
    bootstrap: str | None,
    client_properties: str | None,
    namespace: str,
    advert_id: str,
    spelling: str | None,
    broker: str | None,
    wait: str,
    timeout_s: float,
    own: bool,
    as_json: bool,
) -> None:
    """Say that PUBLISHER will send events that match FILTER, or replace its advertisement of that id.

    \b
    Examples:
      branchline advertise shop "type = 'order'"
      branchline advertise shop "type = 'order' AND country = 'IE'" --broker dublin --wait accepted
      branchline advertise feed '{"type": ["flight"]}' --id flights --spelling eventbridge
    """
    filter_ = Spelled.of(filter, spelling)
    request = Request(Operation.ADVERTISE, publisher, advert_id, broker, filter_.spelling, filter)
    requests = [checked(request, "advertise")]
    topics, cluster = make_topics(namespace), find_cluster(bootstrap, client_properties)
    if not as_json:
        tell_guesses([filter_] if filter_.guessed else [], of_file=False)
    answers = ask(cluster, topics, requests, WAITS[wait], timeout_s, own=own)
    if WAITS[wait] is None:
        tell_written(requests, as_json)
    ctx.exit(tell(requests, answers, as_json))


@click.command(short_help="End an advertisement.")
@click.argument("publisher")
@cluster_options
@click.option("--id", "advert_id", default=DEFAULT_ID, show_default=True, help="Which advertisement.")
@broker_option
@click.option("--no-wait", is_flag=True, help="Do not wait for the answer.")
@timeout_option
@own_control_option
@json_option
@click.pass_context
def unadvertise(
    ctx: click.Context,
    publisher: str,
    bootstrap: str | None,
    client_properties: str | None,
    namespace: str,
    advert_id: str,
    broker: str | None,
    no_wait: bool,
    timeout_s: float,
    own: bool,
    as_json: bool,
) -> None:
    """End an advertisement of PUBLISHER. Events that it let in before still arrive.

    \b
    Examples:
      branchline unadvertise shop
      branchline unadvertise feed --id flights --broker dublin
    """
    request = Request(Operation.UNADVERTISE, publisher, advert_id, broker)
    requests = [checked(request, "unadvertise")]
    cluster = find_cluster(bootstrap, client_properties)
    wait = None if no_wait else Status.ENDED
    answers = ask(cluster, make_topics(namespace), requests, wait, timeout_s, own=own)
    if no_wait:
        tell_written(requests, as_json)
    ctx.exit(tell(requests, answers, as_json))
