"""What every command is told: one table of settings, each an option and an environment variable."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
from confluent_kafka import KafkaException

from branchline.kafka.cluster import Cluster, read_properties
from branchline.kafka.errors import ConfigError
from branchline.kafka.home import Home
from branchline.kafka.topics import Topics
from branchline.ops.output import JSON_ASKED
from branchline.ops.reaching import check_reachable
from branchline.ops.running import running_bootstrap

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: the option's name, its variable, and what it is for."""

    option: str
    variable: str
    help: str
    default: str | None = None


BOOTSTRAP = Setting(
    "--bootstrap", "BRANCHLINE_BOOTSTRAP", "Kafka's address, host:port[,...]. Default: the running `up`'s."
)
PROPERTIES = Setting(
    "--client-properties", "BRANCHLINE_CLIENT_PROPERTIES", "A file with the client's security settings."
)
NAMESPACE = Setting("--namespace", "BRANCHLINE_NAMESPACE", "Prefix of all topics.", "branchline")
BROKER = Setting("--broker", "BRANCHLINE_BROKER", "The broker to enter at, or to serve.", "main")
CLUSTER = Setting("--cluster", "BRANCHLINE_CLUSTER", "What topologies call this Kafka cluster.", "main")
TOPOLOGY = Setting(
    "--topology",
    "BRANCHLINE_TOPOLOGY",
    "A file with the topology to begin with; without it a broker is alone.",
)
CLUSTERS = Setting(
    "--clusters", "BRANCHLINE_CLUSTERS", "A TOML file that says how each named cluster is reached."
)
SHARDS = Setting("--shards", "BRANCHLINE_SHARDS", "Shards of the router; fixed with its checkpoint.", "2")
MAX_EVENTS = Setting(
    "--max-events-per-batch",
    "BRANCHLINE_MAX_EVENTS_PER_BATCH",
    "Events a micro-batch takes at most.",
    "100000",
)
LATENCY_GOAL = Setting(
    "--latency-goal",
    "BRANCHLINE_LATENCY_GOAL",
    "How soon an event is to be delivered, and a change in force, where there is no backlog: 500ms, 2s.",
    "2s",
)
MAX_SUBSCRIPTIONS = Setting(
    "--max-subscriptions", "BRANCHLINE_MAX_SUBSCRIPTIONS", "Subscriptions a subscriber may have.", "10000"
)
OUT_PARTITIONS = Setting(
    "--out-partitions", "BRANCHLINE_OUT_PARTITIONS", "Partitions that a subscriber's topic is made with.", "1"
)
OUT_REPLICATION = Setting(
    "--out-replication",
    "BRANCHLINE_OUT_REPLICATION",
    "Copies of a subscriber's topic. Default: the cluster's own.",
)
OUT_RETENTION = Setting(
    "--out-retention", "BRANCHLINE_OUT_RETENTION", "How long deliveries are kept: 12h, 7d.", "7d"
)
REMOVE_AFTER = Setting(
    "--remove-topics-after",
    "BRANCHLINE_REMOVE_TOPICS_AFTER",
    "Remove a subscriber's topic so long after its last subscription has ended: 1h, 30d. Default: never.",
)
DELIVERY = Setting(
    "--delivery",
    "BRANCHLINE_DELIVERY",
    "How often a record comes: at-least-once (repeats have their id), or exactly-once, for readers of "
    "committed records.",
    "at-least-once",
)
CHECKPOINT = Setting(
    "--checkpoint", "BRANCHLINE_CHECKPOINT", "Where the router keeps its state. Default: in the home folder."
)
PARTS = Setting(
    "--parts", "BRANCHLINE_PARTS", "Parts of the Routing Tree, the same for routers and optimizer.", "1"
)
FORWARDING = Setting(
    "--forwarding",
    "BRANCHLINE_FORWARDING",
    "How a broker finds who wants an event: prefix, rematch, ... Default: the namespace's, at first prefix.",
)
MATCHING = Setting(
    "--matching",
    "BRANCHLINE_MATCHING",
    "How content is matched where it has to be: tree, table, ... Default: the namespace's, at first tree.",
)
DISSEMINATION = Setting(
    "--dissemination",
    "BRANCHLINE_DISSEMINATION",
    "Who is told of which filter: simple, identity, covering, cbcb; behind it what is made of that, as in "
    "covering+merging. Default: the namespace's, at first simple.",
)
OPTIMISE = Setting(
    "--optimise",
    "BRANCHLINE_OPTIMISE",
    "What keeps tables small: covering, ...; several with commas, or none. Default: the namespace's, at "
    "first none.",
)
THRESHOLD = Setting(
    "--threshold", "BRANCHLINE_THRESHOLD", "How far, 0 to 1, the tree may be from what was told of it.", "0.3"
)
LIMIT = Setting("--limit", "BRANCHLINE_LIMIT", "How long a change of the tree may wait to be told.", "60s")
SNAPSHOT_EVERY = Setting(
    "--snapshot-every", "BRANCHLINE_SNAPSHOT_EVERY", "How often the whole tree is told.", "10m"
)
OWN_CONTROL = Setting(
    "--own-control",
    "BRANCHLINE_OWN_CONTROL",
    "Ask on the subscriber's own control topic, where an authorizer lets nobody else write.",
)
# All cores, and four attempts at a task: a dead Python worker then costs one, and not the query.
MASTER = Setting("--master", "BRANCHLINE_MASTER", "The Spark master.", "local[*,4]")
SPARK_CONF = Setting(
    "--spark-conf",
    "BRANCHLINE_SPARK_CONF",
    "A setting of Spark itself, spark.NAME=VALUE; may be repeated, in the variable as words.",
)

