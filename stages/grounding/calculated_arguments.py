"""Calculated arguments: what the model wrote, the results in its place, and the constraint for decoding."""

from collections.abc import Collection
from decimal import Decimal

import msgspec
from msgspec import UNSET, Raw

from stages.grounding.calculation import Calculation, Incalculable, as_json_number, calculate
from stages.grounding.matching import Evidence, evidence
from stages.repair.decoding import decode
from stages.schema import Check, Fits, Misfit, checker
from stages.schema.value import Json
from stages.tool import Calculated, ToolSpec


def calculations_in(tool: ToolSpec, arguments: str) -> tuple[tuple[Calculated, str], ...]:
    """The calculated arguments of a call with the text that the model wrote; without null and omitted ones."""
    values = msgspec.json.decode(arguments, type=dict[str, Raw])
    wanted = [(c, msgspec.json.decode(values[c.argument])) for c in tool.calculated if c.argument in values]
    return tuple((bound, value) for bound, value in wanted if isinstance(value, str))


def with_results(arguments: str, tool: ToolSpec) -> str:
    """A call's arguments, JSON text, with results in place of the calculations: what the tool's function gets.

    Raises ValueError, which names the argument, for a text that cannot be calculated.
    """
    results: dict[str, Raw] = {}
    for bound, text in calculations_in(tool, arguments):
        match calculate(text):
            case Incalculable(problem=problem):
                raise ValueError(f"{bound.argument} cannot be worked out: {problem}")
            case Calculation(result=result):
                results[bound.argument] = Raw(msgspec.json.encode(as_json_number(result)))
    return msgspec.json.encode(msgspec.json.decode(arguments, type=dict[str, Raw]) | results).decode()


CONSTANTS = frozenset({1, 2, 7, 12, 24, 60, 100, 365, 1000})
"""Factors that need no source: one, halves, and those between units of time, money, weight and length."""

_LONGEST_NUMBER = 15
"""Maximum digits of a number in a grammar."""

_ANY = "[0-9]{1,9}([.][0-9]{1,4})?"


def constraint_of(tool: ToolSpec, given: Collection[Decimal] = ()) -> Raw:
    """The tool's parameters for a grammar in which calculated arguments can only be calculations.

    Of the given numbers, if there are any: measured, a small model left to itself invents others.
    """
    if not tool.calculated:
        return tool.parameters
    schema: dict[str, Json] = msgspec.json.decode(tool.parameters, type=dict)
    properties = schema.get("properties")
    kinds = properties if isinstance(properties, dict) else {}
    asked = {c.argument: _limited(kinds[c.argument], tool, c, given) for c in tool.calculated if c.argument in kinds}
    return Raw(msgspec.json.encode({**schema, "properties": {**kinds, **asked}}))


def _limited(kind: Json, tool: ToolSpec, bound: Calculated, given: Collection[Decimal]) -> Json:
    numbers = {abs(n) for n in (*given, *documentation_of(tool, bound).numbers)} if given else set()
    return {**kind, "pattern": calculation_pattern(numbers)} if isinstance(kind, dict) else kind


def calculation_pattern(numbers: Collection[Decimal]) -> str:
    """A pattern for two to ten of these numbers (of any, if empty) and operators.

    Constants and counts may only multiply or divide.
    """
    spelt = [n for n in sorted(set(numbers)) if abs(n.adjusted()) < _LONGEST_NUMBER]
    own = [_spelt(n) for n in spelt] or [_ANY]
    constants = (str(c) for c in sorted(CONSTANTS.union(range(3, 11))))
    factors = [*own, *(c for c in constants if c not in own)] if spelt else own
    first, other = "|".join(own), "|".join(factors)
    return f"^[(]?({first})( [+-] [(]?({first})[)]?| [*/] [(]?({other})[)]?){{1,9}}$"


def _spelt(number: Decimal) -> str:
    whole, _, rest = f"{number:f}".partition(".")
    return f"{whole}[.]{rest}" if (rest := rest.rstrip("0")) else whole


def documentation_of(tool: ToolSpec, bound: Calculated) -> Evidence:
    """What the tool's author says about the tool and the argument."""
    return evidence(documents_of(tool, bound))


def documents_of(tool: ToolSpec, bound: Calculated) -> tuple[str, ...]:
    """The texts of the tool's author on the tool and the argument."""
    return tool.description, msgspec.json.decode(bound.number, type=_Described).description


class _Described(msgspec.Struct):
    description: str = ""


def argument_check(tool: ToolSpec) -> Check:
    """The check of the tool's arguments; a number in place of a calculation is taken as its text."""
    check = checker(tool.parameters if tool.checked is UNSET else tool.checked)
    if not tool.calculated:
        return check
    names = {bound.argument for bound in tool.calculated}

    def checked(text: str, /, *, untyped: bool = False) -> Fits | Misfit:
        found = check(text, untyped=untyped)
        if isinstance(found, Fits) or not any(problem.path in names for problem in found.problems):
            return found
        as_texts = _with_texts(text, names)
        return check(as_texts, untyped=untyped) if as_texts else found

    return checked


_members = msgspec.json.Decoder(dict[str, Raw])


def _with_texts(text: str, names: Collection[str]) -> str:
    """The arguments with texts in place of those that are numbers; empty if there are none."""
    try:
        values = decode(_members, text)
    except msgspec.DecodeError:
        return ""
    numbers = {name: bytes(raw) for name in names if (raw := values.get(name)) and bytes(raw)[:1] in b"-0123456789"}
    texts = {name: Raw(msgspec.json.encode(number.decode())) for name, number in numbers.items()}
    return msgspec.json.encode(values | texts).decode() if texts else ""
