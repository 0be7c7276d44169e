"""Which JSON is a call: the shapes in which models write calls, and data that only looks like one."""

import re
from collections.abc import Iterable

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from stages.repair.damaged_json import FoundJson
from stages.repair.json_text import array_elements, is_json, json_at, json_source, object_members, string_value
from stages.rescue.described import ARGUMENT_KEYS, ECHO_KEYS, is_definition, is_record
from stages.rescue.found import Claim
from stages.rescue.names import Names, bare_name
from stages.rescue.tags import STEM_IN

NAME_KEYS = ("tool_name", "tool", "function_name", "function", "toolName", "recipient_name", "action", "name")
_NAME_KEYS = frozenset(NAME_KEYS)
_MANY_KEYS = ("tool_calls", "function_calls", "tool_uses", "calls")
_LISTS_OF_CALLS = frozenset({"steps", "requests", "actions", "commands", "operations", "invocations", "tasks", "plan"})
"""Other keys of lists of calls, which are guesses; not those of records (`history`) and definitions (`tools`)."""
_PARALLEL = "multi_tool_use.parallel"
"""OpenAI's models write several calls as arguments of a tool of this name, even if no such tool was given."""
_CALL_WORDS = ("tool_call", "function_call", "functionCall", "toolCall", "tool_use", "toolUse")
_ONE_KEYS = (*_CALL_WORDS, "function", "call", "action", "next_action", "tool", "command")
_WRAPPING = frozenset({*_ONE_KEYS, "params"})
_CALL_KEYS = frozenset({*NAME_KEYS, *_MANY_KEYS, *_ONE_KEYS, "method"})
"""An object with several keys is a call only if one of these is among them."""
_NO_CALLS = frozenset({"text", "thinking", "reasoning"})
"""Kinds of message blocks that are not calls."""
_OUTSIDE = frozenset({*NAME_KEYS, *ARGUMENT_KEYS, *ECHO_KEYS})
_PAIRS = ({"name", "value"}, {"key", "value"})
"""The keys of arguments that are written as a list of names and values."""
_PLAIN_MEMBERS = len(("name", "arguments"))
"""Members of a call that has no others."""
_WRAPPERS = 3
"""Maximum number of objects around a call."""
_NAMING = re.compile(r"[A-Za-z_][\w.:/#<>|()-]{0,120}")
_UNSURE = frozenset({"flat_arguments", "no_arguments", "closed_too_early"})
"""Repairs of calls that may have had more arguments."""
_IDENTIFIER = re.compile(r"[A-Za-z_][\w.:/-]{0,99}")


class _Shape(Struct, frozen=True, kw_only=True):
    """What a JSON value is: calls, an unusable call (`damage`), or, with neither, mere data."""

    claims: tuple[Claim, ...] = ()
    damage: str | None = None


NOT_A_CALL = _Shape()


def shape_of(found: FoundJson, names: Names, *, marked: bool) -> _Shape:
    """The calls that a JSON value represents. `marked`: markup around it says that it is a call."""
    many = array_elements(found.text) if found.text.startswith("[") else None
    shape = (
        _object(object_members(found.text), names, marked=marked)
        if many is None
        else _several(many, names, marked=marked)
    )
    return _priced(shape, found) if found.repairs else shape


def arguments_of(name: str, found: FoundJson) -> _Shape:
    """A call of that name with these arguments: an object, JSON text of an object, or a list with one object."""
    shape = _arguments(name, found.text)
    return _priced(shape, found) if found.repairs else shape


def _priced(shape: _Shape, found: FoundJson) -> _Shape:
    """The calls, with the repairs of the JSON that contains them."""
    if found.left_open and shape.claims:
        last = shape.claims[-1]
        if not _UNSURE.isdisjoint(last.repairs):
            # If the end is missing, the arguments may be missing too.
            return _Shape(damage="it ends before its arguments.")
        _, given, behind = found.text.rpartition(last.arguments)
        ends_them = "arguments_as_text" not in last.repairs and not (given and behind.strip("]} \n"))
        own = _closers(last.arguments) - 1 if ends_them else 0
        if found.left_open > _closers(found.text) - own:
            return _Shape(damage="it ends within one of its values.")
    claims = (
        Claim(name=c.name, arguments=c.arguments, repairs=found.repairs + c.repairs, cost=found.cost + c.cost)
        for c in shape.claims
    )
    return _Shape(claims=tuple(claims), damage=shape.damage)


