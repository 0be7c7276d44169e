"""What counts of runs say: Wilson's interval, McNemar's exact test, Holm's correction, and how many runs it takes."""

from collections.abc import Sequence
from functools import cache
from itertools import count
from math import ceil, sqrt

from forge.errors import ForgeError, to_install

try:
    from scipy.stats import binomtest, norm
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "scipy":
        raise
    needed = f"statistics of evals need scipy, which is not installed here; {to_install('evals')}"
    raise ForgeError(needed) from None

LEVEL = 0.95
"""The confidence of every interval that is shown."""

POWER = 0.8
"""How likely a difference of the asked size is shown by the number of runs that is named."""


@cache
def wilson(successes: int, of: int, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's score interval of a share, from 0 to 1; it always contains the share itself."""
    if not of:
        return 0.0, 1.0
    found = binomtest(successes, of).proportion_ci(confidence_level=level, method="wilson")
    # The last bit may be on the wrong side where the share is 0 or 1.
    return min(float(found.low), successes / of), max(float(found.high), successes / of)


@cache
def mcnemar(only_first: int, only_second: int) -> float:
    """The probability of a split at least as uneven between equals; pairs that agree say nothing."""
    differing = only_first + only_second
    return float(binomtest(only_first, differing).pvalue) if differing else 1.0


def can_be_shown(differing: int, alpha: float) -> bool:
    """Whether so many differing pairs could be significant at all, if they all spoke for the same side."""
    return mcnemar(differing, 0) <= alpha


def fewest_pairs(alpha: float) -> int:
    """The number of differing pairs below which nothing is significant: 6 at 0.05."""
    return next(number for number in count(1) if can_be_shown(number, alpha))


def holm(values: Sequence[float]) -> tuple[float, ...]:
    """The p-values corrected for their number by Holm's method, in the same order; none exceeds 1."""
    order = sorted(range(len(values)), key=values.__getitem__)
    corrected = [0.0] * len(values)
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(values) - rank) * values[index]))
        corrected[index] = highest
    return tuple(corrected)


def pairs_needed(difference: float, differing: float, alpha: float) -> int:
    """About how many pairs show a difference with a probability of `POWER`.

    `difference` and `differing` are shares of all pairs: how much more often one side is right, and how often the two
    sides differ. Connor's formula (Biometrics 43, 1987), and never fewer than give enough differing pairs.
    """
    differing = max(differing, difference)
    by_alpha = float(norm.isf(alpha / 2)) * sqrt(differing)
    by_power = float(norm.isf(1 - POWER)) * sqrt(differing - difference**2)
    return ceil(max(((by_alpha + by_power) / difference) ** 2, fewest_pairs(alpha) / differing))
