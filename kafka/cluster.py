"""How to reach one Kafka cluster, for librdkafka and for Java clients alike.

Security settings come from one properties file in librdkafka's names; the Spark source speaks Java's, so
they are translated here. Values are never printed: `repr` shows the names only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from branchline.kafka.errors import ConfigError

_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}

_QUIET = {
    # What goes wrong comes back as an error; librdkafka's own lines on a terminal only confuse.
    "log_level": 2,
    "log.connection.close": False,
}

_HOST_CHECK = "ssl.endpoint.identification.algorithm"
_SHARED = {"security.protocol", "sasl.mechanism", _HOST_CHECK}
_LIBRDKAFKA_ONLY = {"sasl.username", "sasl.password", "ssl.ca.location"}

_FILES = ("ssl.ca.location", "ssl.keystore.location")

PROPERTIES = frozenset(_SHARED | _LIBRDKAFKA_ONLY | {"ssl.keystore.location", "ssl.keystore.password"})
"""What a client properties file may hold."""


@dataclass(frozen=True)
class Cluster:
    """A cluster's address and the settings needed to be let in."""

    bootstrap: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __hash__(self) -> int:
        return hash((self.bootstrap, *sorted(self.properties.items())))

    def librdkafka(self, **settings: Any) -> dict[str, Any]:
        """Settings for a confluent-kafka client; underscores in names become dots, but for callbacks."""
        dotted = {
            name if name.endswith("_cb") else name.replace("_", "."): value
            for name, value in settings.items()
        }
        return {**_QUIET, "bootstrap.servers": self.bootstrap, **self.properties, **dotted}

    def java(self) -> dict[str, str]:
        """The same for a Java client."""
        given = self.properties
        settings = {"bootstrap.servers": self.bootstrap}
        settings |= {name: given[name] for name in _SHARED if name in given}
        if given.get(_HOST_CHECK) == "none":
            settings[_HOST_CHECK] = ""  # Java's way to say it
        if "sasl.username" in given:
            module = _LOGIN_MODULES[given["sasl.mechanism"]]
            user, password = (_quote(given.get(name, "")) for name in ("sasl.username", "sasl.password"))
            settings["sasl.jaas.config"] = f"{module} required username={user} password={password};"
        if "ssl.ca.location" in given:
            settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": given["ssl.ca.location"]}
        if "ssl.keystore.location" in given:
            settings |= {
                "ssl.keystore.type": "PKCS12",
                "ssl.keystore.location": given["ssl.keystore.location"],
                "ssl.keystore.password": given.get("ssl.keystore.password", ""),
            }
        return settings

    def files(self) -> tuple[str, ...]:
        """The files that a client reads, on whichever machine it runs."""
        return tuple(self.properties[name] for name in _FILES if name in self.properties)

    def admin(self) -> AdminClient:
        return AdminClient(self.librdkafka())

    def producer(self, **settings: Any) -> Producer:
        """A producer that never loses or reorders: idempotent, all replicas, Java's partitioner."""
        return Producer(
            self.librdkafka(**{"enable_idempotence": True, "partitioner": "murmur2_random", **settings})
        )

    def consumer(self, **settings: Any) -> Consumer:
        """A consumer of committed records only."""
        defaults = {"isolation.level": "read_committed", "enable.auto.commit": False}
        return Consumer({**defaults, **self.librdkafka(**settings)})


def read_properties(path: Path) -> dict[str, str]:
    """The client properties in a file of `name=value` lines; `#` begins a comment line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read client properties {path}: {error}", hint="check the path") from None
    properties: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = (part.strip() for part in line.partition("="))
        if name == "sasl.mechanisms":
            name = "sasl.mechanism"
        if not equals or name not in PROPERTIES:
            # Nothing of the line is shown: what stands there may be a secret.
            raise ConfigError(
                f"{path}, line {number} is not a client property we know",
                hint="use name=value with one of: " + ", ".join(sorted(PROPERTIES)),
            )
        properties[name] = value
    mechanism = properties.get("sasl.mechanism")
    if "sasl.username" in properties and mechanism not in _LOGIN_MODULES:
        raise ConfigError(
            f"{path}: sasl.mechanism {mechanism!r} is not one we know",
            hint="use one of: " + ", ".join(_LOGIN_MODULES),
        )
    return properties


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
