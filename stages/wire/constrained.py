"""The JSON Schema of the calls that may be made now, for servers that can constrain decoding (D25, D30)."""

import msgspec
from msgspec import Raw

from stages.tool import ToolSpec


def branch(tool: ToolSpec, parameters: Raw) -> tuple[bytes, dict[str, object]]:
    """The schema of one tool's call, and the definitions that it refers to, named after the tool.

    `parameters` is what the backend's grammar bears of the tool's own. Made once per workflow.
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


def one_of(branches: list[tuple[bytes, dict[str, object]]]) -> Raw:
    """The schema of a reply that is one of these calls."""
    definitions = {name: value for _, defined in branches for name, value in defined.items()}
    calls = b'{"anyOf":[' + b",".join(call for call, _ in branches) + b"]"
    return Raw(calls + (b',"$defs":' + msgspec.json.encode(definitions) if definitions else b"") + b"}")


def response_format(schema: Raw) -> Raw:
    """The `response_format` of a request that asks for this schema."""
    return Raw(b'{"type":"json_schema","json_schema":{"name":"tool_call","schema":' + bytes(schema) + b"}}")


class _Summary(msgspec.Struct, forbid_unknown_fields=True):
    done_and_found: str
    did_not_work: str
    still_open: str


SUMMARY = Raw(msgspec.json.encode(msgspec.json.schema(_Summary)["$defs"]["_Summary"] | {"additionalProperties": False}))
"""The schema of a reply that is a summary (D21): a small model that only ever made calls would make one more."""


def decode_summary(text: str) -> str:
    """The words of a reply under `SUMMARY`; a reply in another form as it is."""
    try:
        found = msgspec.json.decode(text, type=_Summary)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text
    parts = {"": found.done_and_found, "Did not work: ": found.did_not_work, "Still open: ": found.still_open}
    return "\n".join(f"{title}{words.strip()}" for title, words in parts.items() if words.strip())
