"""What all wires share: lines and deltas of streams, faults, context overflow, sampling options."""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Protocol, Self, TypeAlias, TypeVar, assert_never

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from msgspec.structs import asdict, replace

from stages import reasoning
from stages.effect import Fault, RawCall, Reply, TokenProbability, Usage
from stages.options import Fraction, OptionError, Options, Tokens
from stages.repair.decoding import decode

# Deltas: the increments of a streamed reply, for observers. The state only sees the whole reply.


class TextDelta(Struct, frozen=True, kw_only=True, tag="text"):
    """More of the text. In the modes prompted and constrained, it includes the calls."""

    text: str


class ReasoningDelta(Struct, frozen=True, kw_only=True, tag="reasoning"):
    """More of the reasoning, whether separated by the server or by tags in the text."""

    text: str
    sealed: str = ""
    """The reasoning in the form that its server wants back (`effect.Reply`); without `text`, of earlier deltas."""


class Reclassified(Struct, frozen=True, kw_only=True, tag="reclassified"):
    """A correction of earlier deltas: that many of the text's last characters were reasoning, or the reverse.

    Caused by a closing tag without an opening one, and by a call in reasoning that never ends.
    """

    to_reasoning: int = 0
    to_text: int = 0


class CallStarted(Struct, frozen=True, kw_only=True, tag="call_started"):
    """The reply's call number `index`, counted from 0, begins. Repeated for the same call if its name grows."""

    index: int
    name: str = ""
    id: str = ""


class CallDelta(Struct, frozen=True, kw_only=True, tag="call_delta"):
    """More of the JSON text of a call's arguments."""

    index: int
    arguments: str


class Ended(Struct, frozen=True, kw_only=True, tag="ended"):
    """The reply is complete. `finish` is the server's own word (stop, length …); the rest is as in `effect.Reply`."""

    finish: str = "stop"
    usage: Usage | None = None
    sealed: str = ""
    tokens: tuple[TokenProbability, ...] = ()


class Retry(Struct, frozen=True, kw_only=True, tag="retry"):
    """Attempt number `attempt` failed: discard what was shown of this reply. The next attempt starts in `seconds`."""

    fault: Fault
    attempt: int
    seconds: float


Piece = TextDelta | ReasoningDelta | CallStarted | CallDelta | Ended
"""What a wire's decoder reads from a stream."""

Delta = Piece | Reclassified | Retry
"""What an observer receives."""


def gather_reply(pieces: Iterable[Piece | Fault]) -> Reply | Fault:
    """The reply that the pieces add up to, equal to the reply sent whole; or the fault."""
    text: list[str] = []
    thought: list[str] = []
    calls: dict[int, CallStarted] = {}
    arguments: dict[int, list[str]] = {}
    for piece in pieces:
        match piece:
            case TextDelta(text=more):
                text.append(more)
            case ReasoningDelta(text=more):
                thought.append(more)
            case CallStarted(index=index):
                calls[index] = piece
            case CallDelta(index=index, arguments=more):
                arguments.setdefault(index, []).append(more)
            case Ended(finish=finish, usage=usage, sealed=sealed, tokens=tokens):
                return Reply(
                    text="".join(text),
                    reasoning="".join(thought),
                    calls=tuple(
                        RawCall(id=call.id, name=call.name, arguments="".join(arguments.get(index, ())))
                        for index, call in sorted(calls.items())
                    ),
                    finish=finish,
                    usage=usage,
                    sealed=sealed,
                    tokens=tokens,
                )
            case Fault():
                return piece
            case _:
                assert_never(piece)
    if not (text or thought or calls):
        return Fault(kind="malformed", detail="the streamed answer contains no part of a reply")
    return Fault(kind="interrupted", detail="the stream ended before the reply did")


def reply_pieces(reply: Reply) -> tuple[Piece, ...]:
    """A whole reply as pieces."""
    started = ((CallStarted(index=n, name=c.name, id=c.id), c.arguments) for n, c in enumerate(reply.calls))
    calls = tuple(
        piece
        for call, arguments in started
        for piece in (call, *((CallDelta(index=call.index, arguments=arguments),) if arguments else ()))
    )
    return (
        *((ReasoningDelta(text=reply.reasoning, sealed=reply.sealed),) if reply.reasoning or reply.sealed else ()),
        *((TextDelta(text=reply.text),) if reply.text else ()),
        *calls,
        Ended(finish=reply.finish, usage=reply.usage, sealed=reply.sealed, tokens=reply.tokens),
    )


