"""Constrained replies: the JSON Schema of what a reply may be now, for servers that can constrain decoding."""

from collections.abc import Mapping
from typing import Literal, assert_never

import msgspec
from msgspec import Raw

from stages.repair.decoding import decode
from stages.tool import ToolSpec

Constrain = Literal["none", "json_schema", "strict", "json_object", "format", "structured_outputs", "guided_json"]
"""How a backend is asked to keep a reply to a JSON Schema.

`json_schema` and `strict` in `response_format`, the latter in OpenAI's strict subset; `json_object` there too, with
the schema beside the type, as llama-cpp-python's server has it; `format` is Ollama's,
`structured_outputs` vLLM's since version 0.11, `guided_json` its older one.
"""

Branch = tuple[bytes, Mapping[str, object]]
"""The schema of one tool's call, and the definitions that it refers to."""


def branch(tool: ToolSpec, parameters: Raw) -> Branch:
    """The schema of one tool's call, and the definitions that it refers to, named after the tool.

    `parameters` is what the backend's grammar supports of the tool's own. Made once per workflow.
    """
    schema = msgspec.json.decode(parameters, type=dict[str, object])
    definitions = schema.pop("$defs", {})
    prefix = f"#/$defs/{tool.name}."
    call: dict[str, object] = {
        "type": "object",
        "properties": {"tool": {"const": tool.name}, "args": _moved(schema, prefix)},
        "required": ["tool", "args"],
        "additionalProperties": False,
    }
    moved = definitions.items() if isinstance(definitions, dict) else ()
    return msgspec.json.encode(call), {f"{tool.name}.{name}": _moved(value, prefix) for name, value in moved}


def _moved(schema: object, prefix: str) -> object:
    """The schema with its local references pointing to where the definitions are now."""
    match schema:
        case dict():
            return {key: _reference(key, value, prefix) for key, value in schema.items()}
        case list():
            return [_moved(item, prefix) for item in schema]
        case _:
            return schema


def _reference(key: str, value: object, prefix: str) -> object:
    if key == "$ref" and isinstance(value, str):
        return value.replace("#/$defs/", prefix, 1)
    return _moved(value, prefix)


def one_of(branches: list[Branch], *, wrapped: bool = False) -> Raw:
    """The schema of a reply that is one of these calls; `wrapped`: as the only member of an object, `call`."""
    return _reply([call for call, _ in branches], branches, wrapped=wrapped)


MAX_LISTED = 8
"""Maximum number of calls in a list: a small model that has begun to repeat itself would not end it."""


def list_of(branches: list[Branch], *, words: bool, wrapped: bool = False) -> Raw:
    """The schema of a reply that is a list of these calls, or, with `words`, an object whose `answer` is a text."""
    # Strict mode has not had bounds of arrays everywhere.
    bounds = b"" if wrapped else b',"minItems":1,"maxItems":%d' % MAX_LISTED
    calls = b'{"type":"array","items":%b%b}' % (_any_of([call for call, _ in branches]), bounds)
    return _reply([calls, _ANSWER] if words else [calls], branches, wrapped=wrapped)


_ANSWER = (
    b'{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"],"additionalProperties":false}'
)


def _reply(alternatives: list[bytes], branches: list[Branch], *, wrapped: bool) -> Raw:
    definitions = {name: value for _, defined in branches for name, value in defined.items()}
    reply = _any_of(alternatives)[1:-1]
    if wrapped:
        rest = b'},"required":["call"],"additionalProperties":false'
        reply = b'"type":"object","properties":{"call":{' + reply + b"}" + rest
    return Raw(b"{" + reply + (b',"$defs":' + msgspec.json.encode(definitions) if definitions else b"") + b"}")


def _any_of(schemas: list[bytes]) -> bytes:
    return b'{"anyOf":[' + b",".join(schemas) + b"]}"


def field(schema: Raw, constrain: Constrain) -> bytes:
    """The field of a request that asks for a reply of this schema. ValueError where the backend has none."""
    given = bytes(schema)
    match constrain:
        case "json_schema":
            return b'"response_format":{"type":"json_schema","json_schema":{"name":"tool_call","schema":%b}}' % given
        case "strict":
            named = b'{"name":"tool_call","strict":true,"schema":%b}' % given
            return b'"response_format":{"type":"json_schema","json_schema":%b}' % named
        case "json_object":
            return b'"response_format":{"type":"json_object","schema":%b}' % given
        case "format":
            return b'"format":%b' % given
        case "structured_outputs":
            return b'"structured_outputs":{"json":%b}' % given
        case "guided_json":
            return b'"guided_json":%b' % given
        case "none":
            raise ValueError("this backend takes no JSON Schema of the reply; use the mode native or prompted")
        case other:
            assert_never(other)


class _Summary(msgspec.Struct, forbid_unknown_fields=True):
    done_and_found: str
    did_not_work: str
    still_open: str


SUMMARY = Raw(msgspec.json.encode(msgspec.json.schema(_Summary)["$defs"]["_Summary"] | {"additionalProperties": False}))
"""The schema of a reply that is a summary: a small model that only ever made calls would make one more."""


_summary = msgspec.json.Decoder(_Summary)


def decode_summary(text: str) -> str:
    """The words of a reply under `SUMMARY`; a reply in another form as it is."""
    try:
        found = decode(_summary, text)
    except msgspec.DecodeError:
        return text
    parts = {"": found.done_and_found, "Did not work: ": found.did_not_work, "Still open: ": found.still_open}
    return "\n".join(f"{title}{words.strip()}" for title, words in parts.items() if words.strip())
