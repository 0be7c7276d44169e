"""Schemas that forge cannot check with: as much of each as arguments can be checked against."""

from collections.abc import Mapping

import msgspec
from msgspec import Raw

from stages.repair.decoding import decode
from stages.schema.compilation import SchemaError, compiled
from stages.schema.value import Json, too_deep

_any: msgspec.json.Decoder[Json] = msgspec.json.Decoder()


_MOST_BYTES = 500_000
"""Maximum bytes of schemas that are tried for the sake of one."""


def readable(parameters: bytes | Raw) -> Raw:
    """The schema itself if arguments can be checked against it; otherwise the part of it that they can be.

    In that part, a member whose own schema cannot be read takes any value; so do the last of very many members. Which
    members are required, and whether others are allowed, stays. Of what is not the schema of an object, nothing is left
    but that.
    """
    if _compiles(parameters):
        return Raw(bytes(parameters))
    schema = _object_in(parameters)
    shared = {name: schema[name] for name in ("$defs", "definitions") if name in schema}
    shared = shared if _compiles(_encoded(shared)) else {}
    properties, required, others = (schema.get(name) for name in ("properties", "required", "additionalProperties"))
    members = properties if isinstance(properties, dict) else {}
    kept: dict[str, Json] = {}
    left = _MOST_BYTES
    for name, one in members.items():
        alone = _encoded(shared, {name: one}) if left > 0 else b""
        left -= len(bytes(alone))
        kept[name] = one if left > 0 and _compiles(alone) else True
    names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    rest: dict[str, Json] = {"additionalProperties": others} if isinstance(others, bool) else {}
    return _encoded({**shared, "required": [*dict.fromkeys(names)], **rest}, kept)


def _compiles(schema: bytes | Raw) -> bool:
    try:
        compiled(schema)
    except SchemaError:
        return False
    return True


def _object_in(text: bytes | Raw) -> Mapping[str, Json]:
    """The JSON object in the text; an empty one where it is another value, or nested too deep."""
    try:
        value = decode(_any, bytes(text))
    except msgspec.DecodeError:
        return {}
    return value if isinstance(value, dict) and not too_deep(value) else {}


def _encoded(keywords: Mapping[str, Json], properties: Mapping[str, Json] | None = None) -> Raw:
    return Raw(msgspec.json.encode({"type": "object", "properties": properties or {}, **keywords}))
