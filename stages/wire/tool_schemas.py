"""The schemas of constrained replies: of calls, in the forms that grammars support, of answers and of summaries."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import get_args

import msgspec
from msgspec import Raw, Struct

from stages.decoding import decode_or
from stages.schema import SchemaTarget, project
from stages.schema.projection import written_or_null
from stages.schema.value import Json
from stages.tool import ToolSpec
from stages.wire.openai.chat import encode_strict_tools, strict_refusals

Branch = tuple[bytes, Mapping[str, object]]
"""The schema of one tool's call, and the definitions that it refers to."""


def branch(tool: ToolSpec, parameters: Raw) -> Branch:
    """The schema of one tool's call, and the definitions that it refers to, prefixed with the tool's name.

    `parameters` is the part of the tool's schema that the backend's grammar supports. Made once per workflow.
    """
    # Two tools may define different parts under one name, and a reply's schema has those of all tools. In JSON text, a
    # quotation mark within a string is escaped, so nothing but a reference looks like one.
    own = b'"$ref":"#/$defs/%b.' % msgspec.json.encode(tool.name)[1:-1]
    text = msgspec.json.format(parameters, indent=-1).replace(b'"$ref":"#/$defs/', own)
    schema = msgspec.json.decode(text, type=dict[str, object])
    definitions = schema.pop("$defs", {})
    call: dict[str, object] = {
        "type": "object",
        "properties": {"tool": {"const": tool.name}, "args": schema},
        "required": ["tool", "args"],
        "additionalProperties": False,
    }
    named = definitions.items() if isinstance(definitions, dict) else ()
    return msgspec.json.encode(call), {f"{tool.name}.{name}": part for name, part in named}


def one_of(branches: list[Branch], *, wrapped: bool = False) -> Raw:
    """The schema of a reply that is one of these calls; `wrapped`: inside an object, as its member `call`."""
    return _reply([call for call, _ in branches], branches, wrapped=wrapped)


_MAX_LISTED = 8
"""Maximum number of calls in a list: a small model that repeats itself would never end it."""


def list_of(branches: list[Branch], *, words: bool, wrapped: bool = False) -> Raw:
    """The schema of a reply that is one of these calls or a list of them; with `words`, or an object with an answer.

    A single call needs no list: a model that begins with a brace means a call as often as an answer. If only an answer
    could follow, it would claim to have done what it has not.
    """
    # Not every strict mode supports bounds on arrays.
    bounds = b"" if wrapped else b',"minItems":1,"maxItems":%d' % _MAX_LISTED
    calls = b'{"type":"array","items":%b%b}' % (_CALL, bounds)
    each: Branch = (b"", {"call": Raw(_any_of([call for call, _ in branches]))})
    alternatives = [calls, _CALL, _ANSWER] if words else [calls, _CALL]
    return _reply(alternatives, [*branches, each], wrapped=wrapped)


_CALL = b'{"$ref":"#/$defs/call"}'
_ANSWER = (
    b'{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"],"additionalProperties":false}'
)


def answer_alone(*, wrapped: bool = False) -> Raw:
    """The schema of a reply that is a text answer."""
    return _reply([_ANSWER], [], wrapped=wrapped)


def _reply(alternatives: list[bytes], branches: list[Branch], *, wrapped: bool) -> Raw:
    definitions = {name: value for _, defined in branches for name, value in defined.items()}
    reply = _any_of(alternatives)[1:-1]
    if wrapped:
        rest = b'},"required":["call"],"additionalProperties":false'
        reply = b'"type":"object","properties":{"call":{' + reply + b"}" + rest
    return Raw(b"{" + reply + (b',"$defs":' + msgspec.json.encode(definitions) if definitions else b"") + b"}")


def _any_of(schemas: list[bytes]) -> bytes:
    return b'{"anyOf":[' + b",".join(schemas) + b"]}"


class ToolSchemas(Struct, frozen=True, kw_only=True):
    """The tools' schemas in the forms that requests need.

    `calls` are the schemas of calls, by grammar and tool. `strict` is the `tools` field in OpenAI's strict mode;
    `refused` has a sentence for each tool that cannot be strict.
    """

    calls: Mapping[SchemaTarget, Mapping[str, Branch]]
    strict: Raw
    refused: tuple[str, ...]


def compiled_schemas(tools: tuple[ToolSpec, ...]) -> ToolSchemas:
    """The schemas of these tools."""
    targets: tuple[SchemaTarget, ...] = get_args(SchemaTarget)
    calls = {target: MappingProxyType({tool.name: call_schema(tool, target) for tool in tools}) for target in targets}
    return ToolSchemas(calls=MappingProxyType(calls), strict=encode_strict_tools(tools), refused=strict_refusals(tools))


def call_schema(tool: ToolSpec, target: SchemaTarget) -> Branch:
    """The schema of the tool's call, in which optional arguments are required but may be null."""
    schema: dict[str, Json] = msgspec.json.decode(project(constraint_of(tool), target).schema, type=dict)
    return branch(tool, Raw(msgspec.json.encode(written_or_null(schema))))


_NUMBER = "[0-9]{1,9}([.][0-9]{1,4})?"

CALCULATION = f"^[(]?{_NUMBER}( [+*/-] [(]?{_NUMBER}[)]?){{1,9}}$"
"""The pattern of a calculated argument: two to ten numbers with operators between them."""


def constraint_of(tool: ToolSpec) -> Raw:
    """The tool's parameters for a grammar in which calculated arguments can only be calculations."""
    if not tool.calculated:
        return tool.parameters
    schema: dict[str, Json] = msgspec.json.decode(tool.parameters, type=dict)
    properties = schema.get("properties")
    kinds = properties if isinstance(properties, dict) else {}
    asked: dict[str, Json] = {
        bound.argument: {**kind, "pattern": CALCULATION}
        for bound in tool.calculated
        if isinstance(kind := kinds.get(bound.argument), dict)
    }
    return Raw(msgspec.json.encode({**schema, "properties": {**kinds, **asked}}))


class _Summary(msgspec.Struct, forbid_unknown_fields=True):
    done_and_found: str
    did_not_work: str
    still_open: str


SUMMARY_SCHEMA = Raw(
    msgspec.json.encode(msgspec.json.schema(_Summary)["$defs"]["_Summary"] | {"additionalProperties": False})
)
"""The schema of a summary reply: a small model that has only made calls so far would make another one."""


_summary = msgspec.json.Decoder(_Summary)


def decode_summary(text: str) -> str:
    """The text of a reply that follows `SUMMARY_SCHEMA`; any other reply unchanged."""
    if (found := decode_or(_summary, text, None)) is None:
        return text
    parts = {"": found.done_and_found, "Did not work: ": found.did_not_work, "Still open: ": found.still_open}
    return "\n".join(f"{title}{words.strip()}" for title, words in parts.items() if words.strip())
