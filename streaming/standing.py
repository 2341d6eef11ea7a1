"""How the brokers of a shard stand, for statistics: told by the leading shard after each batch, and cheap.

Cost: O(brokers), however many subscriptions there are.
"""

from typing import Any

from branchline.routing.shard import Shard

PENDING_TOLD = 20
"""Subscriptions not yet in force that are told by name, and brokers of each that is waited for."""


def standing(shard: Shard, now_ms: int) -> dict[str, Any]:
    """Topologies, the tree, which brokers unfinished subscriptions wait for, and who spares brokers work."""
    positions = {name: broker.position for name, broker in shard.brokers.items()}
    return {
        "topologies": {
            name: each.topology.number for name, each in positions.items() if each.topology is not None
        },
        "joining": [name for name, each in positions.items() if each.joining],
        "waiting": [name for name, each in positions.items() if each.member is None and not each.is_retired],
        "tree": [
            {"part": each.part, "version": list(each.version), "nodes": each.tree.nodes, "beside": beside}
            for each, beside in zip(shard.trees.vocabularies, shard.trees.beside(), strict=True)
        ],
        "pending": _pending(shard),
        "offloading": _offloading(shard, now_ms),
    }


def _offloading(shard: Shard, now_ms: int) -> dict[str, dict[str, int]]:
    along_tree = {name: broker.tree for name, broker in shard.brokers.items()}
    told = {name: None if each is None else each.offloading(now_ms) for name, each in along_tree.items()}
    return {name: each for name, each in told.items() if each is not None}


def _pending(shard: Shard) -> dict[str, Any]:
    first: list[dict[str, Any]] = []
    for broker in shard.brokers.values():
        for identity in broker.home.pending.first(PENDING_TOLD - len(first)):
            waits_for = broker.home.pending.waits_for(identity)
            first.append(
                {
                    "subscription": str(identity),
                    "waits_for": waits_for[:PENDING_TOLD],
                    "more": max(len(waits_for) - PENDING_TOLD, 0),
                }
            )
    return {"count": sum(len(broker.home.pending) for broker in shard.brokers.values()), "first": first}