def _closers(json: str) -> int:
    return len(json) - len(json.rstrip("]}"))


def _several(values: Iterable[Raw], names: Names, *, marked: bool) -> _Shape:
    """An array contains calls only if all its elements are calls."""
    read = [object_members(json_source(value)) for value in values]
    shapes = [_object(value, names, marked=marked) for value in read if not _is_words(value or {})]
    if not shapes or not all(shape.claims or shape.damage for shape in shapes):
        return NOT_A_CALL
    claims = tuple(claim for shape in shapes for claim in shape.claims)
    return _Shape(claims=claims, damage=next((shape.damage for shape in shapes if shape.damage), None))


def _is_words(block: dict[str, Raw]) -> bool:
    """Whether an element is a text block next to the calls."""
    return string_value(block.get("type")) in _NO_CALLS and block.keys().isdisjoint(NAME_KEYS)


def _object(value: dict[str, Raw] | None, names: Names, *, marked: bool) -> _Shape:
    if value is None:
        return NOT_A_CALL
    if len(value) == _PLAIN_MEMBERS and (claim := _plain_call(value, names)):
        return _Shape(claims=(claim,))
    if value.keys().isdisjoint(NAME_KEYS) and any(key[:1].isupper() for key in value):
        value = {key.lower(): raw for key, raw in value.items()}
    if len(value) > 1 and value.keys().isdisjoint(_CALL_KEYS):
        return _other_keys(value, names)
    named = string_value(value.get("name")) or string_value(value.get("recipient_name")) or ""
    if "parallel" in named and bare_name(named) == _PARALLEL:
        given = next((value[key] for key in ARGUMENT_KEYS if key in value), Raw(b"{}"))
        value = object_members(string_value(given) or json_source(given)) or {}
    for key in _MANY_KEYS:
        if key in value and (many := array_elements(json_source(value[key]))):
            return _several(many, names, marked=marked)
    return _call(_innermost(value), names, marked=marked)


def _innermost(value: dict[str, Raw]) -> dict[str, Raw]:
    """The object that is the call, without wrappers: `{"tool_call": {"function": {…}}}`."""
    for _ in range(_WRAPPERS):
        if value.keys().isdisjoint(_WRAPPING):
            break
        keys = (*_ONE_KEYS, "params") if string_value(value.get("method")) == "tools/call" else _ONE_KEYS
        wrapped = ((key, object_members(json_source(value[key]))) for key in keys if key in value)
        key, inner = next(((key, inner) for key, inner in wrapped if inner is not None), ("", None))
        if inner is None:
            break
        # Some put the name, or the arguments, outside of the object that holds the other.
        outer = {k: v for k, v in value.items() if k in _OUTSIDE and k != key}
        value = {**outer, **inner}
    return value


_TYPED = re.compile(
    rb'"(?:type|properties|description|str|int|float|bool|string|integer|number|boolean|object|array|null)"'
)
"""Keys that a tool's definition has where a call has its arguments."""


def _plain_call(value: dict[str, Raw], names: Names) -> Claim | None:
    """Read `{"name": …, "arguments": {…}}` directly: what most models write needs no other checks."""
    named, given = value
    if named not in _NAME_KEYS:
        named, given = given, named
    if named not in _NAME_KEYS or given not in ARGUMENT_KEYS:
        return None
    arguments = bytes(value[given])
    name = string_value(value[named]) if arguments.startswith(b"{") else None
    if name is None or name not in names.known:
        return None
    described = b'"type"' in arguments if given == "arguments" else _TYPED.search(arguments) is not None
    return None if described else Claim(name=name, arguments=arguments.decode())


