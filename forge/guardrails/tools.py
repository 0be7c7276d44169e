"""Tools of foreign loops: functions, JSON Schemas in the form of a client, or bare names."""

from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec import Raw

from forge.errors import DefinitionError, ForgeError
from forge.tool import Tool
from stages.tool import ToolSpec

AnyTool = Tool[..., object] | Callable[..., object] | ToolSpec | Mapping[str, object] | str
"""`@tool`, a function, a `ToolSpec`, a tool as the OpenAI or Anthropic API has it, or a name."""


def tools_of(given: Sequence[AnyTool]) -> list[Tool[..., object] | Callable[..., object]]:
    """The tools, as a workflow takes them. DefinitionError for dicts that are no tool, all of them at once."""
    made = [_tool(one) for one in given]
    if problems := tuple(one for one in made if isinstance(one, str)):
        raise DefinitionError(problems)
    return [one for one in made if not isinstance(one, str)]


def _tool(given: AnyTool) -> Tool[..., object] | Callable[..., object] | str:
    """The tool, or what is wrong with it."""
    match given:
        case str(name):
            # Nothing is known of its arguments but that they are an object.
            return Tool(_elsewhere, ToolSpec(name=name, description="", parameters=Raw(b'{"type":"object"}')))
        case ToolSpec():
            return Tool(_elsewhere, given)
        case Mapping():
            return _of_wire(given)
        case _:
            return given


def _elsewhere(**_: object) -> None:
    """Stand for a tool that the caller's own loop runs."""
    raise ForgeError("this tool is run by your own loop; give its result to Guardrails.record")


class _Wire(msgspec.Struct):
    """A tool of the Messages API, or the `function` of one of chat completions."""

    name: str
    description: str | None = None
    parameters: Raw = Raw(b"")
    input_schema: Raw = Raw(b'{"type":"object"}')


def _of_wire(given: Mapping[str, object]) -> Tool[..., object] | str:
    try:
        found = msgspec.json.decode(msgspec.json.encode(given.get("function", given)), type=_Wire)
    except (msgspec.ValidationError, TypeError) as error:
        return f"a tool given as a dict is none of the OpenAI or Anthropic API ({error}): {dict(given)!r:.200}"
    schema = found.parameters if bytes(found.parameters) else found.input_schema
    return Tool(_elsewhere, ToolSpec(name=found.name, description=found.description or "", parameters=schema))
