"""What is aimed at, and whether it was reached: a line for each target, also for those that were missed."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    """A figure that was measured and the one that is wanted."""

    what: str
    measured: float
    wanted: float
    at_least: bool = True
    unit: str = "x"

    @property
    def met(self) -> bool:
        return self.measured >= self.wanted if self.at_least else self.measured <= self.wanted

    def line(self) -> str:
        bound = "at least" if self.at_least else "at most"
        figures = f"{self.measured:.4g} {self.unit}, {bound} {self.wanted:g} {self.unit} wanted"
        if self.met:
            return f"met     {self.what}: {figures}"
        ratio = self.wanted / self.measured if self.at_least else self.measured / self.wanted
        return f"MISSED  {self.what}: {figures}, by a factor of {ratio:.2f}"

    def fields(self) -> dict[str, object]:
        """For JSON."""
        return {
            "verdict": self.what,
            "measured": round(self.measured, 4),
            "wanted": self.wanted,
            "at_least": self.at_least,
            "unit": self.unit,
            "met": self.met,
        }
