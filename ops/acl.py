"""`acl`: the rights of each role at Kafka, printed, given or taken away."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from branchline.kafka.access import (
    Right,
    Role,
    check_principal,
    commands,
    give,
    own_topics,
    rights,
    take_away,
)
from branchline.kafka.admin import ensure_topics
from branchline.kafka.errors import ConfigError
from branchline.kafka.topics import check_name
from branchline.ops.output import emit, say, table
from branchline.ops.settings import cluster_options, find_cluster, json_option, make_topics

Command = TypeVar("Command", bound=Callable[..., Any])

BOOTSTRAP = "HOST:PORT"
"""In the printed commands, if no address was given."""


class InOrder(click.Group):
    """A group that lists its commands in the order in which they are made."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


def acl_options(command: Command) -> Command:
    """What every role takes."""
    for add in (
        json_option,
        click.option("--remove", is_flag=True, help="Take these rights away again. Topics stay."),
        click.option("--apply", is_flag=True, help="Give the rights, as somebody who may alter the cluster."),
        cluster_options,
    ):
        command = add(command)
    return command


def principal_option(*, required: bool) -> Callable[[Command], Command]:
    default = "" if required else " Default: User:NAME."
    return click.option("--principal", required=required, help=f"Who it is for Kafka: User:x.{default}")


@click.group(cls=InOrder, short_help="Print or give the rights that each role needs at Kafka.")
def acl() -> None:
    """The rights that each role needs at Kafka, where an authorizer is set: printed, given, taken away.

    Without --apply or --remove nothing is changed, and no cluster is needed.

    \b
    Examples:
      branchline acl router --principal User:router
      branchline acl publisher shop --broker main --apply
      branchline acl subscriber alice --principal User:alice --apply
      branchline acl subscriber alice --remove
    """


@acl.command(short_help="Who publishes events at some brokers.")
@click.argument("name")
@click.option(
    "--broker", "brokers", multiple=True, required=True, help="Where it publishes; may be repeated."
)
@principal_option(required=False)
@acl_options
def publisher(name: str, brokers: tuple[str, ...], principal: str | None, **common: Any) -> None:
    """The rights of a publisher NAME, to write to the entry topics of these brokers.

    \b
    Example:
      branchline acl publisher shop --broker main --broker b2 --principal User:shop
    """
    topics = make_topics(common["namespace"])
    found = [
        right
        for broker in dict.fromkeys(brokers)
        for right in rights(Role.PUBLISHER, topics, broker=check_name("broker", broker))
    ]
    _do(found, principal or f"User:{name}", **common)


@acl.command(short_help="Who subscribes, and reads what is delivered to it.")
@click.argument("name")
@principal_option(required=False)
@acl_options
def subscriber(name: str, principal: str | None, **common: Any) -> None:
    """The rights of the subscriber NAME: to ask for itself, and to read its answers and deliveries.

    With --apply its topics are made too, since it may not make any.

    \b
    Example:
      branchline acl subscriber alice --principal User:alice --apply
    """
    found = rights(
        Role.SUBSCRIBER, make_topics(common["namespace"]), subscriber=check_name("subscriber", name)
    )
    _do(found, principal or f"User:{name}", subscriber=name, **common)


@acl.command(short_help="The router and the Tree Optimizer.")
@principal_option(required=True)
@acl_options
def router(principal: str, **common: Any) -> None:
    """The rights of the jobs: routers and the Tree Optimizer of a namespace, and `rebuild`.

    \b
    Example:
      branchline acl router --principal User:router --apply
    """
    _do(rights(Role.ROUTER, make_topics(common["namespace"])), principal, **common)


@acl.command(short_help="The bridge from one cluster to another, at either end.")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option(
    "--side",
    type=click.Choice(["source", "target"]),
    required=True,
    help="Which of the two clusters the rights are for.",
)
@principal_option(required=True)
@acl_options
def bridge(source: str, target: str, side: str, principal: str, **common: Any) -> None:
    """The rights of the bridge that carries from cluster FROM to cluster TO, at one of them.

    \b
    Examples:
      branchline acl bridge dublin virginia --side source --principal User:bridge
      branchline acl bridge dublin virginia --side target --principal User:bridge
    """
    names = {"source": check_name("cluster", source), "target": check_name("cluster", target)}
    role = Role.BRIDGE_SOURCE if side == "source" else Role.BRIDGE_TARGET
    _do(rights(role, make_topics(common["namespace"]), **names), principal, **common)


@acl.command(short_help="Who looks after it: status, topology, dead letters, requests for anybody.")
@principal_option(required=True)
@acl_options
def operator(principal: str, **common: Any) -> None:
    """The rights of an operator: to look at everything but deliveries, and to ask for anything.

    \b
    Example:
      branchline acl operator --principal User:olga --apply
    """
    _do(rights(Role.OPERATOR, make_topics(common["namespace"])), principal, **common)


def _do(
    found: list[Right],
    principal: str,
    *,
    bootstrap: str | None,
    client_properties: str | None,
    namespace: str,
    apply: bool,
    remove: bool,
    as_json: bool,
    subscriber: str | None = None,
) -> None:
    check_principal(principal)
    if apply and remove:
        raise ConfigError("both --apply and --remove were given", hint="give one of them")
    if not apply and not remove:
        _show(found, principal, bootstrap or BOOTSTRAP, as_json)
        return
    cluster, topics = find_cluster(bootstrap, client_properties), make_topics(namespace)
    if remove:
        count = take_away(cluster, principal, found)
        _tell(as_json, principal, "removed", count)
        return
    made = own_topics(topics, subscriber) if subscriber is not None else {}
    # First the topics: whoever is let in must not find that there is nothing.
    ensure_topics(cluster, made)
    count = give(cluster, principal, found)
    _tell(as_json, principal, "given", count, topics=list(made))


def _show(found: list[Right], principal: str, bootstrap: str, as_json: bool) -> None:
    if as_json:
        for right in found:
            emit({"principal": principal, **_fields(right)})
        return
    rows = [
        (right.resource, right.name, _pattern(right), ", ".join(right.operations), right.why)
        for right in found
    ]
    click.echo(f"{principal} as {found[0].role}:\n")
    click.echo(table(("RESOURCE", "NAME", "PATTERN", "OPERATIONS", "TO"), rows))
    click.echo("\nWith Kafka's own tool:\n")
    for line in commands(found, principal, bootstrap):
        click.echo(line)
    say("\nnothing was changed; --apply gives these rights")


def _fields(right: Right) -> dict[str, Any]:
    return {
        "role": right.role,
        "resource": right.resource,
        "name": right.name,
        "pattern": _pattern(right),
        "operations": list(right.operations),
        "why": right.why,
    }


def _pattern(right: Right) -> str:
    return "prefixed" if right.prefixed else "literal"


def _tell(as_json: bool, principal: str, what: str, count: int, topics: list[str] | None = None) -> None:
    if as_json:
        emit({"principal": principal, what: count, **({"topics": topics} if topics else {})})
        return
    for topic in topics or ():
        say(f"topic {topic} is there")
    say(f"{principal}: {count} rights {what}")