def watched_deltas(split: "reasoning.Split", piece: Piece) -> tuple["reasoning.Split", tuple[Delta, ...]]:
    """The deltas of a piece, with reasoning between tags separated from text. Begin with `Split()`."""
    match piece:
        case TextDelta(text=text):
            after, found = reasoning.advance_split(split, text)
            return after, tuple(delta for each in found for delta in _told(each))
        case Ended():
            return split, (*(delta for each in reasoning.finish_split(split) for delta in _told(each)), piece)
        case ReasoningDelta(text=""):
            return split, ()
        case ReasoningDelta() | CallStarted() | CallDelta():
            return split, (piece,)
        case _:
            assert_never(piece)


def _told(found: "reasoning.SplitDelta") -> Iterable[Delta]:
    if found.to_reasoning or found.to_text:
        yield Reclassified(to_reasoning=found.to_reasoning, to_text=found.to_text)
    if found.reasoning:
        yield ReasoningDelta(text=found.reasoning)
    if found.text:
        yield TextDelta(text=found.text)


# Faults in an answer: errors that a server reports under status 200 or in a stream.

BODY_KEPT = 2000
"""Maximum bytes of a body kept in a fault."""

CALLS_LIMIT = 256
"""Maximum number of calls read from one reply, whole or streamed."""

_OBJECTS_LIMIT = 100_000
"""Maximum number of opening braces and brackets in an answer, or in a line of a stream.

The three bytes `{},` take a hundred when decoded. Log-probabilities of thousands of tokens stay below the limit, and so
does any reply with code in it.
"""

_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The status of each error type: https://platform.claude.com/docs/en/api/errors."""


class _Error(Struct):
    message: str | None = None
    type: str | None = None
    code: int | str | None = None


_object = msgspec.json.Decoder(_Error)
_text = msgspec.json.Decoder(str)


def cut_body(body: bytes) -> str:
    """The beginning of a body, as text."""
    return body[:BODY_KEPT].decode(errors="replace")


def too_many_objects(body: bytes) -> Fault | None:
    """The fault for JSON with too many objects; None if there are not."""
    if len(body) <= _OBJECTS_LIMIT or body.count(b"{") + body.count(b"[") <= _OBJECTS_LIMIT:
        return None
    return Fault(kind="too_large", detail=f"the server's answer has more than {_OBJECTS_LIMIT} JSON objects and arrays")


def too_many_calls_fault() -> Fault:
    """The fault for a reply with too many calls."""
    return Fault(kind="too_large", detail=f"the reply has more than {CALLS_LIMIT} tool calls")


def reported_fault(error: Raw) -> Fault:
    """The fault for a server's error: an object with message, type and code, or plain text.

    `status` is the error's code, or the status of its type; None if it has neither.
    """
    raw = bytes(error)
    try:
        said = _Error(message=decode(_text, raw)) if raw.startswith(b'"') else decode(_object, raw)
    except msgspec.DecodeError:
        said = _Error(message=cut_body(raw))
    status = said.code if isinstance(said.code, int) and 400 <= said.code < 600 else _STATUS.get(said.type or "")
    words = ": ".join(filter(None, (said.type, (said.message or "")[:300]))) or "no reason"
    return Fault(kind="reported", detail=f"the server reports an error: {words}", status=status, body=cut_body(raw))


# Lines of a stream of bytes, however the network splits it; and the payloads of server-sent events.


class Lines(Struct, frozen=True, kw_only=True):
    """The state of splitting a stream into lines. Begin with `Lines()`; lines end in LF, CR or CRLF."""

    held: tuple[bytes, ...] = ()
    """The beginning of the next line, in a few parts."""
    returned: bool = False
    """Whether the last byte was a CR: a following LF belongs to it."""

    @property
    def size(self) -> int:
        """Bytes of the line that has begun."""
        return sum(map(len, self.held))

    def advance(self, chunk: bytes) -> tuple[Self, tuple[bytes, ...]]:
        """The state after the next bytes, and the completed lines without their terminators."""
        if self.returned and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        lines = chunk.splitlines()
        rest = b"" if chunk.endswith((b"\n", b"\r")) or not lines else lines.pop()
        kept = type(self)(held=appended(() if lines else self.held, rest), returned=chunk.endswith(b"\r"))
        if not lines:
            return kept, ()
        return kept, (b"".join((*self.held, lines[0])), *lines[1:])

    def finish(self) -> tuple[bytes, ...]:
        """The last line, if it has no terminator."""
        return (b"".join(self.held),) if self.held else ()


