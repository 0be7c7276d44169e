"""The probe of streaming: do pieces come, does a call come in pieces, is its usage said."""

from collections.abc import Iterator

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from forge.backends.doctor.chat import TOOLS, question
from forge.backends.doctor.facts import Answer, Facts, Finding, Probe, Question, decoded, shown, told


class _Function(Struct):
    name: str | None = None
    arguments: msgspec.Raw = msgspec.Raw(b"null")


class _Call(Struct):
    function: _Function | None = None


class _Delta(Struct):
    content: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(Struct):
    delta: _Delta = msgspec.field(default_factory=_Delta)


class _Usage(Struct):
    prompt_tokens: int = 0


class _Event(Struct):
    """A piece of a stream: chat completions have `choices`, Ollama a `message`, both their usage at the end."""

    choices: list[_Choice] = []
    message: _Delta | None = None
    usage: _Usage | None = None
    prompt_eval_count: int = 0
    error: msgspec.Raw | None = None


class Stream(Struct, frozen=True, kw_only=True):
    """What a stream had in it, in pieces; `ended` says that it came to its proper end."""

    texts: int = 0
    argument_pieces: int = 0
    names: int = 0
    usage: bool = False
    ended: bool = False
    error: str = ""


def read_stream(body: bytes) -> Stream:
    """What the lines of a stream hold; lines that are no event are passed over."""
    deltas = Stream()
    for line in body.splitlines():
        data = line.removeprefix(b"data:").strip()
        if data == b"[DONE]":
            deltas = replace(deltas, ended=True)
        elif (event := decoded(data, _Event)) is not None:
            deltas = _with(deltas, event)
    return deltas


def _with(stream: Stream, event: _Event) -> Stream:
    pieces = tuple(_pieces(event))
    calls = [call.function for piece in pieces for call in piece.tool_calls or () if call.function]
    return Stream(
        texts=stream.texts + sum(bool(piece.content) for piece in pieces),
        argument_pieces=stream.argument_pieces + sum(bytes(f.arguments) not in {b"null", b'""'} for f in calls),
        names=stream.names + sum(bool(f.name) for f in calls),
        usage=stream.usage or bool(event.usage and event.usage.prompt_tokens) or event.prompt_eval_count > 0,
        ended=stream.ended or event.prompt_eval_count > 0,
        error=shown(bytes(event.error).decode(errors="replace")) if event.error else stream.error,
    )


def _pieces(event: _Event) -> Iterator[_Delta]:
    yield from (choice.delta for choice in event.choices)
    if event.message:
        yield event.message


def _ask_stream(facts: Facts) -> Question | str:
    tools = TOOLS if facts.calls in {"native", "text"} else ()
    fields: dict[str, object] = {"stream": True}
    if facts.kind != "ollama":
        fields["stream_options"] = {"include_usage": True}
    return question(facts, tools=tools, tokens=64, fields=fields)


def _read_stream(facts: Facts, answer: Answer) -> tuple[Facts, Finding]:
    topic = "stream"
    found = read_stream(answer.body) if answer.good else Stream()
    if not (found.texts or found.names or found.argument_pieces):
        came = (
            told(answer)
            if not answer.good
            else found.error or f"nothing readable: {shown(answer.body.decode(errors='replace'), 60)!r}"
        )
        means, does = "streams cannot be read from it", "asks for whole replies where nobody watches"
        return replace(facts, streams=False), Finding(topic=topic, verdict="no", came=came, means=means, does=does)
    several = found.argument_pieces > 1
    known = replace(facts, streams=True, stream_usage=found.usage)
    if found.names:
        known = replace(known, stream_arguments=several)
    return known, _streamed(found, several=several)


def _streamed(found: Stream, *, several: bool) -> Finding:
    text = f"{found.texts} pieces of text" if found.texts else ""
    call = f"a call in {found.argument_pieces} pieces" if found.names else ""
    usage = "usage at the end" if found.usage else "no usage"
    end = "" if found.ended else "no proper end"
    whole = "calls come whole, not in pieces" if found.names and not several else ""
    cut = "" if found.ended else "a broken stream cannot be told from a whole one"
    return Finding(
        topic="stream",
        verdict="yes" if found.ended else "unclear",
        came=", ".join(filter(None, (text, call, usage, end))),
        means="; ".join(filter(None, (whole, cut))),
    )


STREAM = Probe(topic="stream", asks="the weather, streamed, 64 tokens", ask=_ask_stream, read=_read_stream, tokens=64)
