"""Comparing two filters, counted: what a routing table by covering spends its time with."""

from branchline.routing.filters import Filter, covers


class Comparisons:
    """Compares filters, and counts how often it was asked to."""

    __slots__ = ("tests",)

    def __init__(self) -> None:
        self.tests = 0

    def covers(self, one: Filter, other: Filter) -> bool:
        """Whether the one holds for all that the other holds for."""
        self.tests += 1
        return covers(one, other)
