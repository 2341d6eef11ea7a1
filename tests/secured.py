"""A Kafka that lets in only who has a certificate and a password, and lets do only what a right says."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner, Result

from branchline.kafka.cluster import Cluster, read_properties
from branchline.kafka.embedded import EmbeddedKafka
from branchline.kafka.jars import Jars
from branchline.kafka.java import Java
from branchline.ops.cli import main
from branchline.ops.settings import SETTINGS

ADMIN = "admin"
MARK = "Zx9-open-sesame"
"""In every password, so that one look finds any of them."""
STORE_PASSWORD = f"{MARK}-store"

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def password_of(user: str) -> str:
    return f"{MARK}-{user}"


@dataclass
class Secured:
    """The Kafka, and a file with the client properties of each user."""

    bootstrap: str
    folder: Path

    def properties(self, user: str) -> Path:
        return self.folder / f"{user}.properties"

    def cluster(self, user: str) -> Cluster:
        return Cluster(self.bootstrap, read_properties(self.properties(user)))

    def options(self, user: str, namespace: str) -> list[str]:
        return [
            *("--bootstrap", self.bootstrap, "--client-properties", str(self.properties(user))),
            *("--namespace", namespace),
        ]

    def run(self, user: str, namespace: str, *arguments: str) -> Result:
        """The command in this process, as that user."""
        unset: dict[str, str | None] = {setting.variable: None for setting in SETTINGS}
        command = [*arguments, *self.options(user, namespace)]
        return CliRunner().invoke(main, command, env=unset, catch_exceptions=False)

    def allow(self, namespace: str, *arguments: str) -> None:
        """Give the rights of a role, as the administrator."""
        result = self.run(ADMIN, namespace, "acl", *arguments, "--apply")
        assert result.exit_code == 0, result.output


@contextmanager
def secured(folder: Path, jars: Jars, java: Java, users: Sequence[str]) -> Iterator[Secured]:
    """Such a Kafka, with these users beside the administrator, who may do everything."""
    _make_certificates(folder, java.path.with_name("keytool"))
    for user in (ADMIN, *users):
        file = folder / f"{user}.properties"
        file.touch(mode=0o600)
        file.write_text(
            "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n"
            f"sasl.username={user}\nsasl.password={password_of(user)}\n"
            f"ssl.ca.location={folder / 'ca.pem'}\n"
            f"ssl.keystore.location={folder / 'keys.p12'}\nssl.keystore.password={STORE_PASSWORD}\n"
        )
    known = " ".join(f'user_{user}="{password_of(user)}"' for user in (ADMIN, *users))
    login = f'{_PLAIN} required username="{ADMIN}" password="{password_of(ADMIN)}" {known};'
    properties = {
        "listener.security.protocol.map": "CLIENT:SASL_SSL,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.client.plain.sasl.jaas.config": login,
        "listener.name.client.ssl.client.auth": "required",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(folder / "keys.p12"),
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        # The controller's own port, which only the server itself uses, has no names.
        "super.users": f"User:{ADMIN};User:ANONYMOUS",
    }
    client = read_properties(folder / f"{ADMIN}.properties")
    with EmbeddedKafka(folder / "data", jars, java, properties=properties, client=client) as kafka:
        yield Secured(kafka.bootstrap, folder)


def _make_certificates(folder: Path, keytool: Path) -> None:
    """A certificate for a day that is its own authority, for the server and for all clients."""
    store = ("-storetype", "PKCS12", "-storepass", STORE_PASSWORD, "-keystore", folder / "keys.p12")
    key = ("-genkeypair", "-keyalg", "EC", "-groupname", "secp256r1", "-validity", "1", "-dname", "CN=test")
    _run([keytool, *key, "-ext", "bc:c", "-ext", "san=ip:127.0.0.1", *store])
    _run([keytool, "-exportcert", "-rfc", "-file", folder / "ca.pem", *store])


def _run(command: Sequence[object]) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
