"""`refresh`: have a broker find out what is still wanted behind its links."""

import click

from branchline.kafka.refreshing import refresh as ask_to_refresh
from branchline.kafka.topics import check_name
from branchline.ops.output import emit
from branchline.ops.settings import cluster_options, find_cluster, json_option, make_topics
from branchline.ops.subscribing import timeout_option
from branchline.routing.control import Status


@click.command(short_help="Let a broker's table shrink to what is still wanted.")
@click.argument("broker")
@cluster_options
@timeout_option
@click.option("--give-up", is_flag=True, help="Only let BROKER wait no longer for what it has asked others.")
@json_option
def refresh(
    broker: str,
    bootstrap: str | None,
    client_properties: str | None,
    namespace: str,
    timeout_s: float,
    give_up: bool,
    as_json: bool,
) -> None:
    """Have BROKER ask all others what is still wanted, where the dissemination is cbcb.

    By cbcb, brokers keep what was wanted once. This takes back what nobody wants any more, at BROKER and on
    all links that lead away from it. Give it now and then, when too many events cross links for nothing. Who
    has not replied in time is left as it is; nothing is lost by that.

    \b
    Examples:
      branchline refresh dublin
      branchline refresh dublin --timeout 10 --json
    """
    check_name("broker", broker)
    cluster, topics = find_cluster(bootstrap, client_properties), make_topics(namespace)
    answer = ask_to_refresh(cluster, topics, broker, timeout_s, give_up=give_up)
    if as_json:
        said = {"note": answer.note} if answer.note is not None else {}
        emit({"broker": broker, "status": answer.status, "request": answer.request, **said})
    elif answer.status is Status.ACCEPTED:
        click.echo(f"{broker} waits no longer")
    else:
        click.echo(f"{broker} is refreshed" + (f": {answer.note}" if answer.note else ""))
