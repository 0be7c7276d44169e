"""Tools for Guardrails: functions, API tool objects, or names."""

from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from forge.errors import DefinitionError, ForgeError
from forge.tools.definition import Tool, several, tell_unchecked
from stages.schema import SchemaError, checker
from stages.tool import ToolSpec

AnyTool = Tool[..., object] | Callable[..., object] | ToolSpec | Mapping[str, object] | str
"""A `@tool`, a function, a `ToolSpec`, a tool in the form of the OpenAI or Anthropic API, or a name."""

ANYTHING = Raw(b'{"type":"object"}')
"""Parameters of a tool without a schema: any object."""


def tools_of(given: Sequence[AnyTool]) -> list[Tool[..., object] | Callable[..., object]]:
    """The tools for a workflow. DefinitionError listing all dicts that are not tools."""
    made = [_tool(one) for one in given]
    if problems := tuple(one for one in made if isinstance(one, str)):
        raise DefinitionError(problems)
    return [one for one in made if not isinstance(one, str)]


def optional_steps(named: str | Sequence[str], given: Sequence[AnyTool]) -> tuple[str, ...]:
    """The named optional tools, and all tools given as a name or a dict.

    Whether the latter write is unknown, which is no reason to withhold them.
    """
    foreign = [_tool(one) for one in given if isinstance(one, str | Mapping)]
    return (*several(named), *(one.name for one in foreign if isinstance(one, Tool)))


def _tool(given: AnyTool) -> Tool[..., object] | Callable[..., object] | str:
    """The tool, or an error message."""
    match given:
        case str(name):
            return Tool(_elsewhere, ToolSpec(name=name, description="", parameters=ANYTHING))
        case ToolSpec():
            return _elsewhere_run(given)
        case Mapping():
            try:
                found = msgspec.json.decode(msgspec.json.encode(given.get("function", given)), type=_Wire)
            except (msgspec.ValidationError, TypeError) as error:
                return f"a dict is not a tool of the OpenAI or Anthropic API ({error}): {dict(given)!r:.200}"
            schema = found.parameters if bytes(found.parameters) else found.input_schema
            return _elsewhere_run(ToolSpec(name=found.name, description=found.description or "", parameters=schema))
        case _:
            return given


def _elsewhere_run(spec: ToolSpec) -> Tool[..., object]:
    """The tool for a schema that forge did not write."""
    try:
        checker(spec.parameters)
    except SchemaError as error:
        problem = f"tool {spec.name}: its parameters are not a JSON Schema of an object: {error}"
        return Tool(_elsewhere, replace(spec, parameters=ANYTHING), (problem,))
    tell_unchecked(spec.name, spec.parameters)
    return Tool(_elsewhere, spec)


def _elsewhere(**_: object) -> None:
    """Stand in for a tool that the caller's loop runs."""
    raise ForgeError("your own loop runs this tool; pass its result to Guardrails.record")


class _Wire(msgspec.Struct):
    """A tool of the Messages API, or the `function` of a chat completions tool."""

    name: str
    description: str | None = None
    parameters: Raw = Raw(b"")
    input_schema: Raw = ANYTHING
