"""A proportion with its interval: how many of how many, and which shares are plausible."""

from functools import cache

from msgspec import Struct
from scipy.stats import binomtest

LEVEL = 0.95
"""The confidence of every interval that is shown."""


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


@cache
def wilson(count: int, of: int, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's score interval of a proportion; it always contains the proportion itself."""
    if not of:
        return 0.0, 1.0
    found = binomtest(count, of).proportion_ci(confidence_level=level, method="wilson")
    # The last bit may be on the wrong side where the share is 0 or 1.
    return min(float(found.low), count / of), max(float(found.high), count / of)