def _call(value: dict[str, Raw], names: Names, *, marked: bool) -> _Shape:
    if is_record(value) or is_definition(value):
        return NOT_A_CALL
    written = [name for key in NAME_KEYS if key in value and (name := string_value(value[key])) is not None]
    known = {found for name in written for found in names.find(name)}
    if len(known) > 1:
        return _Shape(damage=f"it can be read as a call of each of {', '.join(sorted(known))}.")
    if not known and not _is_strange_call(value, written, marked=marked):
        if len(value) == 1:
            return _keyed(value, names, marked=marked)
        return NOT_A_CALL if written else _other_keys(value, names)
    name = next((name for name in written if names.find(name)), written[0] if written else "")
    shape = _with_arguments(name, value, names, marked=marked)
    return shape if known or marked or shape.claims else NOT_A_CALL


def _with_arguments(name: str, value: dict[str, Raw], names: Names, *, marked: bool) -> _Shape:
    given = {json_source(value[key]): key for key in ARGUMENT_KEYS if key in value}
    full = [text for text in given if text not in ("{}", "null", '""')] or list(given)[:1]
    flat = {key: raw for key, raw in value.items() if key not in (*NAME_KEYS, *given.values(), "type", "id")}
    if full in (["{}"], ["null"], ['""']) and flat and flat.keys() <= set(names.parameters(name)):
        # An empty wrapper next to the arguments.
        full = []
    if len(full) > 1:
        return _Shape(damage=f"the call of {name[:60]} has two sets of arguments.")
    if full and not (full == ["[]"] and names.takes_nothing(name)):
        return _beside(_arguments(name, full[0]), flat, names, marked=marked)
    fits = flat.keys() <= set(names.parameters(name)) and (bool(flat) or names.takes_nothing(name))
    if not fits and not full and (other := _other_keys(value, names)).claims:
        return other
    if not marked and not fits:
        bare = value.keys() <= {*NAME_KEYS, "type", "id"} and "name" not in value
        return _Shape(damage=f"the call of {name[:60]} has no arguments object.") if bare else NOT_A_CALL
    repairs = ("flat_arguments",) if flat else () if fits else ("no_arguments",)
    return _Shape(claims=(Claim(name=name, arguments=_encoded(flat), repairs=repairs, cost=not fits),))


def _beside(shape: _Shape, flat: dict[str, Raw], names: Names, *, marked: bool) -> _Shape:
    """The call that was closed too early, with these members next to its arguments; or data."""
    if not flat or not shape.claims:
        return shape
    claim = shape.claims[0]
    given, known = object_members(claim.arguments) or {}, set(names.parameters(claim.name))
    if given and known and known.isdisjoint(given) and not marked:
        # A remark next to a call may be an invented argument, so the model is told. Data has no remarks.
        remarks = (string_value(raw) or "" for key, raw in flat.items() if key not in known)
        return shape if any(" " in remark for remark in remarks) else NOT_A_CALL
    late = {key: raw for key, raw in flat.items() if key in known and key not in given}
    if not late:
        # Other structured members may be the data that these belong to.
        structured = not marked and any(bytes(raw).startswith((b"{", b"[")) for raw in flat.values())
        return _Shape(claims=(claim.guessed(),)) if structured else shape
    repairs = (*claim.repairs, "closed_too_early")
    cost = claim.cost + (not marked)
    whole = Claim(name=claim.name, arguments=_encoded({**given, **late}), repairs=repairs, cost=cost)
    return _Shape(claims=(whole,))


def _arguments(name: str, text: str) -> _Shape:
    """A call with these arguments: an object, JSON text of an object, or nothing."""
    if text.startswith("{"):
        return _Shape(claims=(Claim(name=name, arguments=text),))
    if text in ("null", '""'):
        return _Shape(claims=(Claim(name=name, arguments="{}", repairs=("no_arguments",), cost=1),))
    only = array_elements(text) if text.startswith("[") else None
    pairs = [object_members(json_source(one)) or {} for one in only or ()]
    if pairs and all(pair.keys() in _PAIRS for pair in pairs):
        given = {string_value(pair.get("name", pair.get("key", Raw(b"")))) or "": pair["value"] for pair in pairs}
        return _Shape(claims=(Claim(name=name, arguments=_encoded(given), repairs=("arguments_in_a_list",)),))
    merged = {key: raw for pair in pairs for key, raw in pair.items()}
    if pairs and all(pairs) and len(merged) == sum(map(len, pairs)):
        claim = Claim(name=name, arguments=_encoded(merged), repairs=("arguments_in_a_list",), cost=1)
        return _Shape(claims=(claim,))
    inner = string_value(Raw(text.encode()))
    for _ in range(_WRAPPERS):
        if inner is not None and inner.startswith('"') and is_json(inner):
            inner = string_value(Raw(inner.encode()))
    if inner is not None and inner.lstrip().startswith("{"):
        found = json_at(inner, inner.index("{"))
        if isinstance(found, FoundJson) and not inner[found.end :].strip():
            repairs = ("arguments_as_text", *found.repairs)
            return _Shape(claims=(Claim(name=name, arguments=found.text, repairs=repairs, cost=found.cost),))
    return _Shape(damage=f"the arguments of the call of {name[:60]} are not a JSON object.")


