"""Is anybody at Kafka's address? Asked before a client is made, which would try long and say little."""

import re
import socket
import time

from branchline.kafka.errors import ClusterUnreachable, ConfigError

CONNECT_TIMEOUT_S = 5.0
"""For one address."""

REACH_TIMEOUT_S = 10.0
"""For all of them together."""

DEFAULT_PORT = 9092

_ADDRESS = re.compile(r"(?:\w+://)?(?P<host>\[[^\]]+\]|[^:\[\]/\s]+)(?::(?P<port>\d{1,5}))?")


def check_reachable(bootstrap: str) -> None:
    """Raise an error that says why, if none of the addresses takes a connection."""
    deadline = time.monotonic() + REACH_TIMEOUT_S
    reasons = []
    for host, port in [_parsed(address.strip()) for address in bootstrap.split(",")]:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            break
        try:
            socket.create_connection((host, port), min(left_s, CONNECT_TIMEOUT_S)).close()
            return
        except UnicodeError:
            raise _no_address(f"{host}:{port}") from None
        except OSError as error:
            reasons.append(f"{host}:{port}: {_in_words(error)}")
    raise ClusterUnreachable(
        f"there is no Kafka to be reached ({'; '.join(reasons)})",
        hint="start one with `branchline up`, or name yours with --bootstrap or BRANCHLINE_BOOTSTRAP",
    )


def _parsed(address: str) -> tuple[str, int]:
    found = _ADDRESS.fullmatch(address)
    port = int(found["port"] or DEFAULT_PORT) if found else 0
    if found is None or not 0 < port < 65536:
        raise _no_address(address)
    return found["host"].strip("[]"), port


def _no_address(address: str) -> ConfigError:
    hint = "use host:port, for example localhost:9092"
    return ConfigError(f"{address!r} is not an address of Kafka", hint=hint)


def _in_words(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return "there is no such host"
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there"
    if isinstance(error, TimeoutError):
        return "no answer"
    return error.strerror or str(error)
