"""What every command is told: one table of settings, each an option and an environment variable."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from branchline.kafka.cluster import Cluster, read_properties
from branchline.kafka.errors import ConfigError
from branchline.kafka.home import Home
from branchline.kafka.topics import Topics

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: the option's name, its variable, and what it is for."""

    option: str
    variable: str
    help: str
    default: str | None = None


BOOTSTRAP = Setting(
    "--bootstrap", "BRANCHLINE_BOOTSTRAP", "Kafka's address, host:port[,...]. Default: the running `up`."
)
PROPERTIES = Setting(
    "--client-properties", "BRANCHLINE_CLIENT_PROPERTIES", "A file with the client's security settings."
)
NAMESPACE = Setting("--namespace", "BRANCHLINE_NAMESPACE", "Prefix of all topics.", "branchline")
BROKER = Setting("--broker", "BRANCHLINE_BROKER", "The broker to serve, or to enter at.", "main")
SHARDS = Setting("--shards", "BRANCHLINE_SHARDS", "Shards of the router; fixed with its checkpoint.", "2")
MAX_EVENTS = Setting(
    "--max-events-per-batch", "BRANCHLINE_MAX_EVENTS_PER_BATCH", "Events a micro-batch takes.", "20000"
)
CHECKPOINT = Setting(
    "--checkpoint", "BRANCHLINE_CHECKPOINT", "Where the router keeps its state. Default: in the home folder."
)
MASTER = Setting("--master", "BRANCHLINE_MASTER", "The Spark master.", "local[*]")

SETTINGS = (BOOTSTRAP, PROPERTIES, NAMESPACE, BROKER, SHARDS, MAX_EVENTS, CHECKPOINT, MASTER)


def option(setting: Setting, kind: Any = None) -> Callable[[Command], Command]:
    """The setting as a command's option."""
    help_text = setting.help + (f" Default: {setting.default}." if setting.default else "")
    return click.option(
        setting.option,
        envvar=setting.variable,
        default=setting.default,
        type=kind,
        help=f"{help_text}  [{setting.variable}]",
    )


def cluster_options(command: Command) -> Command:
    """--bootstrap, --client-properties and --namespace, as every command that talks to Kafka has them."""
    for setting in (NAMESPACE, PROPERTIES, BOOTSTRAP):
        command = option(setting)(command)
    return command


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for machines.")


def find_cluster(bootstrap: str | None, client_properties: str | None) -> Cluster:
    """The cluster that the user named, or that of the running `branchline up`."""
    address = bootstrap or running_bootstrap(Home.default())
    if address is None:
        raise ConfigError(
            "no Kafka cluster was named, and no `branchline up` is running",
            hint="start one with `branchline up`, or name yours with --bootstrap or BRANCHLINE_BOOTSTRAP",
        )
    return Cluster(address, read_properties(Path(client_properties)) if client_properties else {})


def make_topics(namespace: str) -> Topics:
    """The namespace's topics."""
    try:
        return Topics(namespace)
    except ValueError as error:
        raise ConfigError(str(error), hint="check --namespace") from None


def announce(home: Home, bootstrap: str) -> Path:
    """Let other commands on this machine find the cluster that this process runs."""
    path = home.make(home.run) / "up.json"
    path.write_text(json.dumps({"bootstrap": bootstrap, "pid": os.getpid()}))
    return path


def running_bootstrap(home: Home) -> str | None:
    """The address that a live `branchline up` announced, if there is one."""
    try:
        said = json.loads((home.run / "up.json").read_text())
        os.kill(int(said["pid"]), 0)
        return str(said["bootstrap"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
