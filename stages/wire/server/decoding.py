"""Clients' bodies read within limits. Each error names the path of its field: `messages[0].role`."""

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from stages.decoding import decode, decode_unread, objects
from stages.tool import ToolSpec
from stages.wire.sampling import Sampling
from stages.wire.server.errors import RequestError
from stages.wire.server.request import (
    CUSTOM_PARAMETERS,
    NO_PARAMETERS,
    ClientChoice,
    Foreign,
    OfferedTool,
    ServerRequest,
    TextFormat,
)

_T = TypeVar("_T")

BODY_LIMIT = 32 * 1024 * 1024
"""Maximum bytes of a request, the same as Anthropic's API."""

_OBJECTS_LIMIT = 250_000
"""Maximum number of objects and arrays in a request: enough for 10,000 tools with a dozen parameters each, while
decoding takes only a few times the memory of the body."""

_NAME_LIMIT = 256
"""Maximum characters of a tool's name."""

# msgspec's messages end in the path of the wrong value (" - at `$.messages[0].role`") and use Python's names of types.
_AT = " - at `$"
_MISSING = re.compile(r"Object missing required field `(?P<field>[^`]*)`")
_JSON_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
_TYPE = re.compile(rf"\b(?:{'|'.join(_JSON_TYPES)})\b")


class BadRequest(Exception):  # noqa: N818 - it never leaves the decoders: `decoded_request` returns its `error`
    """Raised anywhere inside a decoder, so that the code between need not pass errors along."""

    def __init__(self, message: str, param: str = "", *, status: int = 400, code: str = "") -> None:
        super().__init__(message)
        said = f"{param}: {message}" if param else message
        self.error = RequestError(message=said, param=param, status=status, code=code)


def request_decoder(
    kind: type[_T], served: Callable[[_T, bytes], ServerRequest]
) -> Callable[[bytes], ServerRequest | RequestError]:
    """A function that reads a body of this kind: the request that `served` makes of it, or what is wrong with it."""
    decoder = msgspec.json.Decoder(kind)

    def decode_request(body: bytes) -> ServerRequest | RequestError:
        try:
            return served(_read(decoder, body), body)
        except BadRequest as bad:
            return bad.error

    return decode_request


def _read(decoder: msgspec.json.Decoder[_T], body: bytes) -> _T:
    """The decoded body. BadRequest if it is too large, too deeply nested, too crowded, or a field has a wrong type."""
    if len(body) > BODY_LIMIT:
        raise BadRequest(f"the request has more than {BODY_LIMIT} bytes", status=413)
    try:
        body.decode()  # msgspec does not check the parts left undecoded, which may be sent on as they are
    except UnicodeDecodeError:
        raise BadRequest("the request's body is not UTF-8") from None
    if len(body) > _OBJECTS_LIMIT < body.count(b"{") + body.count(b"[") and objects(body) > _OBJECTS_LIMIT:
        raise BadRequest(f"the request has more than {_OBJECTS_LIMIT} JSON objects and arrays", status=413)
    try:
        return decode_unread(decoder, body)
    except msgspec.ValidationError as error:
        said, path = _located(str(error))
        raise BadRequest(said if path else f"the request's body: {said}", path) from None
    except msgspec.DecodeError as error:
        raise BadRequest(f"the request's body is not valid JSON: {error}") from None


def read_part(decoder: msgspec.json.Decoder[_T], part: Raw | bytes, at: str) -> _T:
    """The decoded value of a field that was left undecoded; errors name its path."""
    given = bytes(part)
    try:
        return decoder.decode(given)  # its nesting is the body's, which was counted
    except (msgspec.DecodeError, UnicodeError):
        pass
    try:
        return decode(decoder, given)
    except msgspec.DecodeError as error:
        said, path = _located(str(error))
        raise BadRequest(said, f"{at}{'.' * (path[:1] not in ('[', ''))}{path}") from None


def _located(error: str) -> tuple[str, str]:
    """The message of msgspec with JSON's type names, and the path of the field: `messages[0].role`."""
    said, at, path = error.rpartition(_AT)
    said, path = (said, path.removesuffix("`").removeprefix(".")) if at else (error, "")
    if missing := _MISSING.fullmatch(said):
        return "field required", f"{path}.{missing['field']}".lstrip(".")
    if said.startswith("Expected"):
        said = _TYPE.sub(lambda word: _JSON_TYPES[word[0]], said).replace("`", "")
    return said[:1].lower() + said[1:], path


def sampling(asked: Struct, called: Mapping[str, str]) -> Sampling:
    """The options that are set in the request, checked against their ranges (BadRequest).

    `called` has the client's names of options where they differ from ours. An empty stop text would stop every reply,
    so it is left out. Clients of llama.cpp send a token limit of -1 for no limit. A `top_p` of 0 asks for the likeliest
    token only, but servers require more than 0.
    """
    given = {name: getattr(asked, called.get(name, name), None) for name in Sampling.__struct_fields__}
    stop = given.pop("stop") or ()
    if (given["max_tokens"] or 0) < 0:
        del given["max_tokens"]
    if given["top_p"] == 0:
        given["top_p"] = 1e-6
    try:
        made = _numbers(tuple((name, value) for name, value in given.items() if value is not None))
    except msgspec.ValidationError as error:
        said, path = _located(str(error))
        raise BadRequest(said, called.get(path, path)) from None
    stops = (stop,) if isinstance(stop, str) else tuple(filter(None, stop))
    return replace(made, stop=stops) if stops else made