def appended(parts: tuple[bytes, ...], more: bytes) -> tuple[bytes, ...]:
    """The parts with more at the end. They stay few, each longer than the next, so appending is O(n log n) overall."""
    if not more:
        return parts
    length, start = len(more), len(parts)
    while start and len(parts[start - 1]) <= length:
        start -= 1
        length += len(parts[start])
    return (*parts[:start], b"".join((*parts[start:], more)))


def payloads(lines: Iterable[bytes]) -> tuple[bytes, ...]:
    """The JSON in lines of server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).

    These protocols write one JSON value per line, so each `data:` line counts as an event: some servers omit the blank
    line between events. Before September 2025, llama.cpp reported errors in a field named `error:`.
    """
    found = []
    for line in lines:
        if line.startswith(b"data:"):
            found.append(line[5:].strip())
        elif line.startswith(b"error:"):
            found.append(b'{"error":' + line[6:] + b"}")
    return tuple(filter(None, found))


# Overflow: a server's error about a prompt that is too long for its model.


class Overflow(Struct, frozen=True, kw_only=True):
    """The tokens of the prompt, and the maximum for prompt and reply together; 0 if unknown.

    `at_least`: `tokens` is a lower bound, because vLLM stops counting at its maximum.
    """

    tokens: int = 0
    maximum: int = 0
    at_least: bool = False


class ErrorTold(Struct, frozen=True):
    """An error's body, decoded; `n_prompt_tokens` and `n_ctx` are llama.cpp's."""

    message: str = ""
    type: str | None = None
    code: str | int | None = None
    n_prompt_tokens: int = 0
    n_ctx: int = 0


class _Body(Struct):
    error: Raw = Raw(b"null")
    message: str = ""


_body = msgspec.json.Decoder(_Body)
_error = msgspec.json.Decoder(ErrorTold)

_CODES = frozenset({"exceed_context_size_error", "context_length_exceeded"})
"""The codes of llama.cpp and OpenAI."""

_WORDS = re.compile(r"exceed[^.]{0,40}context|context length|prompt is too long|maximum context", re.IGNORECASE)
"""The wordings of Anthropic, Ollama, vLLM, LM Studio and older servers."""

_NUMBERS = re.compile(r"\d{3,9}")
_OF_PROMPT = re.compile(
    r"(\d{3,9})(?: tokens)? (?:in|from) (?:the|your) (?:messages|prompt|input)|(\d{3,9}) input tokens"
)
"""The prompt's share in a sum of prompt and reply."""

_MAXIMUM = re.compile(r"maximum context length is (\d{3,9})")
_AT_LEAST = re.compile(r"at least \d{3,9}(?: input)? tokens")

_STATUSES = frozenset({400, 413, 500})


def overflow_of(fault: Fault) -> Overflow | None:
    """The overflow that the fault reports; None for other faults."""
    if fault.status not in _STATUSES:
        return None
    said = error_told(fault.body)
    if not (said.type in _CODES or said.code in _CODES or _WORDS.search(said.message)):
        return None
    tokens, maximum = _numbers(said.message)
    bound = not said.n_prompt_tokens and _AT_LEAST.search(said.message) is not None
    return Overflow(tokens=said.n_prompt_tokens or tokens, maximum=said.n_ctx or maximum, at_least=bound)


def error_told(body: str) -> ErrorTold:
    """The error in a body: an object, plain text, or the body itself; with an empty message if there is none."""
    try:
        found = decode(_body, body)
        raw = bytes(found.error)
        if raw.startswith(b"{"):
            return decode(_error, raw)
        if raw.startswith(b'"'):
            return ErrorTold(message=decode(_text, raw))
        return decode(_error, body)
    except msgspec.DecodeError:
        return ErrorTold()


def _numbers(message: str) -> tuple[int, int]:
    """Prompt and maximum from a sentence: the largest number was requested, the first other number is the limit."""
    numbers = [int(number) for number in _NUMBERS.findall(message)[:8]]
    tokens = max(numbers, default=0)
    named = _MAXIMUM.search(message)
    maximum = int(named[1]) if named else next((number for number in numbers if number != tokens), 0)
    part = _OF_PROMPT.search(message)
    return (int(part[1] or part[2]) if part else tokens), maximum


# Sampling: the options of one request, the same for every backend; each wire writes them under its own names.

DEFAULT_MAX_TOKENS = 1024
"""Default maximum tokens of a reply: without a limit, a small model may never stop."""

_WRITTEN = frozenset({"model", "messages", "tools", "stream", "stream_options", "system", "response_format", "format"})
"""Fields of a request that forge sets itself."""