def _keyed(value: dict[str, Raw], names: Names, *, marked: bool) -> _Shape:
    """`{"get_weather": {"city": …}}`, where markup says that it is a call, or its members are the parameters."""
    name, raw = next(iter(value.items()))
    given = object_members(string_value(raw) or json_source(raw))
    fits = given is not None and given.keys() <= set(names.parameters(name)) and (given or names.takes_nothing(name))
    if fits or (marked and names.knows(name)):
        shape = _arguments(name, json_source(raw))
        return shape if given or marked else _Shape(claims=tuple(claim.guessed() for claim in shape.claims))
    # A wrapper with another key is a guess.
    if given is None:
        many = array_elements(json_source(raw)) if name in _LISTS_OF_CALLS else None
        inner = _several(many, names, marked=False) if many else NOT_A_CALL
    elif len(given) == _PLAIN_MEMBERS or (len(given) == 1 and next(iter(given)) in names.known):
        inner = _object(given, names, marked=False)
    else:
        return NOT_A_CALL
    return _Shape(claims=tuple(claim.guessed() for claim in inner.claims))


def _other_keys(value: dict[str, Raw], names: Names) -> _Shape:
    """`{"fn": "get_weather", "with": {"city": …}}`: a name and its arguments under any keys; a guess."""
    holding = [raw for raw in value.values() if bytes(raw).startswith((b"{", b"[", b'"{'))]
    texts = {key: text for key, raw in value.items() if (text := string_value(raw)) is not None}
    naming = [(key, text) for key, text in texts.items() if text in names.known]
    if not naming and len(holding) == 1:
        naming = [(key, text) for key, text in texts.items() if _NAMING.fullmatch(text.strip()) and names.knows(text)]
    if len(naming) != 1:
        return NOT_A_CALL
    named, name = naming[0]
    known = set(names.parameters(name))
    claims = _arguments(name, json_source(holding[0])).claims if len(holding) == 1 else ()
    given = object_members(claims[0].arguments) if claims else None
    if given is None:
        flat = {key: raw for key, raw in value.items() if key != named}
        if not STEM_IN.search(named) or not flat.keys() <= known:
            return NOT_A_CALL
        guessed = ("other_keys", "flat_arguments")
        return _Shape(claims=(Claim(name=name, arguments=_encoded(flat), repairs=guessed, cost=1),))
    if not given.keys() <= known or not (given or names.takes_nothing(name)):
        return NOT_A_CALL
    repairs = ("other_keys", *claims[0].repairs)
    return _Shape(claims=(replace(claims[0], repairs=repairs, cost=claims[0].cost + 1),))


def _is_strange_call(value: dict[str, Raw], written: list[str], *, marked: bool) -> bool:
    """Whether it is a call of an unknown tool, rather than data that contains a name."""
    if not written or not _IDENTIFIER.fullmatch(written[0]):
        return False
    keys = [key for key in ("arguments", "args", "parameters", "tool_input", "action_input", "input") if key in value]
    if not any(json_source(value[key])[:1] in ("{", '"') for key in keys):
        return marked and not keys and len(value) == 1
    strong = "name" not in value or "arguments" in value or string_value(value.get("type")) in ("function", "tool_use")
    return marked or (strong and value.keys() <= {*NAME_KEYS, *ARGUMENT_KEYS, "type", "id"})


def _encoded(value: dict[str, Raw]) -> str:
    return msgspec.json.encode(value).decode()
