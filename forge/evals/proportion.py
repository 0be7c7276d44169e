"""A proportion with its interval: how many of how many, and which shares are plausible."""

from msgspec import Struct

from forge.evals.significance import wilson


class Proportion(Struct, frozen=True):
    """So many of so many. Its text always has the counts and the interval: a percentage alone claims too much."""

    count: int
    of: int

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval, from 0 to 1; without any observation, all of it."""
        return wilson(self.count, self.of)

    def __str__(self) -> str:
        return f"{self.count} of {self.of}, {self.percent}" if self.of else "none"

    @property
    def percent(self) -> str:
        """The interval in whole percent."""
        low, high = self.interval
        return f"{100 * low:.0f}\N{EN DASH}{100 * high:.0f} %"
