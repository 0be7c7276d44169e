"""Passing a server's own chat completions on to a client: which chunks and answers clients take as they are.

Clients stop, repeat themselves or lose a call over a chunk without its id, object, index or type, over a stream whose
first chunk has no role or that ends without a reason, and over a call that has no id, or one that was used. From the
first chunk on that would do that, forge writes the stream, under the same id.
"""

from typing import Literal, Self, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stages.wire.answers import CallIds, Envelope
from stages.wire.lines import payloads
from stages.wire.openai.chat_events import ChatEvents, resumed_events


class _Function(Struct):
    name: str | None = None
    arguments: str | None = None


class _Call(Struct):
    index: int
    id: str | None = None
    type: str | None = None
    function: _Function | None = None


class _Delta(Struct):
    role: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(Struct):
    index: int
    delta: _Delta
    finish_reason: str | None = None


class _Chunk(Struct):
    """A chunk; of one that holds no choice clients ask for nothing else."""

    choices: list[_Choice]
    id: str = ""
    object: str = ""
    created: int | None = None
    model: str | None = None
    usage: dict[str, msgspec.Raw] | None = None

    @property
    def framed(self) -> bool:
        """Whether there is all around the choices that clients ask for."""
        whole = self.id and self.object == "chat.completion.chunk"
        return not self.choices or bool(whole and self.created is not None and self.model is not None)


class _WholeFunction(Struct):
    name: str
    arguments: str


class _WholeCall(Struct):
    id: str
    type: str
    function: _WholeFunction | None = None


class _Message(Struct):
    role: str
    tool_calls: list[_WholeCall] | None = None


class _WholeChoice(Struct):
    index: int
    message: _Message
    finish_reason: Literal["stop", "length", "tool_calls", "content_filter", "function_call"]


class _Completion(Struct):
    """A whole answer with all that clients ask for."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[_WholeChoice]


_chunk = msgspec.json.Decoder(_Chunk)
_completion = msgspec.json.Decoder(_Completion)


class PassedChat(Struct, frozen=True, kw_only=True):
    """What of a server's stream has been passed on. Make it with `passed_chat`."""

    envelope: Envelope
    ids: CallIds
    named: bool = False
    begun: bool = False
    """Whether the role was said."""
    calls: tuple[str, ...] = ()
    """The ids of the calls that have begun."""
    over: bool = False
    """Whether the reason was said for which the reply ends; clients do without what follows."""
    counted: bool = False

    def advance(self, event: bytes) -> tuple[Self, bool]:
        """After the server's next event; whether clients take it as it is. If not, it is as if it had not come."""
        found = payloads(event.splitlines())
        if not found:
            return self, True  # a comment
        if len(found) > 1:
            return self, False
        if found[0] == b"[DONE]":
            return self, self.over
        try:
            chunk = _chunk.decode(found[0])
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return self, False
        after = _after(_named(self, chunk), chunk)
        return (self, False) if after is None else (after, True)

    def takes(self, answer: bytes) -> bool:
        """Whether clients take a whole answer as it is."""
        try:
            said = _completion.decode(answer).choices[0].message
        except (msgspec.DecodeError, UnicodeError, RecursionError, IndexError):
            return False
        return self.ids.are_new(tuple(call.id for call in said.tool_calls or ()))

    def go_on(self) -> ChatEvents:
        """What writes the rest of the stream."""
        return resumed_events(self.envelope, self.ids, begun=self.begun, calls=self.calls, counted=self.counted)


def passed_chat(envelope: Envelope) -> PassedChat:
    """A stream of which nothing has been passed on."""
    return PassedChat(envelope=envelope, ids=CallIds(envelope=envelope, prefix="call"))


_P = TypeVar("_P", bound=PassedChat)


def _named(passed: _P, chunk: _Chunk) -> _P:
    """With the answer's identity, as its first chunk has it."""
    if passed.named or not (chunk.id and chunk.framed):
        return passed
    envelope = replace(passed.envelope, id=chunk.id, model=chunk.model or "", created=chunk.created or 0)
    return replace(passed, envelope=envelope, ids=replace(passed.ids, envelope=envelope), named=True)


def _after(passed: _P, chunk: _Chunk) -> _P | None:
    """After the chunk; None where clients don't take it."""
    if not chunk.framed:
        return None
    if chunk.usage is not None:
        passed = replace(passed, counted=True)
    for choice in chunk.choices:
        if choice.index:
            continue
        # A role that is repeated is appended to the first by the official client.
        if bool(choice.delta.role) == passed.begun:
            return None
        passed = passed if passed.begun else replace(passed, begun=True)
        for call in choice.delta.tool_calls or ():
            grown = _called(passed, call)
            if grown is None:
                return None
            passed = grown
        if choice.finish_reason:
            passed = replace(passed, over=True)
    return passed


def _called(passed: _P, call: _Call) -> _P | None:
    function = call.function or _Function()
    if 0 <= call.index < len(passed.calls):
        # What is repeated of a call, clients append.
        return None if call.id or function.name else passed
    if call.index != len(passed.calls) or not (call.id and call.type and function.name):
        return None
    ids, given = passed.ids.of(call.id, call.index)
    return replace(passed, ids=ids, calls=(*passed.calls, given)) if given == call.id else None
