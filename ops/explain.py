"""`explain`: what becomes of an event, and why a subscriber does or does not get it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import BranchlineError, ConfigError
from branchline.kafka.explaining import Asked, hop_fields
from branchline.kafka.finding import HOW_NAMED, FoundEvent, find_event, last_event, read_name
from branchline.kafka.following import Jobs, follow_event, unaskable
from branchline.kafka.listing import read_filters
from branchline.kafka.topics import Topics, check_name
from branchline.ops.clusters import read_clusters
from branchline.ops.numbers import FiniteRange
from branchline.ops.output import emit, say
from branchline.ops.settings import (
    BROKER,
    CLUSTER,
    CLUSTERS,
    cluster_options,
    find_cluster,
    json_option,
    make_topics,
    option,
)
from branchline.routing.overlay.explaining import Explanation

EXIT_NOT_ALL_ASKED = 1

OF_NOW = "This is what would become of it now: subscriptions may have been others when it passed."


@click.command(short_help="Explain what becomes of an event, and why.")
@click.argument("event", required=False)
@click.option("--subscriber", help="Say why this subscriber does or does not get it.")
@click.option("--last", is_flag=True, help="The event that entered last at --broker.")
@cluster_options
@option(BROKER)
@option(CLUSTER)
@option(CLUSTERS, click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--timeout",
    "timeout_s",
    type=FiniteRange(min=0),
    default=30.0,
    show_default=True,
    help="Seconds to wait for each job at most.",
)
@json_option
@click.pass_context
def explain(
    ctx: click.Context,
    event: str | None,
    subscriber: str | None,
    last: bool,
    bootstrap: str | None,
    client_properties: str | None,
    namespace: str,
    broker: str,
    cluster: str,
    clusters: Path | None,
    timeout_s: float,
    as_json: bool,
) -> None:
    """Follow EVENT through the brokers, as their jobs would route it now.

    EVENT is a delivery's id (its bl-id header), or the place of its record, topic:partition:offset.
    With --subscriber, or if EVENT is a delivery's id, it is said why that subscriber gets it, or which
    constraints of its filters fail. Exits with 1 if a broker on the way could not be asked.

    \b
    Examples:
      branchline explain branchline.in.main:0:17 --subscriber alice
      branchline explain branchline.in.main:0:42:1700000000000:alice
      branchline explain --last --broker main --json
    """
    if (event is None) != last:
        raise ConfigError("name one event, or give --last" if last else "no event is named", hint=HOW_NAMED)
    topics = make_topics(namespace)
    named = read_name(event) if event is not None else None
    if subscriber is not None:
        check_name("subscriber", subscriber)
    others = read_clusters(clusters) if clusters is not None else {}
    ours = find_cluster(bootstrap, client_properties)
    everywhere = {check_name("cluster", cluster): ours} | others
    # Ours first, and each once: it may well be in the file too.
    in_order = list(dict.fromkeys([ours, *others.values()]))
    if named is not None:
        found = find_event(in_order, topics, named)
    else:
        found = last_event(ours, topics, check_name("broker", broker))
    asked = Asked(
        found.asked.broker,
        found.asked.record,
        found.asked.header,
        subscriber=subscriber or found.asked.subscriber,
    )

    def progress(what: str) -> None:
        if not as_json:
            say(what)

    explanation = unaskable(asked)
    if explanation is None:
        with Jobs(found.cluster, topics, everywhere, timeout_s, progress) as jobs:
            explanation = follow_event(jobs.ask, asked, lambda: _homes(in_order, topics, asked.subscriber))
    if as_json:
        emit(_fields(FoundEvent(found.cluster, asked), explanation))
    else:
        click.echo(f"{asked.record.place}")
        click.echo(explanation.describe())
        click.echo(OF_NOW)
    ctx.exit(EXIT_NOT_ALL_ASKED if explanation.unasked else 0)


def _homes(
    clusters: Iterable[Cluster], topics: Topics, subscriber: str | None
) -> Iterable[tuple[str, str | None]]:
    """The homes of a subscriber that no job on the way knows, as `filters` has them."""
    for cluster in clusters:
        try:
            known = read_filters(cluster, topics)
        except BranchlineError as error:
            say(f"{cluster.bootstrap}: {error}")
            continue
        for change in known.subscriptions:
            if change.identity.subscriber == subscriber:
                member = known.topology.member(change.identity.home) if known.topology else None
                yield change.identity.home, member.cluster if member is not None else None


def _fields(found: FoundEvent, explanation: Explanation) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "event": str(found.asked.record.place),
        "bootstrap": found.cluster.bootstrap,
        "as_of": "now",
        "hops": [hop_fields(hop) for hop in explanation.hops],
        "unasked": [{"broker": broker, "why": why} for broker, why in explanation.unasked],
    }
    if explanation.subscriber is not None:
        fields |= {
            "subscriber": explanation.subscriber,
            "delivered": explanation.delivered,
            "denials": [
                {
                    "subscription": str(denial.subscription),
                    "filter": denial.filter,
                    "matches": denial.matches,
                    "reasons": explanation.reasons(denial),
                    "waits_for": list(denial.waits_for),
                }
                for denial in explanation.denials
            ],
            "more_denials": explanation.more_denials,
        }
    return fields
