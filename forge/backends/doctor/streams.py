"""The probe of streaming: does it stream, do calls arrive in pieces, is the usage reported."""

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from forge.backends.doctor.chat_requests import TOOLS, question, spoken
from forge.backends.doctor.facts import Facts, Finding, Probe, Question, one_line, told
from forge.backends.questions import ServerAnswer
from stages.effect import Fault
from stages.wire.deltas import CallDelta, CallStarted, Ended, Piece, StreamRead, TextDelta


class Stream(Struct, frozen=True, kw_only=True):
    """What a stream had in it, in pieces; `ended` says that it came to its proper end."""

    texts: int = 0
    argument_pieces: int = 0
    names: int = 0
    usage: bool = False
    ended: bool = False
    error: str = ""


def examine_stream(facts: Facts, body: bytes) -> Stream:
    """What a stream holds, as a run would read it: by the protocol's decoder, up to the end or to what is wrong."""
    decoder, read = spoken(facts).stream.advance(body)
    pieces = [*_counting((*read, *decoder.finish()))]
    last, kinds = pieces[-1] if pieces else None, Counter(map(type, pieces))
    return Stream(
        texts=kinds[TextDelta],
        argument_pieces=kinds[CallDelta],
        names=kinds[CallStarted],
        usage=isinstance(last, Ended) and last.usage is not None and last.usage.prompt > 0,
        ended=isinstance(last, Ended),
        error=one_line(last.detail) if isinstance(last, Fault) else "",
    )


def _counting(pieces: StreamRead) -> Iterator[Piece | Fault]:
    for piece in pieces:
        yield piece
        if isinstance(piece, Ended | Fault):
            return


def _ask_stream(facts: Facts) -> Question | str:
    tools = TOOLS if facts.calls in {"native", "text"} else ()
    fields: dict[str, object] = {"stream": True}
    if facts.kind != "ollama":
        fields["stream_options"] = {"include_usage": True}
    return question(facts, tools=tools, tokens=64, fields=fields)


def _read_stream(facts: Facts, answer: ServerAnswer) -> tuple[Facts, Finding]:
    topic = "stream"
    found = examine_stream(facts, answer.body) if answer.good else Stream()
    if not (found.texts or found.names or found.argument_pieces):
        came = (
            told(answer)
            if not answer.good
            else found.error or f"nothing readable: {one_line(answer.body.decode(errors='replace'), 60)!r}"
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
