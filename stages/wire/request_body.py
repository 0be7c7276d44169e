"""The body of a client's request: read within bounds, and every fault told by the path of its field."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from stages.message import Assistant, History
from stages.repair.decoding import decode, decode_unread, objects
from stages.tool import ToolSpec
from stages.wire.sampling import Sampling
from stages.wire.served import NO_PARAMETERS, Choice, OfferedTool, RequestError

T = TypeVar("T")

BODY_LIMIT = 32 * 1024 * 1024
"""Bytes of a request: what Anthropic's API takes."""

OBJECTS_LIMIT = 250_000
"""Objects and arrays of a request that are decoded: 10,000 tools with a dozen parameters each, and no more memory
than a few times the body."""

NAME_LIMIT = 256
"""Characters of a tool's name."""

_AT = " - at `$"
_MISSING = re.compile(r"Object missing required field `(?P<field>[^`]*)`")


_JSON_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
_TYPE = re.compile(rf"\b(?:{'|'.join(_JSON_TYPES)})\b")


class Refused(Exception):  # noqa: N818 - it never leaves the decoders: `decode_request` returns the error in it
    """Raised within a decoder; `error` is what it returns."""

    def __init__(self, message: str, param: str = "", *, status: int = 400, code: str = "") -> None:
        super().__init__(message)
        said = f"{param}: {message}" if param else message
        self.error = RequestError(message=said, param=param, status=status, code=code)


def read(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """The fields of the body. Refused for one too large, too deep or too crowded, and for a field of another type."""
    if len(body) > BODY_LIMIT:
        raise Refused(f"the request has more than {BODY_LIMIT} bytes", status=413)
    if not body.isascii() and not _is_utf8(body):
        raise Refused("the request's body is no UTF-8")
    if len(body) > OBJECTS_LIMIT < body.count(b"{") + body.count(b"[") and objects(body) > OBJECTS_LIMIT:
        raise Refused(f"the request has more than {OBJECTS_LIMIT} JSON objects and arrays", status=413)
    try:
        return decode_unread(decoder, body)
    except msgspec.ValidationError as error:
        said, path = _located(str(error))
        raise Refused(said if path else f"the request's body: {said}", path) from None
    except msgspec.DecodeError as error:
        raise Refused(f"the request's body is not valid JSON: {error}") from None


def _is_utf8(body: bytes) -> bool:
    """Parts of a body are left unread, and go on as they came."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def read_part(decoder: msgspec.json.Decoder[T], part: Raw | bytes, at: str) -> T:
    """The value of a field that was left unread; its faults are told under its path."""
    given = bytes(part)
    try:
        return decoder.decode(given)  # its nesting is the body's, which was counted
    except (msgspec.DecodeError, UnicodeError):
        pass
    try:
        return decode(decoder, given)
    except msgspec.DecodeError as error:
        said, path = _located(str(error))
        raise Refused(said, f"{at}{'.' * (path[:1] not in ('[', ''))}{path}") from None


def _located(error: str) -> tuple[str, str]:
    """What msgspec says, in JSON's words, and the path of the field, as clients write paths: `messages[0].role`."""
    said, at, path = error.rpartition(_AT)
    said, path = (said, path.removesuffix("`").removeprefix(".")) if at else (error, "")
    if missing := _MISSING.fullmatch(said):
        return "it is missing", f"{path}.{missing['field']}".lstrip(".")
    if said.startswith("Expected"):
        said = _TYPE.sub(lambda word: _JSON_TYPES[word[0]], said).replace("`", "")
    return said[:1].lower() + said[1:], path


def sampling(called: Mapping[str, str], stop: Sequence[str] = (), **given: float | None) -> Sampling:
    """The options that are set, held to their ranges; `called` has the client's names of those with another.

    An empty stop text would stop every reply, and is left out.
    """
    chosen = tuple((name, value) for name, value in given.items() if value is not None)
    stops = tuple(filter(None, stop))
    try:
        made = _numbers(chosen)
    except msgspec.ValidationError as error:
        said, path = _located(str(error))
        raise Refused(said, called.get(path, path)) from None
    return replace(made, stop=stops) if stops else made


@lru_cache(maxsize=256)
def _numbers(chosen: tuple[tuple[str, float], ...]) -> Sampling:
    """Kept, as clients send the same options with every request, and to check them takes longer than to read a body."""
    return msgspec.convert(dict(chosen), Sampling)


KEPT_LIMIT = 256 * 1024
"""Bytes of a part that is kept: 16 MiB in all."""


def kept(decode_part: Callable[[bytes], T]) -> Callable[[Raw], T]:
    """The function, which keeps what it last made of 64 parts: clients send the same tools with every request."""
    remembering = lru_cache(maxsize=64)(decode_part)

    def decoded(part: Raw) -> T:
        given = bytes(part)
        return remembering(given) if len(given) <= KEPT_LIMIT else decode_part(given)

    return decoded


def above_zero(limit: int | None) -> int | None:
    """A limit of tokens; clients of llama.cpp say -1 where they mean none."""
    return None if limit is None or limit < 0 else limit


def share(value: float | None) -> float | None:
    """`top_p`; 0 means the likeliest token alone, and a share is more than nothing."""
    return 1e-6 if value == 0 else value


def offered(tool: OfferedTool, at: str, parameters: str = "parameters") -> OfferedTool:
    """The tool. Refused for a name that is empty or too long, and for parameters that are no JSON Schema object."""
    if not tool.spec.name.strip() or len(tool.spec.name) > NAME_LIMIT:
        raise Refused(f"a tool's name has 1 to {NAME_LIMIT} characters", f"{at}.name")
    schema_of(tool.spec.parameters, f"{at}.{parameters}")
    return tool


def spec(name: str, description: str | None, parameters: Raw) -> ToolSpec:
    """A tool of the client's, as the stages know it."""
    given = NO_PARAMETERS if bytes(parameters) == b"null" else parameters
    return ToolSpec(name=name, description=description or "", parameters=given)


def schema_of(given: Raw, at: str) -> Raw | None:
    """A JSON Schema; None where there is none. Refused for what is no object."""
    if bytes(given) == b"null":
        return None
    if not bytes(given).startswith(b"{"):
        raise Refused("it must be a JSON Schema", at)
    return given


def distinct(tools: Iterable[OfferedTool]) -> tuple[OfferedTool, ...]:
    """The tools by name, the first of each: a model cannot tell two of one name apart."""
    known: dict[str, OfferedTool] = {}
    for tool in tools:
        known.setdefault(tool.spec.name, tool)
    return tuple(known.values())


def chosen(choice: Choice, tools: tuple[OfferedTool, ...]) -> Choice:
    """The choice. Refused where it names a tool that is not offered, or demands a call where there is none to make."""
    names = {tool.spec.name for tool in tools}
    if unknown := [name for name in choice.tools if name not in names]:
        raise Refused(f"{unknown[0]!r} is none of the tools of this request", "tool_choice")
    if choice.mode == "required" and not tools:
        raise Refused("a call is required, and the request has no tools", "tool_choice")
    return choice


def named(history: History) -> dict[str, str]:
    """The tool that each call of a history was made to, by the call's id; of two with one id the later."""
    return {call.id: call.name for message in history if isinstance(message, Assistant) for call in message.calls}
