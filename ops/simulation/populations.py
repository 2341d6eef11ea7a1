"""Populations of filters and events as a file describes them: a label, and whatever is not as usual.

[[populations]]
label = "pareto"
name_distribution = "pareto"
value_distribution = "pareto"
names = 100
constraints = [2, 8]
attributes = [2, 12]
decimals = 1
operators = { "=" = 1, "<" = 1, "<=" = 1, ">" = 1, ">=" = 1, between = 1 }
"""

from collections.abc import Mapping

from branchline.ops.simulation.config import Section
from branchline.ops.simulation.generators import OPERATORS, Distribution, Population
from branchline.ops.simulation.kind import Column

POPULATION = Column("population", str, "population")
"""The swept column of kinds that have a case for each population."""

NAMES_MAX = 10_000
COUNT_MAX = 20
DECIMALS_MAX = 4
_USUAL = Population()


def read_populations(section: Section) -> Mapping[str, Population]:
    """The populations by their labels."""
    found: dict[str, Population] = {}
    for each in section.sections("populations"):
        label = each.text("label")
        if label in found:
            each.wrong("label", f"{label!r} is another population's", "give each a label of its own")
        found[label] = read_population(each)
    return found


def read_population(section: Section) -> Population:
    """The population of a table, in which nothing else may stand that was not asked for before."""
    kinds = [each.value for each in Distribution]
    made = Population(
        name_distribution=Distribution(section.choice("name_distribution", kinds)),
        value_distribution=Distribution(section.choice("value_distribution", kinds)),
        names=section.integer("names", 1, NAMES_MAX, _USUAL.names),
        constraints=_ends(section, "constraints", _USUAL.constraints),
        attributes=_ends(section, "attributes", _USUAL.attributes),
        decimals=section.integer("decimals", 0, DECIMALS_MAX, _USUAL.decimals),
        operators=_operators(section.section("operators", optional=True)),
    )
    needed = max(*made.constraints, *made.attributes)
    if made.names < needed:
        section.wrong("names", f"{made.names} are too few", f"constraints and attributes ask for {needed}")
    section.done()
    return made


def _ends(section: Section, key: str, usual: tuple[int, int]) -> tuple[int, int]:
    given = section.integers(key, 1, COUNT_MAX, usual)
    if len(given) > 2:
        section.wrong(key, f"not {list(given)}", "it must be the fewest and the most, or one number for both")
    return given[0], given[-1]


def _operators(section: Section) -> tuple[float, ...]:
    if not section.keys():
        return _USUAL.operators
    weights = tuple(section.number(operator, 0, 1_000, 0.0) for operator in OPERATORS)
    section.done()
    if not any(weights):
        section.wrong(OPERATORS[0], "no operator ever comes", "give one of them a weight above 0")
    return weights
