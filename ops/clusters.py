"""Kafka clusters by name, as topologies call them: one TOML file says how each is reached.

    [dublin]
    bootstrap = "kafka-1.dublin:9092"
    client_properties = "dublin.properties"    # optional; a path beside this file

Names are the clusters' names in topologies. Nothing here is secret but what the properties files hold.
"""

from pathlib import Path
from typing import Any

from branchline.kafka.cluster import Cluster, read_properties
from branchline.kafka.errors import ConfigError
from branchline.kafka.topics import check_name
from branchline.ops.toml_files import read_toml

_FIELDS = {"bootstrap", "client_properties"}

EXAMPLE = '[dublin]\nbootstrap = "kafka-1.dublin:9092"'


def read_clusters(path: Path) -> dict[str, Cluster]:
    """The clusters in a file, by name."""
    try:
        tables = read_toml(path, hint="check --clusters")
    except OSError as error:
        raise ConfigError(f"cannot read clusters from {path}: {error}", hint="check --clusters") from None
    return {check_name("cluster", name): _cluster(path, name, table) for name, table in tables.items()}


def _cluster(path: Path, name: str, table: Any) -> Cluster:
    wrong = not isinstance(table, dict) or table.keys() - _FIELDS or "bootstrap" not in table
    if wrong or not all(isinstance(value, str) for value in table.values()):
        raise ConfigError(
            f"{path}: cluster {name!r} needs a bootstrap, may have client_properties, and nothing else",
            hint=f"write it like this: {EXAMPLE!r}",
        )
    properties = table.get("client_properties")
    return Cluster(
        table["bootstrap"],
        # Beside the file, so that a folder of settings can be moved as a whole.
        read_properties(path.parent / properties) if properties is not None else {},
    )


def named(clusters: dict[str, Cluster], name: str, path: Path) -> Cluster:
    """One of the clusters, or an error that tells which there are."""
    if name not in clusters:
        known = ", ".join(sorted(clusters)) or "none"
        raise ConfigError(f"{path} has no cluster {name!r}", hint=f"name one of: {known}")
    return clusters[name]
