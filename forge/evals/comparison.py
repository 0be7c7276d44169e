"""Comparison: two configurations on the same scenarios and seeds, and the sentence that says what may be claimed."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from forge.evals.pairing import Pair
from forge.evals.significance import can_be_shown, fewest_pairs, holm, mcnemar, pairs_needed

ALPHA = 0.05
"""The probability with which a family of comparisons may find a difference where there is none."""

Quality = Literal["right", "harm"]
Direction = Literal["better", "worse", "no difference shown"]

_ASKED_POINTS = 5
"""The difference that is asked for where hardly any was seen, in percentage points."""


class Comparison(Struct, frozen=True, kw_only=True):
    """Two sides and in how many of their pairs only one of them was right, or did harm.

    `part` is the scenario or the tag that the pairs are of, empty for a comparison over all scenarios. `p` is
    McNemar's, `corrected` Holm's of it over the `family` of comparisons that it was made with, those left out that
    could not have shown anything.
    """

    first: str
    second: str
    quality: Quality = "right"
    part: str = ""
    pairs: int
    only_first: int
    only_second: int
    p: float
    corrected: float = 1.0
    family: int = 0
    alpha: float = ALPHA

    @property
    def finding(self) -> Direction:
        """What may be said of the first side."""
        if not self.family or self.corrected > self.alpha:
            return "no difference shown"
        more = self.only_first > self.only_second
        return "better" if more == (self.quality == "right") else "worse"

    @property
    def differing(self) -> int:
        """How many pairs differ: the others say nothing about which side is better."""
        return self.only_first + self.only_second


def compare(first: str, second: str, pairs: Sequence[Pair], quality: Quality, part: str = "") -> Comparison:
    """The comparison of the two sides in one quality, not yet corrected. `part`: what all the pairs are of."""
    only_first = sum(pair.first.verdict == quality != pair.second.verdict for pair in pairs)
    only_second = sum(pair.second.verdict == quality != pair.first.verdict for pair in pairs)
    return Comparison(
        first=first,
        second=second,
        quality=quality,
        part=part,
        pairs=len(pairs),
        only_first=only_first,
        only_second=only_second,
        p=mcnemar(only_first, only_second),
    )


def family(comparisons: Sequence[Comparison], alpha: float = ALPHA) -> tuple[Comparison, ...]:
    """The comparisons, corrected for being made together.

    One with too few differing pairs ever to be significant cannot be found by mistake either: it does not count in
    the correction, and nothing is claimed from it.
    """
    tried = [number for number, one in enumerate(comparisons) if can_be_shown(one.differing, alpha)]
    corrected = dict(zip(tried, holm([comparisons[number].p for number in tried]), strict=True))
    return tuple(
        replace(one, corrected=corrected.get(number, 1.0), family=len(tried), alpha=alpha)
        for number, one in enumerate(comparisons)
    )


def sentence(comparison: Comparison) -> str:
    """What a reader may take from the comparison, with the counts that it rests on."""
    return f"{headline(comparison)}: {basis(comparison)}."


def headline(one: Comparison) -> str:
    """What may be said of the two sides."""
    where = f" in {one.part}" if one.part else ""
    if not one.pairs:
        return f"Nothing can be said of {one.first} and {one.second}{where}"
    if one.finding == "no difference shown":
        what = "difference" if one.quality == "right" else "difference in harm"
        return f"No {what} shown between {one.first} and {one.second}{where}"
    harm = "does less harm" if one.finding == "better" else "does more harm"
    return f"{one.first} {f'is {one.finding}' if one.quality == 'right' else harm} than {one.second}{where}"


def basis(one: Comparison) -> str:
    """What that rests on, and where no difference is shown, what it would take to show one."""
    if not one.pairs:
        return "they share no scenario and seed"
    return f"{_seen(one)}; {_outlook(one)}" if one.finding == "no difference shown" else _seen(one)


def _seen(one: Comparison) -> str:
    """The counts and the probability."""
    if not one.differing:
        return f"{'the one pair agrees' if one.pairs == 1 else f'all {one.pairs} pairs agree'}"
    did = "was right" if one.quality == "right" else "did harm"
    counts = f"in {one.only_first} of {one.pairs} pairs only {one.first} {did}, in {one.only_second} only {one.second}"
    if not can_be_shown(one.differing, one.alpha):
        return f"{counts} (nothing is shown by fewer than {fewest_pairs(one.alpha)} differing pairs)"
    return f"{counts} ({probability(one.corrected)}{f', corrected for {one.family} comparisons' * (one.family > 1)})"


def probability(p: float) -> str:
    """A p-value as a text."""
    return "p < 0.0001" if p < 0.0001 else f"p = {p:.2g}"


def _outlook(one: Comparison) -> str:
    """How many more runs it takes to show the difference that was seen, or one of `_ASKED_POINTS`."""
    seen = round(100 * abs(one.only_first - one.only_second) / one.pairs)
    points = max(seen, _ASKED_POINTS)
    needed = pairs_needed(points / 100, one.differing / one.pairs, one.alpha / max(1, one.family))
    if needed <= one.pairs and seen < points:
        return f"a difference of {points} points would probably have shown"
    more = _rounded(max(1, needed - one.pairs))
    runs = f"{more:,} more {'run' if more == 1 else 'runs'}"
    return f"about {runs} of each would probably show a difference of {points} points"


def _rounded(number: int) -> int:
    """The number rounded up to two digits that say something."""
    unit = int(10 ** max(0, len(str(number)) - 2))
    return -(-number // unit) * unit
