"""`subscriptions`: list, show, export and import."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import click

from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import RequestRefused
from branchline.kafka.listing import last_stats, list_subscriptions
from branchline.kafka.topics import Topics, check_name
from branchline.ops.importing import import_file
from branchline.ops.output import emit, say, table
from branchline.ops.settings import cluster_options, find_cluster, json_option, make_topics
from branchline.ops.subscription_files import line_of
from branchline.routing.codes import Code
from branchline.routing.control import Identity, Subscribed


class ListedByDefault(click.Group):
    """A group that lists if it is not told what to do."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=ListedByDefault, short_help="List, show, export and import subscriptions.")
def subscriptions() -> None:
    """The subscriptions that stand; without a command, they are listed.

    \b
    Examples:
      branchline subscriptions --subscriber alice
      branchline subscriptions show alice to-madrid
      branchline subscriptions export > subscriptions.jsonl
      branchline subscriptions import subscriptions.jsonl --dry-run
    """


@subscriptions.command("list", short_help="List the subscriptions that stand.")
@cluster_options
@click.option("--subscriber", help="Only this subscriber's.")
@json_option
def list_standing(
    bootstrap: str | None,
    client_properties: str | None,
    namespace: str,
    subscriber: str | None,
    as_json: bool,
) -> None:
    """List the subscriptions that stand.

    \b
    Example:
      branchline subscriptions list --subscriber alice --json
    """
    topics = make_topics(namespace)
    found = _standing(find_cluster(bootstrap, client_properties), topics, subscriber)
    if as_json:
        for change in found:
            emit(_fields(change, topics))
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


@subscriptions.command(short_help="Show all that is known of a subscriber's subscriptions.")
@click.argument("name")
@click.argument("subscription_id", metavar="[ID]", required=False)
@cluster_options
@json_option
def show(
    name: str,
    subscription_id: str | None,
    bootstrap: str | None,
    client_properties: str | None,
    namespace: str,
    as_json: bool,
) -> None:
    """Show all that is known of the subscriptions of NAME, or of the one with this ID.

    \b
    Examples:
      branchline subscriptions show alice
      branchline subscriptions show alice to-madrid --json
    """
    check_name("subscriber", name)
    topics, cluster = make_topics(namespace), find_cluster(bootstrap, client_properties)
    found = [
        change for change in _standing(cluster, topics, name) if subscription_id in (None, change.identity.id)
    ]
    if not found:
        which = "subscription" if subscription_id is None else f"subscription {subscription_id!r}"
        raise RequestRefused(
            f"subscriber {name!r} has no {which}",
            code=Code.SUBSCRIPTION_UNKNOWN,
            hint="see what there is with: branchline subscriptions",
        )
    stats = last_stats(cluster, topics)
    for change in found:
        fields = _fields(change, topics) | {
            "revision": change.revision,
            "requests": list(change.requests),
            **({} if change.lease_ms is None else {"lease_ms": change.lease_ms}),
        }
        waited = waits_for(stats, change.identity)
        if as_json:
            emit(fields if waited is None else {**fields, "waits_for": waited})
        else:
            _show(change, topics, waited)


def waits_for(stats: Mapping[str, Mapping[str, Any]], identity: Identity) -> list[str] | None:
    """The brokers that have yet to report it, as its home's job tells in `pending`; None if it does not."""
    for said in stats.values():
        pending = said.get("pending")
        if said.get("job") == "router" and identity.home in said["brokers"] and pending is not None:
            first = {each["subscription"]: each["waits_for"] for each in pending["first"]}
            if str(identity) in first:
                return list(first[str(identity)])
            # Of many, only the first ones are told by name.
            return [] if pending["count"] == len(first) else None
    return None


def _show(change: Subscribed, topics: Topics, waited: list[str] | None) -> None:
    state = "in force" if waited == [] else "accepted" if waited is None else "pending"
    click.echo(f"{change.identity.subscriber}/{change.identity.id}: {state}")
    lease = "none" if change.lease_ms is None else f"{change.lease_ms:,} ms, until {_until(change)}"
    rows = [
        ("home", change.identity.home),
        ("topic", topics.out(change.identity.subscriber)),
        ("number", f"{change.number.incarnation}, {change.number.counter}; revision {change.revision}"),
        ("lease", lease),
        ("waits for", ", ".join(waited) if waited else None),
        ("requests", ", ".join(change.requests) or None),
        ("spelling", change.spelling),
        ("filter", "\n            ".join(change.filter.splitlines())),
    ]
    for name, value in rows:
        if value is not None:
            click.echo(f"  {name:<9} {value}")


@subscriptions.command(short_help="Write the subscriptions that stand as lines for `import`.")
@cluster_options
@click.option("--subscriber", help="Only this subscriber's.")
@json_option
def export(
    bootstrap: str | None,
    client_properties: str | None,
    namespace: str,
    subscriber: str | None,
    as_json: bool,
) -> None:
    """Write the subscriptions that stand, as JSON lines that `import` and `subscribe --file` read.

    \b
    Examples:
      branchline subscriptions export > subscriptions.jsonl
      branchline subscriptions export --subscriber alice
    """
    found = _standing(find_cluster(bootstrap, client_properties), make_topics(namespace), subscriber)
    for change in found:
        click.echo(line_of(change))  # bytes: UTF-8, whatever the terminal's encoding
    if not as_json:
        say(f"{len(found):,} exported")


subscriptions.add_command(import_file)


def _standing(cluster: Cluster, topics: Topics, subscriber: str | None) -> list[Subscribed]:
    return [
        change
        for change in list_subscriptions(cluster, topics)
        if subscriber in (None, change.identity.subscriber)
    ]


def _fields(change: Subscribed, topics: Topics) -> dict[str, Any]:
    return {
        **change.identity._asdict(),
        "number": list(change.number),
        "spelling": change.spelling,
        "filter": change.filter,
        "topic": topics.out(change.identity.subscriber),
        **({} if change.until_ms is None else {"until_ms": change.until_ms}),
    }


def _until(change: Subscribed) -> str:
    """When the lease is over, to the second."""
    if change.until_ms is None:
        return "-"
    return datetime.fromtimestamp(change.until_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _in_one_line(filter: str) -> str:
    return " ".join(line.strip() for line in filter.splitlines())
