"""Results by type: a terminal tool that takes the fields of a class, and the value as an instance of it."""

from collections.abc import Callable

import msgspec
from msgspec import Raw

from forge.tools.definition import Explicit, Signature, Tool, tool
from forge.tools.schemas import (
    SUPPORTED_TYPES,
    AnnotationError,
    decoder_of,
    formless,
    normal,
    object_schema,
    schemas_of,
    unread,
)

RESULT = "submit_result"
"""The name of the tool."""

Decode = Callable[[Raw], object]


def result_tool(kind: object) -> Tool[..., object]:
    """The terminal tool for a value of that type: its fields, or a parameter `result` if it has none.

    It returns the value as JSON; `result_of` decodes it. What is wrong with the type is in its `problems`.
    """
    try:
        hint, wrong = normal(kind), [f"result: {sentence}" for sentence in unread(kind)]
    except AnnotationError as error:
        hint, wrong = int, [f"result: {error}"]
    if reason := formless(hint):
        hint, wrong = int, [*wrong, f"result is a type without a JSON form ({reason}); use {SUPPORTED_TYPES}"]
    schema, read = object_schema(hint), result_of(hint)
    if schema is None:
        (inner,), definitions = schemas_of([hint])
        schema = {
            "type": "object",
            "properties": {"result": inner},
            "required": ["result"],
            "additionalProperties": False,
            **({"$defs": definitions} if definitions else {}),
        }
    said = schema.pop("description", None)

    def accept(arguments: str) -> dict[str, object]:
        read(Raw(arguments.encode()))  # a type may ask for more than its schema can say
        return {"value": msgspec.json.decode(arguments)}

    about = "Submit the final result, when everything that it needs is known."
    description = f"{about}\n\n{said}" if isinstance(said, str) else about
    signature = Signature(name=RESULT, description=description, parameters=Raw(msgspec.json.encode(schema)))
    made = tool(effect="terminal", idempotent=True)(Explicit(lambda value: value, signature, accept))
    return Tool(made.function, made.spec, (*wrong, *made.problems))


def result_of(kind: object) -> Decode:
    """The decoder of what the tool returned. It raises ValueError if the type refuses the value."""
    hint = normal(kind)
    decode = decoder_of(hint)
    if object_schema(hint) is not None:
        return decode
    split = msgspec.json.Decoder(dict[str, Raw])
    return lambda value: decode(split.decode(value)["result"])
