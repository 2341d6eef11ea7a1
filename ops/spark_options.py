"""Where Spark runs, and with which of its own settings: `--master` and `--spark-conf`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import click

from branchline.kafka.errors import ConfigError
from branchline.ops.settings import MASTER, SPARK_CONF, option

Command = TypeVar("Command", bound=Callable[..., Any])

_STATE = "spark.sql.streaming.stateStore"
OURS = {
    "spark.master": "use --master",
    "spark.remote": "use --master",
    "spark.submit.deployMode": "the driver is this process: run it where the driver is to be",
    "spark.sql.shuffle.partitions": "use --shards",
    "spark.sql.session.timeZone": "what a batch does must not depend on where it runs",
    f"{_STATE}.providerClass": "checkpoints are written with it",
    f"{_STATE}.rocksdb.changelogCheckpointing.enabled": "checkpoints are written with it",
}
"""Settings of Spark that are not to be given, and why."""


@dataclass(frozen=True, slots=True)
class SparkChoice:
    """Which Spark a job runs on."""

    master: str = str(MASTER.default)
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Never printed: a secret may be among them."""


def spark_options(command: Command) -> Command:
    """--master and --spark-conf; `spark_choice` makes one value of them."""
    repeated = click.option(
        SPARK_CONF.option,
        envvar=SPARK_CONF.variable,
        multiple=True,
        metavar="NAME=VALUE",
        help=f"{SPARK_CONF.help}  [{SPARK_CONF.variable}]",
    )
    return option(MASTER)(repeated(command))


def spark_choice(master: str, spark_conf: tuple[str, ...]) -> SparkChoice:
    """What was chosen; what cannot be is refused before anything is started."""
    conf: dict[str, str] = {}
    for given in spark_conf:
        name, equals, value = given.partition("=")
        if not equals or not name.startswith("spark."):
            # The value is not shown: it may be a secret.
            raise ConfigError(
                f"{name!r} is not a setting of Spark with a value", hint="use --spark-conf spark.NAME=VALUE"
            )
        if name in OURS:
            raise ConfigError(f"{name} cannot be set: {OURS[name]}", hint="leave it out")
        conf[name] = value
    return SparkChoice(master, conf)
