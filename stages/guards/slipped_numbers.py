"""Slipped numbers: no answer with a large number that is ten times as large as a given one, or a tenth of it.

A model that writes 2411000 with a separator or as millions may lose a zero, or find one: `241,100`, `24.1 million`.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from itertools import islice

import msgspec
from msgspec import Struct

from stages.grounding.matching import evidence, normalized, numbers_in
from stages.grounding.sources import given_latest_first
from stages.message import ToolCall
from stages.objection import Objection, SlippedNumber
from stages.policy.progress import attempts_since_progress
from stages.policy.rules import Rules
from stages.state import Ledger, State
from stages.verdict import Guard, Verdict

_LARGE = 1000
"""The least of the numbers that are compared: smaller ones are a tenth of something by chance."""

_SAID = re.compile(r"(?<![\w.,'/-])(\d[\d.,'_]{0,40}\d)(?: (thousand|million|billion)\b)?(?![\w-])")
_SCALES = {"": Decimal(1), "thousand": Decimal(10**3), "million": Decimal(10**6), "billion": Decimal(10**9)}

_TENTH = frozenset({Decimal(10), Decimal("0.1")})
"""Where one of these was given, a tenth may be what was asked for."""

_MOST = 32
"""Maximum of numbers of one answer that are looked at."""

_RECENT = 64
"""Texts, the latest ones, whose numbers are compared: an answer costs the same, however long the conversation is."""


def slipped_numbers(rules: Rules) -> Guard:
    """Object to such calls, once for each number: who says it again may have found it otherwise.

    Only to those that end the run, and not to the last one that the budget allows. Counts as a refusal.
    """
    ends = frozenset(rules.terminal)

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        if state.ledger.budget.calls <= 0:
            return []
        found = ((call, _slip(call, state)) for call in calls if call.name in ends)
        return [Objection(call=call, wrong=wrong) for call, wrong in found if wrong is not None]

    return guard


def _slip(call: ToolCall, state: State) -> SlippedNumber | None:
    """The first such number of the call."""
    said = [number for number in _said_in(call) if any(value >= _LARGE for value in number.values)]
    if not said:
        return None
    given = evidence(one.text for one in islice(given_latest_first(state), _RECENT)).numbers
    if not _TENTH.isdisjoint(given):
        return None
    known, before = [number for number in given if number >= _LARGE], _said_before(call.name, state.ledger)
    for number in said:
        if number.text in before or not given.isdisjoint(number.values) or any(_rounded(number.values, known)):
            continue
        moved = [value.scaleb(places) for value in number.values if value >= _LARGE for places in (-1, 1)]
        if meant := next(_rounded(moved, known), None):
            return SlippedNumber(argument=number.argument, said=number.text, given=f"{meant:f}")
    return None


class _Said(Struct, frozen=True):
    """A number in a text of a call: what it may mean, as 113,600 may be a hundred thousand or a hundred."""

    argument: str
    text: str
    values: tuple[Decimal, ...]


def _said_in(call: ToolCall) -> Iterator[_Said]:
    arguments = msgspec.json.decode(call.arguments, type=dict[str, object])
    texts = [(name, normalized(value)) for name, value in arguments.items() if isinstance(value, str) and " " in value]
    found = ((name, one) for name, text in texts for one in _SAID.finditer(text))
    for name, one in islice(found, _MOST):
        scale = _SCALES[one[2] or ""]
        yield _Said(name, one[0], tuple(number * scale for number in numbers_in(one[1])))


def _rounded(values: Iterable[Decimal], known: Collection[Decimal]) -> Iterator[Decimal]:
    """The known numbers that one of the values is, in as many digits as it has, two at least."""
    for value in values:
        sign, digits, exponent = value.normalize().as_tuple()
        if sign or len(digits) < 2 or not isinstance(exponent, int):
            continue
        unit = Decimal(1).scaleb(exponent)
        for number in known:
            if value / unit in {(number / unit).to_integral_value(way) for way in (ROUND_HALF_UP, ROUND_DOWN)}:
                yield number


def _said_before(tool: str, ledger: Ledger) -> str:
    """The arguments of its refused calls since the last progress, normalized."""
    refused = (attempt for attempt in attempts_since_progress(ledger) if attempt.name == tool and not attempt.answer)
    return "\n".join(normalized(attempt.arguments) for attempt in refused)
