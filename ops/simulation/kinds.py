"""All kinds of simulation. A new one is a module with a `KIND`, and a line here."""

from collections.abc import Mapping
from typing import Any

from branchline.ops.simulation.bloom import KIND as BLOOM
from branchline.ops.simulation.counting import KIND as COUNTING
from branchline.ops.simulation.faults import KIND as FAULTS
from branchline.ops.simulation.growth import KIND as GROWTH
from branchline.ops.simulation.heights import KIND as HEIGHTS
from branchline.ops.simulation.kind import Kind
from branchline.ops.simulation.levels import KIND as LEVELS
from branchline.ops.simulation.network import KIND as NETWORK
from branchline.ops.simulation.offloading import KIND as OFFLOADING
from branchline.ops.simulation.optimising import KIND as OPTIMISE
from branchline.ops.simulation.pruning import KIND as PRUNING
from branchline.ops.simulation.query_sets import KIND as QUERIES
from branchline.ops.simulation.refreshes import KIND as REFRESHES
from branchline.ops.simulation.reuse import KIND as REUSE
from branchline.ops.simulation.strategies import KIND as STRATEGIES
from branchline.ops.simulation.structures import KIND as STRUCTURES

KINDS: Mapping[str, Kind[Any]] = {
    kind.name: kind
    for kind in (
        *(GROWTH, LEVELS, HEIGHTS, QUERIES, NETWORK, REUSE, OPTIMISE, PRUNING, FAULTS, COUNTING),
        *(BLOOM, STRUCTURES, OFFLOADING, STRATEGIES, REFRESHES),
    )
}