_Temperature: TypeAlias = Annotated[float, Meta(ge=0, le=100)]
_Share: TypeAlias = Annotated[float, Meta(gt=0, le=1)]
_Candidates: TypeAlias = Annotated[int, Meta(ge=-1)]
"""0 or -1 means all candidates, depending on the server."""
_Factor: TypeAlias = Annotated[float, Meta(gt=0, le=100)]
_Penalty: TypeAlias = Annotated[float, Meta(ge=-2, le=2)]


class Sampling(Options, frozen=True, kw_only=True):
    """Options of one request. The server chooses unset ones, except `max_tokens` (see `limit`).

    `extra` are further fields of the request, sent unchanged (`chat_template_kwargs`, `thinking`, `id_slot` …).
    ValueError for a field that forge sets itself, and for a value that no server accepts.
    """

    temperature: _Temperature | UnsetType = UNSET
    top_p: _Share | UnsetType = UNSET
    top_k: _Candidates | UnsetType = UNSET
    min_p: Fraction | UnsetType = UNSET
    repeat_penalty: _Factor | UnsetType = UNSET
    presence_penalty: _Penalty | UnsetType = UNSET
    frequency_penalty: _Penalty | UnsetType = UNSET
    seed: int | UnsetType = UNSET
    stop: tuple[str, ...] | UnsetType = UNSET
    max_tokens: Tokens | UnsetType = UNSET
    extra: Mapping[str, object] = {}

    def __post_init__(self) -> None:
        """Refuse fields that forge sets itself, and values out of range."""
        super().__post_init__()
        if self.stop is not UNSET and "" in self.stop:
            raise OptionError(("Sampling: stop holds an empty text, which stops every reply; leave it out",))
        if taken := _WRITTEN & self.extra.keys():
            raise ValueError(f"sampling.extra has {min(taken)!r}, which forge sets itself; leave it out")

    @property
    def limit(self) -> int:
        """Maximum tokens of a reply: always sent, and kept free in the context."""
        return DEFAULT_MAX_TOKENS if self.max_tokens is UNSET else self.max_tokens

    def over(self, base: Self) -> Self:
        """These options, with unset ones taken from `base`; `extra` is merged by key."""
        given = {name: value for name, value in asdict(self).items() if value is not UNSET}
        return replace(base, **{**given, "extra": {**base.extra, **self.extra}})


def options(sampling: Sampling, names: Mapping[str, str]) -> dict[str, object]:
    """The options that are set, under the backend's names, without `extra`.

    ValueError for an option that the backend does not have, which has an empty name there.
    """
    given = {**asdict(sampling), "max_tokens": sampling.limit}
    del given["extra"]
    given = {name: value for name, value in given.items() if value is not UNSET}
    if foreign := [name for name in given if names.get(name) == ""]:
        raise ValueError(f"it has no {', '.join(foreign)}; leave it out of the sampling options")
    return {names.get(name, name): value for name, value in given.items()}


# Streaming: what the wires' incremental decoders share. Bytes in, pieces of a reply out.

StreamRead = tuple[Piece | Fault, ...]
"""What a decoder read. After `Ended` or a Fault, ignore the rest."""


class Decoder(Protocol):
    """The state of reading one reply's stream, as a value."""

    def advance(self, chunk: bytes) -> tuple["Decoder", StreamRead]:
        """The decoder after the next bytes, and what they add."""
        ...

    def finish(self) -> StreamRead:
        """What the end of the stream adds; empty if it ended too early."""
        ...


LINE_LIMIT = 16 * 1024 * 1024
"""Maximum bytes of one line of a stream: a server may send the whole reply in one."""


class _Reader(Protocol):
    """A decoder that reads payloads one by one."""

    @property
    def lines(self) -> Lines:
        """The stream split into lines so far."""
        ...

    def read(self, payload: bytes) -> tuple[Self, StreamRead]:
        """The decoder after the next payload, and what it adds."""
        ...


_R = TypeVar("_R", bound=_Reader)


def read_all(reader: _R, payloads: Iterable[bytes]) -> tuple[_R, StreamRead]:
    """The reader after these payloads, and what they add; last, the fault for an overlong line."""
    pieces: list[Piece | Fault] = []
    for payload in payloads:
        if (fault := too_many_objects(payload)) is not None:
            return reader, (*pieces, fault)
        reader, added = reader.read(payload)
        pieces += added
    if reader.lines.size > LINE_LIMIT:
        pieces.append(Fault(kind="too_large", detail=f"a line of the stream has more than {LINE_LIMIT} bytes"))
    return reader, tuple(pieces)