@lru_cache(maxsize=256)
def _numbers(chosen: tuple[tuple[str, float], ...]) -> Sampling:
    """Cached: clients repeat their options in every request, and checking them takes longer than reading a body."""
    return msgspec.convert(dict(chosen), Sampling)


_CACHED_LIMIT = 256 * 1024
"""Maximum bytes of a cached part, so that the 64 of a cache take at most 16 MiB."""


def cached(decode_part: Callable[[bytes], _T]) -> Callable[[Raw], _T]:
    """The function with a cache of 64 parts: clients repeat their tools in every request."""
    remembering = lru_cache(maxsize=64)(decode_part)

    def decoded(part: Raw) -> _T:
        given = bytes(part)
        return remembering(given) if len(given) <= _CACHED_LIMIT else decode_part(given)

    return decoded


class MessagePart(Struct):
    """A part of a message: text, a refusal, or something that forge does not model."""

    type: str
    text: str | None = None
    refusal: str | None = None


def last_reply(items: Sequence[_T], is_reply: Callable[[_T], bool]) -> int:
    """The position of the last part of a reply; -1 if there is none. A user's parts after it are new to the model."""
    return next((number for number in reversed(range(len(items))) if is_reply(items[number])), -1)


def texts_of(
    parts: Sequence[MessagePart], at: str, known: Container[str], *, fresh: bool
) -> tuple[str, tuple[Foreign, ...]]:
    """The text of a message, one part per line, and its other parts. `known` are the types of text parts.

    A picture in the user's last message (`fresh`) is refused by a backend of another protocol. Earlier pictures are
    noted, so that the conversation can continue.
    """
    said: list[str] = []
    foreign: list[Foreign] = []
    for number, part in enumerate(parts):
        if part.type in known:
            words = part.refusal if part.type == "refusal" else part.text
            if words is None:
                raise BadRequest("field required", f"{at}[{number}].text")
            said.append(words)
        else:
            kind = part.type[:50]
            said.append(f"[{kind} left out]")
            foreign.append(Foreign(at=f"{at}[{number}]", kind=kind, fate="refused" if fresh else "noted"))
    return "\n".join(said), tuple(foreign)


def worded_choice(word: str | None) -> ClientChoice:
    """The choice of tools for one of OpenAI's words. BadRequest for an unknown word."""
    match word:
        case None | "auto":
            return ClientChoice()
        case "none" | "required":
            return ClientChoice(mode=word)
        case _:
            raise BadRequest(f"must be auto, none, required or a tool, not {word[:50]!r}", "tool_choice")


def offered_tool(
    name: str, description: str | None, parameters: Raw | None, at: str, field: str = "parameters"
) -> OfferedTool:
    """A client's tool; a custom one without `parameters`, which are in this `field`.

    BadRequest if the name is empty or too long, or the parameters are not a JSON Schema object.
    """
    if not name.strip() or len(name) > _NAME_LIMIT:
        raise BadRequest(f"a tool's name must have 1 to {_NAME_LIMIT} characters", f"{at}.name")
    schema = CUSTOM_PARAMETERS if parameters is None else schema_of(parameters, f"{at}.{field}") or NO_PARAMETERS
    spec = ToolSpec(name=name, description=description or "", parameters=schema)
    return OfferedTool(spec=spec, kind="custom" if parameters is None else "function", own_name=name)


def openai_format(kind: str, schema: Raw, name: str, at: str, *, strict: bool) -> TextFormat | None:
    """The text format of OpenAI's protocols; None for plain text. BadRequest for an unknown type. `at` is its path."""
    match kind:
        case "text":
            return None
        case "json_object":
            return TextFormat()
        case "json_schema":
            return TextFormat(schema=schema_of(schema, f"{at}.schema"), name=name, strict=strict)
        case _:
            said = f"must be text, json_object or json_schema, not {kind[:50]!r}"
            raise BadRequest(said, f"{at.removesuffix('.json_schema')}.type")


def schema_of(given: Raw, at: str) -> Raw | None:
    """A JSON Schema, or None for null. BadRequest if it is not an object."""
    if bytes(given) == b"null":
        return None
    if not bytes(given).startswith(b"{"):
        raise BadRequest("must be a JSON Schema", at)
    return given


def distinct(tools: Iterable[OfferedTool]) -> tuple[OfferedTool, ...]:
    """The first tool of each name: a model cannot tell two with the same name apart."""
    known: dict[str, OfferedTool] = {}
    for tool in tools:
        known.setdefault(tool.spec.name, tool)
    return tuple(known.values())


def checked_choice(choice: ClientChoice, tools: tuple[OfferedTool, ...]) -> ClientChoice:
    """The choice. BadRequest if it names a tool that is not offered, or requires a call and there are no tools."""
    names = {tool.spec.name for tool in tools}
    if unknown := [name for name in choice.tools if name not in names]:
        raise BadRequest(f"{unknown[0]!r} is not one of this request's tools", "tool_choice")
    if choice.mode == "required" and not tools:
        raise BadRequest("a call is required, but the request has no tools", "tool_choice")
    return choice
