"""Which methods a router uses: what its user has chosen, or what the namespace has.

All routers of a namespace are to use the same, or comparing and tuning mean nothing; that they differ for a
while, as one after the other is started anew, loses and repeats nothing. So the namespace has its methods
written down, by whoever first ran there. A router that is told nothing takes those. One that is told of
others changes them if it runs alone, or if its user says so; else it is refused before anything happens.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from branchline.kafka.admin import list_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import ConfigError
from branchline.kafka.listing import last_stats
from branchline.kafka.methods import namespace_methods, record_methods
from branchline.kafka.topics import Topics
from branchline.ops.settings import DISSEMINATION, FORWARDING, MATCHING, OPTIMISE, option
from branchline.ops.status import running_jobs
from branchline.routing.methods.choosing import USUAL, spelled
from branchline.routing.methods.naming import Methods, misfit

NONE = "none"
"""What to say for no optimisation: an empty variable is as good as none that is set."""

FITTING = "see docs/methods.md for the methods there are, and which fit together"


def method_options(command: Any) -> Any:
    """The options that choose methods."""
    for setting in (OPTIMISE, DISSEMINATION, MATCHING, FORWARDING):
        command = option(setting)(command)
    return command


change_option = click.option(
    "--change-methods",
    is_flag=True,
    help="Change the namespace's methods though other routers run; they take them when started anew.",
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a user has chosen for a router."""

    methods: Methods | None = None
    """None for those of the namespace."""
    change: bool = False
    """Whether the namespace's may be changed while other routers run."""


def chosen_methods(
    forwarding: str | None, matching: str | None, dissemination: str | None, optimise: str | None
) -> Methods | None:
    """What the user has chosen, None if nothing; raises a ConfigError for what cannot be used.

    Who chooses one of them chooses all: what is not named is as it usually is.
    """
    if all(each is None for each in (forwarding, matching, dissemination, optimise)):
        return None
    optimisations = () if optimise is None or optimise == NONE else tuple(map(str.strip, optimise.split(",")))
    return check_methods(
        Methods(
            forwarding or USUAL.forwarding,
            matching or USUAL.matching,
            dissemination or USUAL.dissemination,
            optimise=optimisations,
        )
    )


def check_methods(methods: Methods) -> Methods:
    """The methods, if they can be used together; else a ConfigError."""
    wrong = misfit(methods)
    if wrong is not None:
        raise ConfigError(wrong, hint=FITTING)
    return methods


def agreed_methods(
    cluster: Cluster,
    topics: Topics,
    name: str,
    chosen: Chosen,
    report: Callable[[str], None],
) -> Methods:
    """The methods that the router of this name is to use, which are now the namespace's."""
    stands = namespace_methods(cluster, topics)
    if chosen.methods is None and stands is not None:
        return check_methods(stands)
    methods = chosen.methods or USUAL
    if stands == methods:
        return methods
    others = [] if stands is None or chosen.change else _others(cluster, topics, name)
    if others and stands is not None:
        raise ConfigError(
            f"the namespace {topics.namespace} uses {spelled(stands)}, and this router is to use "
            f"{spelled(methods)} while others run: {', '.join(others)}",
            hint="leave the methods out to use the namespace's; or change those, with --change-methods, and "
            "start the others anew",
        )
    record_methods(cluster, topics, methods, f"router/{name}", int(time.time() * 1000))
    if stands is not None:
        report(f"methods: {spelled(methods)} from now on, {spelled(stands)} before")
    return methods


def _others(cluster: Cluster, topics: Topics, name: str) -> list[str]:
    """The routers that run beside this one."""
    if topics.stats not in list_topics(cluster):
        return []
    jobs = running_jobs(last_stats(cluster, topics), time.time())
    return sorted(job["name"] for job in jobs if job["job"] == "router" and job["name"] != name)