SETTINGS = (
    BOOTSTRAP,
    PROPERTIES,
    NAMESPACE,
    BROKER,
    CLUSTER,
    TOPOLOGY,
    CLUSTERS,
    SHARDS,
    MAX_EVENTS,
    LATENCY_GOAL,
    MAX_SUBSCRIPTIONS,
    OUT_PARTITIONS,
    OUT_REPLICATION,
    OUT_RETENTION,
    REMOVE_AFTER,
    DELIVERY,
    CHECKPOINT,
    PARTS,
    FORWARDING,
    MATCHING,
    DISSEMINATION,
    OPTIMISE,
    THRESHOLD,
    LIMIT,
    SNAPSHOT_EVERY,
    MASTER,
    SPARK_CONF,
    OWN_CONTROL,
)


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


own_control_option = click.option(
    OWN_CONTROL.option,
    "own",
    is_flag=True,
    envvar=OWN_CONTROL.variable,
    help=f"{OWN_CONTROL.help}  [{OWN_CONTROL.variable}]",
)


def _note_json(ctx: click.Context, _: click.Parameter, value: bool) -> bool:
    ctx.meta[JSON_ASKED] = value
    return value


json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    is_eager=True,  # known before anything else can be wrong
    callback=_note_json,
    help="Print JSON, an object a line; errors too.",
)


class NoCluster(ConfigError):
    """None was named, and none is running here."""


def find_cluster(bootstrap: str | None, client_properties: str | None) -> Cluster:
    """The cluster that the user named, or that of the running `branchline up`; somebody listens there."""
    properties = read_properties(Path(client_properties)) if client_properties else {}
    address = bootstrap or running_bootstrap(Home.default())
    if address is None:
        raise NoCluster(
            "no Kafka cluster was named, and no `branchline up` is running",
            hint="start one with `branchline up`, or name yours with --bootstrap or BRANCHLINE_BOOTSTRAP",
        )
    cluster = Cluster(address, properties)
    check_reachable(address)
    check_settings(cluster, client_properties or "--bootstrap")
    return cluster


def check_settings(cluster: Cluster, where: str) -> None:
    """Raise a ConfigError that says where to look, if no client can be made for the cluster."""
    try:
        cluster.admin()
    except KafkaException as error:
        raise ConfigError(
            f"the Kafka client does not take its settings: {error.args[0].str()}", hint=f"check {where}"
        ) from None


def make_topics(namespace: str) -> Topics:
    """The namespace's topics."""
    try:
        return Topics(namespace)
    except ValueError as error:
        raise ConfigError(str(error), hint="check --namespace") from None
