"""Calculated arguments of a call: what the model wrote, the results in its place, and the check of such arguments."""

from collections.abc import Collection

import msgspec
from msgspec import Raw

from stages.calculation import Calculation, Incalculable, calculate, number
from stages.schema import Check, Fits, Misfit, checker
from stages.schema.value import Json
from stages.tool import Calculated, ToolSpec


def calculations(tool: ToolSpec, arguments: str) -> tuple[tuple[Calculated, str], ...]:
    """The calculated arguments of a call with what the model wrote; null, and what is left out, is none."""
    values = msgspec.json.decode(arguments, type=dict[str, Raw])
    wanted = [(c, msgspec.json.decode(values[c.argument])) for c in tool.calculated if c.argument in values]
    return tuple((bound, value) for bound, value in wanted if isinstance(value, str))


def worked_out(arguments: str, tool: ToolSpec) -> str:
    """A call's arguments, JSON text, with results in the place of the calculations: what the tool's function gets.

    Raises ValueError, which names the argument, for a text that cannot be worked out.
    """
    results: dict[str, Raw] = {}
    for bound, text in calculations(tool, arguments):
        match calculate(text):
            case Incalculable(problem=problem):
                raise ValueError(f"{bound.argument} cannot be worked out: {problem}")
            case Calculation(result=result):
                results[bound.argument] = Raw(msgspec.json.encode(number(result)))
    return msgspec.json.encode(msgspec.json.decode(arguments, type=dict[str, Raw]) | results).decode()


_NUMBER = r"-?[0-9]{1,12}(\.[0-9]{1,6})?%?"
PATTERN = rf"^[(]?{_NUMBER}( [-+*/] [(]?{_NUMBER}[)]?){{1,9}}$"
"""What a grammar asks for, where a server goes by one: at least one operation. Other readings need none (measured)."""


def constraint_of(tool: ToolSpec) -> Raw:
    """The tool's parameters for a grammar, by which calculated arguments can be nothing but calculations."""
    if not tool.calculated:
        return tool.parameters
    schema: dict[str, Json] = msgspec.json.decode(tool.parameters, type=dict)
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return tool.parameters
    bound = {c.argument: kind for c in tool.calculated if isinstance(kind := properties.get(c.argument), dict)}
    asked: Json = {**properties, **{name: {**kind, "pattern": PATTERN} for name, kind in bound.items()}}
    return Raw(msgspec.json.encode({**schema, "properties": asked}))


def check_of(tool: ToolSpec) -> Check:
    """The check of the tool's arguments; a number in the place of a calculation is taken as the text that it is."""
    check = checker(tool.parameters)
    if not tool.calculated:
        return check
    names = {bound.argument for bound in tool.calculated}

    def checked(text: str, /, *, untyped: bool = False) -> Fits | Misfit:
        found = check(text, untyped=untyped)
        if isinstance(found, Fits) or not any(problem.path in names for problem in found.problems):
            return found
        mended = _with_texts(text, names)
        return check(mended, untyped=untyped) if mended else found

    return checked


def _with_texts(text: str, names: Collection[str]) -> str:
    """The arguments with texts in the place of those that are numbers; nothing, where there are none."""
    try:
        values = msgspec.json.decode(text, type=dict[str, Raw])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return ""
    numbers = {name: bytes(raw) for name in names if (raw := values.get(name)) and bytes(raw)[:1] in b"-0123456789"}
    texts = {name: Raw(msgspec.json.encode(number.decode())) for name, number in numbers.items()}
    return msgspec.json.encode(values | texts).decode() if texts else ""
