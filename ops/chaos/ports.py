"""Ports that stay ours while a server is down: outside of those that the system gives to clients."""

import random

from branchline.kafka.errors import SetupError
from branchline.kafka.kraft import is_free

FIRST, LAST = 20_000, 32_000
"""Below the usual range of outgoing connections: one of those could take the port of a killed server, or a
client that tries again and again could even be connected to itself."""


def lasting_ports(count: int) -> list[int]:
    """Free ports, at random: not from the seed, since two runs may go on at once."""
    found = [
        port for port in random.sample(range(FIRST, LAST), min(50 * count, LAST - FIRST)) if is_free(port)
    ]
    if len(found) < count:
        raise SetupError(f"not {count} free ports between {FIRST} and {LAST}", hint="end some servers")
    return found[:count]
