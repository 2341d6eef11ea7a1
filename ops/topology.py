"""`topology`: show the overlay, check a file, and add, remove, link and unlink brokers while it runs."""

from pathlib import Path
from typing import Any

import click

from branchline.kafka.errors import ConfigError
from branchline.kafka.topologies import topology_fields
from branchline.ops.changing import Changed, Changer
from branchline.ops.clusters import read_clusters
from branchline.ops.numbers import FiniteRange
from branchline.ops.output import emit, say, table
from branchline.ops.overlay import read_topology
from branchline.ops.settings import (
    CLUSTERS,
    cluster_options,
    find_cluster,
    json_option,
    make_topics,
    option,
)
from branchline.ops.sites import Look, Served, Sites
from branchline.ops.topology_picture import draw_picture
from branchline.ops.topology_text import draw
from branchline.routing.overlay.topology import LINK_COST_MAX, Member, Topology, fault

LINK_HINT = "write it as OTHER or OTHER:COST, for example --link dublin:5"


class ShownByDefault(click.Group):
    """Without a command, it shows."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = ["show", *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=ShownByDefault, short_help="Show the brokers and their links, and change them.")
def topology() -> None:
    """The brokers and the links between them: show them, or change them while everything runs.

    \b
    Examples:
      branchline topology
      branchline topology add lisbon --link dublin:5
      branchline topology remove lisbon
    """


picture_option = click.option(
    "--picture",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also draw it into a file: .svg or .png.",
)


def sites_options(command: Any) -> Any:
    """The options of every command that looks at the jobs."""
    return cluster_options(option(CLUSTERS, click.Path(path_type=Path))(json_option(command)))


def changing_options(command: Any) -> Any:
    """The options of every command that changes the topology."""
    for each in (
        click.option("--no-wait", is_flag=True, help="Do not wait until every broker has the topology."),
        click.option(
            "--timeout",
            "timeout_s",
            type=FiniteRange(min=0),
            default=120.0,
            show_default=True,
            help="Seconds to wait at most.",
        ),
    ):
        command = each(command)
    return sites_options(command)


cost_option = click.option(
    "--cost", type=click.IntRange(1, LINK_COST_MAX), default=1, show_default=True, help="What the link costs."
)


def _sites(
    bootstrap: str | None, client_properties: str | None, namespace: str, clusters: Path | None
) -> Sites:
    topics = make_topics(namespace)
    others = read_clusters(clusters) if clusters is not None else {}
    return Sites(find_cluster(bootstrap, client_properties), topics, others)


def _changer(timeout_s: float, no_wait: bool, **where: Any) -> Changer:
    return Changer(_sites(**where), timeout_s, say, wait=not no_wait)


@topology.command("show", short_help="Show brokers, their jobs and their links.")
@picture_option
@sites_options
def show(picture: Path | None, as_json: bool, **where: Any) -> None:
    """Show the brokers, which job serves each and which topology it has, and their links.

    \b
    Examples:
      branchline topology show
      branchline topology show --clusters clusters.toml --picture overlay.svg
    """
    sites = _sites(**where)
    look = sites.look(sites.newest())
    if picture is not None:
        draw_picture(look.topology, picture, notes(look))
        say(f"drawn into {picture}")
    if as_json:
        emit(as_fields(look))
    else:
        _show(look)


@topology.command("check", short_help="Check and draw the topology in a file.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@picture_option
@json_option
def check(file: Path, picture: Path | None, as_json: bool) -> None:
    """Check the topology in FILE before a job begins with it, and draw it; needs no cluster.

    With --json it is printed in the form that control messages have.

    \b
    Example:
      branchline topology check overlay.toml
    """
    found = read_topology(file)
    wrong = fault(found)
    if wrong is not None:
        raise ConfigError(f"{file} cannot be a topology: {wrong}", hint="correct it, then check it again")
    if picture is not None:
        draw_picture(found, picture)
        say(f"drawn into {picture}")
    if as_json:
        emit(topology_fields(found))
        return
    click.echo(heading(found))
    click.echo(draw(found, {member.name: f"number {member.number}" for member in found.members}))


@topology.command("add", short_help="Let a new broker join.")
@click.argument("broker")
@click.option(
    "--link", "links", multiple=True, required=True, metavar="OTHER[:COST]", help="May be repeated."
)
@click.option("--cluster", help="The Kafka cluster that it is on. Default: the one that this command asks.")
@changing_options
def add(broker: str, links: tuple[str, ...], cluster: str | None, as_json: bool, **how: Any) -> None:
    """Let BROKER join, linked with others, as soon as its job runs.

    Start its job first: `branchline router --broker BROKER --join`.

    \b
    Examples:
      branchline topology add lisbon --link dublin --link virginia:5
      branchline topology add lisbon --link dublin --cluster pt --clusters clusters.toml
    """
    wanted = _links(links)
    _tell(_changer(**how).add(broker, wanted, cluster), f"{broker} is in", as_json)


@topology.command("remove", short_help="Let a broker leave for good.")
@click.argument("broker")
@click.option("--yes", is_flag=True, help="Do not ask before subscriptions are ended.")
@changing_options
def remove(broker: str, yes: bool, as_json: bool, **how: Any) -> None:
    """Let BROKER leave for good: its subscriptions are ended, and its name is never used again.

    It takes two topologies. An interrupted command goes on where it was when it is given again.

    \b
    Example:
      branchline topology remove lisbon --yes
    """

    def agree(ending: int) -> None:
        if yes:
            return
        if as_json:
            raise ConfigError(
                f"{ending} subscriptions at home with {broker!r} would be ended", hint="give --yes"
            )
        click.confirm(
            f"{ending} subscriptions at home with {broker} will be ended. Go on?", abort=True, err=True
        )

    changer = _changer(**how)
    done = changer.remove(broker, agree)
    leaving = done.topology.member(broker) is not None
    _tell(done, f"{broker} is leaving" if leaving else f"{broker} is retired", as_json)


@topology.command("link", short_help="Link two brokers, or change what their link costs.")
@click.argument("one")
@click.argument("other")
@cost_option
@changing_options
def link(one: str, other: str, cost: int, as_json: bool, **how: Any) -> None:
    """Link two brokers, or give their link another cost.

    \b
    Example:
      branchline topology link lisbon virginia --cost 5
    """
    done = _changer(**how).link(one, other, cost)
    _tell(done, f"{one} and {other} are linked at cost {cost}", as_json)


@topology.command("unlink", short_help="Take the link between two brokers away.")
@click.argument("one")
@click.argument("other")
@changing_options
def unlink(one: str, other: str, as_json: bool, **how: Any) -> None:
    """Take the link between two brokers away; refused if some could then not be reached any more.

    \b
    Example:
      branchline topology unlink lisbon virginia
    """
    _tell(_changer(**how).unlink(one, other), f"{one} and {other} are not linked", as_json)


def _links(given: tuple[str, ...]) -> dict[str, int]:
    links: dict[str, int] = {}
    for text in given:
        other, colon, cost = text.partition(":")
        if not other or (colon and not (cost.isascii() and cost.isdigit())) or other in links:
            raise ConfigError(f"--link {text!r} is no link, or there twice", hint=LINK_HINT)
        links[other] = int(cost) if colon else 1
    return links


def _tell(done: Changed, what: str, as_json: bool) -> None:
    number = done.topology.number
    if as_json:
        emit({"changed": done.changed, **topology_fields(done.topology)})
    elif done.changed:
        click.echo(f"topology {number}: {what}")
    else:
        click.echo(f"topology {number}: {what} already; nothing was changed")


def heading(topology: Topology) -> str:
    """What stands above a picture, and an empty line."""
    sizes = (("broker", len(topology.members)), ("link", len(topology.links)))
    counts = (f"{count} {what}{'' if count == 1 else 's'}" for what, count in sizes)
    return f"topology {topology.number}: {', '.join(counts)}\n"


def state_of(member: Member, served: Served | None) -> str:
    """How a broker stands: leaving, joining or active."""
    if member.leaving:
        return "leaving"
    return "joining" if served is not None and served.joining else "active"


def notes(look: Look) -> dict[str, str]:
    """What a picture says of brokers beside their names."""
    found = {}
    for member in look.topology.members:
        served = look.served.get(member.name)
        said = [] if served is None or not served.joining else ["joining"]
        if served is not None and served.topology is not None and served.topology < look.topology.number:
            said.append(f"has topology {served.topology}" if served.topology else "has no topology")
        if said:
            found[member.name] = ", ".join(said)
    return found


def as_fields(look: Look) -> dict[str, Any]:
    """All that is shown, as one JSON object."""
    fields = topology_fields(look.topology)
    members = {member.name: member for member in look.topology.members}
    for broker in fields["brokers"]:
        served = look.served.get(broker["name"])
        broker |= {
            "state": state_of(members[broker["name"]], served),
            "job": served and served.job,
            "job_state": served and served.state,
            "topology": served and served.topology,
        }
    return {**fields, "waiting": waiting(look), "unseen": sorted(look.unseen)}


def waiting(look: Look) -> list[str]:
    """Brokers that a job serves and no topology has."""
    known = {member.name for member in look.topology.members} | {name for name, _ in look.topology.retired}
    return sorted(name for name, served in look.served.items() if served.waiting and name not in known)


def _show(look: Look) -> None:
    found = look.topology
    click.echo(heading(found))
    click.echo(draw(found, notes(look)))
    rows = []
    for member in found.members:
        served = look.served.get(member.name)
        job = "-" if served is None else f"{served.job} ({served.state})"
        has = "?" if served is None or served.topology is None else served.topology
        rows.append((member.number, member.name, member.cluster, state_of(member, served), job, has))
    rows += [(number, name, "-", "retired", "-", "-") for name, number in found.retired]
    click.echo(f"\n{table(('NUMBER', 'BROKER', 'CLUSTER', 'STATE', 'JOB', 'HAS TOPOLOGY'), rows)}")
    if waiting(look):
        click.echo(f"\nserved, and in no topology yet: {', '.join(waiting(look))}")
        say("let one join with: branchline topology add BROKER --link OTHER")
    if look.unseen:
        say(f"the jobs on {', '.join(sorted(look.unseen))} cannot be seen: check --clusters")
