"""Script: what the model of a scripted server says: a call of the shell, and when that has answered, a last word."""

import json
from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

Schema = Mapping[str, Any]
Manner = Literal["right", "wrong"]
"""Whether its calls are right at once, or the first has wrong arguments and the second stands damaged in the text."""

MARK = "hello-from-tool"
"""What the called command prints: by it an answer of the client's is told from a correction."""
LAST_WORD = "All done."

_SHELL = frozenset({"command", "cmd"})


class Asked(Struct, frozen=True, kw_only=True):
    """A request, of whatever protocol: its tools by name, the schema of its answer, what was said before."""

    model: str
    tools: Mapping[str, Schema]
    schema: Schema | None
    stream: bool
    results: str
    """Of tools, all of them, as JSON."""
    begun: bool
    """Whether the model has spoken before."""


class Said(Struct, frozen=True):
    """A text, a call, or neither; `sloppy` says it as careless servers do."""

    text: str = ""
    call: tuple[str, Mapping[str, Any]] | None = None
    sloppy: bool = False


def answer(asked: Asked, manner: Manner) -> Said:
    """What the model says next."""
    if MARK in asked.results:
        return Said(LAST_WORD, sloppy=manner == "wrong")
    if not asked.tools:
        text = "Hello." if asked.schema is None else json.dumps(instance(asked.schema))
        return Said(text, sloppy=manner == "wrong")
    name = next((name for name, schema in asked.tools.items() if _is_shell(schema)), next(iter(asked.tools)))
    arguments = instance(asked.tools[name])
    if manner == "right":
        return Said(call=(name, arguments))
    if not asked.begun:
        return Said(call=(name, {"nonsense": 5}), sloppy=True)
    damaged = json.dumps({"name": name, "arguments": arguments}).removesuffix("}") + ",}"
    return Said(f"I will.\n```json\n{damaged}\n```", sloppy=True)


def _is_shell(schema: Schema) -> bool:
    return not _SHELL.isdisjoint(schema.get("properties", {}))


def instance(schema: Schema, name: str = "") -> Any:
    """A small value that fits a schema of the kinds that clients send; a command prints MARK."""
    if values := schema.get("enum", [schema[word] for word in ("const", "default") if word in schema]):
        return values[0]
    if options := schema.get("anyOf"):
        return instance(options[0], name)
    kinds = schema.get("type", "object" if "properties" in schema else "string")
    match kinds if isinstance(kinds, str) else kinds[0]:
        case "object":
            wanted = schema.get("required", [])
            return {key: instance(part, key) for key, part in schema.get("properties", {}).items() if key in wanted}
        case "array":
            return ["sh", "-c", f"echo {MARK}"] if name in _SHELL else [instance(schema.get("items", {}))]
        case "integer" | "number":
            return schema.get("minimum", 4)
        case "boolean":
            return False
        case _:
            return f"echo {MARK}" if name in _SHELL else "door"
