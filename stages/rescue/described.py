"""JSON that describes a call or a tool without making a call: records and definitions."""

from msgspec import Raw

from stages.repair.json_text import array_elements, json_source, object_members, string_value

_GIVEN = ("arguments", "args", "parameters", "params", "input")
ARGUMENT_KEYS = (*_GIVEN, *(f"{what}_{given}" for what in ("tool", "function", "action") for given in _GIVEN), "kwargs")
"""The keys under which models write arguments."""
ECHO_KEYS = frozenset({"result", "results", "output", "response", "observation", "tool_output", "returns", "returned"})
"""Next to a name and arguments, these make it a record of a past call."""
_LOG_KEYS = frozenset({"timestamp", "event", "duration_ms", "latency_ms", "exit_code"})
"""Next to a name and an object of arguments, these make it a line of a log."""
_SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema", "parameters_schema", "params")
_DESCRIBING = frozenset({*_SCHEMA_KEYS, *ARGUMENT_KEYS})
TYPES = frozenset({"string", "integer", "number", "boolean", "object", "array", "null", "str", "int", "float", "bool"})


def is_record(value: dict[str, Raw]) -> bool:
    """Whether it is the record of a past call, with its result."""
    return bool(ECHO_KEYS & value.keys()) or ("arguments" in value and bool(_LOG_KEYS & value.keys()))


def is_definition(value: dict[str, Raw]) -> bool:
    """A tool described rather than called: a JSON Schema, a list or a description where the arguments would be."""
    if value.keys().isdisjoint(_DESCRIBING):
        return False
    if "arguments" not in value and json_source(given := value.get("parameters", Raw(b"null"))).startswith("["):
        # A list of parameters; one of names and values is a call's.
        many = array_elements(json_source(given))
        return "description" in value or not many or any(map(_describes_parameter, many))
    for key in _SCHEMA_KEYS:
        if key in value and (schema := object_members(json_source(value[key]))) is not None:
            if "properties" in schema and not has_values(schema["properties"]):
                return True
            if "properties" not in schema and "type" in schema and "required" in schema:
                return True
            if "description" in value and "arguments" not in value:
                return True
    if any(_describes_types(value[key]) for key in ARGUMENT_KEYS if key in value):
        return True
    return "input_schema" in value or "inputSchema" in value


def has_values(properties: Raw) -> bool:
    """Whether the properties of a schema are values, not types: the call of a model that was shown that schema."""
    if string_value(properties) is not None:
        return True
    described = object_members(json_source(properties)) or {}
    texts = {key: string_value(one) for key, one in described.items() if not bytes(one).startswith(b"{")}
    return (
        bool(texts) and texts.keys().isdisjoint(("required", "additionalProperties")) and not TYPES & {*texts.values()}
    )


def _describes_parameter(raw: Raw) -> bool:
    given = object_members(json_source(raw))
    if not given or not given.keys().isdisjoint(("type", "description")) or _describes_types(raw):
        return True
    return string_value(given.get("value")) in TYPES


def _describes_types(raw: Raw) -> bool:
    """Whether each value names a JSON type instead of being a value."""
    described = object_members(json_source(raw))
    inner = [object_members(json_source(one)) or {} for one in described.values()] if described else [{}]
    kinds = [string_value(one.get("type")) for one in inner if "value" not in one]
    named = [string_value(one) for one in described.values()] if described else [None]
    return (bool(kinds) and all(kind in TYPES for kind in kinds)) or all(kind in TYPES for kind in named)
