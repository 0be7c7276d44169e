"""Answering: one loop that asks the backend until the client has its answer, whole or streamed."""

from collections.abc import Iterable, Sequence
from contextlib import aclosing

from msgspec.structs import replace

from forge.observation import Notes, Observed, RequestOutcome
from forge.proxy.admission import is_said, shown_text
from forge.proxy.app import NotedOutlet
from forge.proxy.errors import nothing_usable, refusal_answer, request_error
from forge.proxy.exchange import Again, Exchange, after_refusal
from forge.proxy.turn import Accepted, Exhausted, judged, unanswered
from forge.proxy.upstream import Heard, Post, Refusal, Whole
from stages.effect import Fault, Replied, Reply, Undelivered
from stages.wire.deltas import Ended, Piece, ReasoningDelta, gather_reply, reply_pieces
from stages.wire.server.errors import RequestError, WireAnswer
from stages.wire.server.streams import Events


async def answer_client(exchange: Exchange, sink: "Sink", notes: Notes) -> None:
    """Ask until there is a reply, and send it to the client; `notes` record how it came about."""
    post, notes.attempts = exchange.first, 0
    notes.compacted, notes.left_out = exchange.shaped.compacted, exchange.left_out
    notes.too_long = exchange.shaped.too_long
    asked = exchange.asked
    while True:
        notes.attempts += 1
        with exchange.observed() as observed:
            post = replace(post, trace=observed.headers)
            got = await sink.ask(exchange, post, observed, first=notes.attempts == 1)
            observed.outcome = Undelivered(fault=got.fault) if isinstance(got, Refusal) else Replied(reply=got.reply)
        if isinstance(got, Refusal):
            if notes.attempts == 1 and not sink.text:
                got = await exchange.sized(got)
                if again := after_refusal(exchange, got):
                    await answer_client(again, sink, notes)
                    return
            step = unanswered(exchange, asked, got.fault) if asked else None
        else:
            notes.usage = got.reply.usage or notes.usage
            step = judged(exchange, asked, got.reply) if asked else None
        if not isinstance(step, Again):
            break
        notes.refused += step.refused
        asked, post = step, exchange.post(step)
    await _end(exchange, sink, notes, got, step)


async def _end(
    exchange: Exchange, sink: "Sink", notes: Notes, got: Whole | Refusal, step: Accepted | Exhausted | None
) -> None:
    """Send the client the result."""
    outcome: RequestOutcome = "passed"
    if isinstance(step, Exhausted):
        if not (step.reply.text.strip() or step.reply.calls or sink.text):
            notes.outcome, error = "exhausted", nothing_usable(notes.attempts)
            notes.problem = error.message
            await sink.fail(error, exchange.wire.encode_error(error))
            return
        await sink.tell(exchange, step.reply)
        outcome = "exhausted"
    elif isinstance(got, Refusal):
        notes.outcome, notes.compacted, told = "error", "", exchange.told(got)
        notes.problem = _logged(got.fault)
        await sink.fail(request_error(told), refusal_answer(exchange.wire, told, same=exchange.same))
        return
    elif step is None:
        await sink.pass_on(exchange, got)
    else:
        notes.rescued = step.rescued
        await (sink.pass_on(exchange, got) if step.clean else sink.tell(exchange, step.reply))
        outcome = "retried" if notes.attempts > 1 else "clean" if step.clean else "repaired"
    notes.outcome = outcome
    await sink.end()


def _logged(fault: Fault) -> str:
    """The fault for the log, without a server's own words, which may quote the conversation."""
    if fault.status is not None:
        return f"the backend answered {fault.status}"
    if not fault.body:
        return fault.detail
    return "the backend's answer cannot be read" if fault.kind == "malformed" else "the backend reported an error"


class WholeAnswer:
    """A whole answer, with headers that say how it came about."""

    text = ""

    def __init__(self, out: NotedOutlet) -> None:
        self._out, self._answer = out, WireAnswer(body=b"")

    async def ask(self, exchange: Exchange, post: Post, observed: Observed, *, first: bool) -> Whole | Refusal:  # noqa: ARG002 - as StreamedAnswer
        """The backend's reply."""
        return await exchange.model.upstream.whole(post)

    async def pass_on(self, exchange: Exchange, got: Whole) -> None:
        """Use the backend's bytes if they are in the client's protocol and complete."""
        bare = exchange.strips and bool(got.reply.reasoning)
        same = exchange.same and bool(got.raw) and not bare
        if same and (exchange.unmodelled or exchange.wire.events(exchange.envelope).takes(got.raw)):
            self._answer = WireAnswer(body=got.raw)
        else:
            await self.tell(exchange, got.reply)

    async def tell(self, exchange: Exchange, reply: Reply) -> None:
        """Write the reply in the client's protocol."""
        shown = replace(reply, reasoning="", sealed="") if exchange.strips else reply
        self._answer = WireAnswer(body=exchange.wire.encode_reply(shown, exchange.envelope))

    async def fail(self, error: RequestError, answer: WireAnswer) -> None:  # noqa: ARG002 - as StreamedAnswer
        """Send the answer with the error."""
        self._answer = answer
        await self.end()

    async def end(self) -> None:
        """Send the answer."""
        notes = self._out.notes
        told = (("x-forge-outcome", notes.outcome), ("x-forge-attempts", str(notes.attempts)))
        await self._out.answer(replace(self._answer, headers=(*self._answer.headers, *told)))


_PING = b": keep-alive\n\n"


class StreamedAnswer:
    """A streamed answer: shown early where possible, judged when complete, retried unseen.

    It begins with the backend's events if they are in the client's protocol. Once clients would not accept one, or
    forge has to write something itself, such as the reply to a retry, forge writes the rest under the same id.
    """

    def __init__(self, exchange: Exchange, out: NotedOutlet) -> None:
        self._out = out
        self.text = ""
        """The part of the answer that the client has seen."""
        self._thought = self._first = False
        self._held: list[Heard] = []
        """The events of the last reply that were not shown. `_first`: that reply is the first one."""
        # The backend's own events, to the end.
        self._as_it_is = exchange.same and exchange.unmodelled
        self._strips = exchange.strips
        self._events = exchange.wire.events(exchange.envelope)
        self._passing = exchange.same and not self._strips
        """Whether the backend's events are passed on; never again once forge has written one."""
        self._bytes = False
        """Whether bytes of the backend were sent."""
        self._cut = False
        """Whether they ended within an event; forge's own events must be separated from it."""

    async def ask(self, exchange: Exchange, post: Post, observed: Observed, *, first: bool) -> Whole | Refusal:
        """The backend's reply. Parts of the `first` one are shown before it is judged; nothing of a retry is.

        `observed` is notified when the stream begins.
        """
        judged, admission = exchange.asked is not None, exchange.admission()
        pieces: list[Piece | Fault] = []
        ended = False
        async with aclosing(exchange.model.upstream.stream(post)) as events:
            async for heard in events:
                if isinstance(heard, Refusal):
                    return heard
                fault = next((piece for piece in heard.pieces if isinstance(piece, Fault)), None)
                if fault is not None and not ended:
                    return Refusal(fault)
                ended = ended or any(isinstance(piece, Ended) for piece in heard.pieces)
                if heard.pieces and not pieces:
                    observed.first()
                pieces += heard.pieces
                if not first:
                    continue
                shown = admission.advance(heard)
                await self._show(shown)
                if judged and shown:
                    self.text += shown_text(shown)
                    self._thought = self._thought or any(map(is_said, shown))
        reply = gather_reply(pieces)
        if isinstance(reply, Fault):
            return Refusal(reply)
        self._held, self._first = admission.held, first
        return Whole(reply)

    async def pass_on(self, exchange: Exchange, got: Whole) -> None:
        """Show the held part of the first reply. A later reply is rewritten: its events belong to another message."""
        if self._first:
            await self._show(self._held)
        else:
            await self.tell(exchange, got.reply)

    async def tell(self, _: Exchange, reply: Reply) -> None:
        """Show the rest of a partly shown reply, or a reply after it."""
        text = reply.text
        if self.text:
            rest = text[len(self.text) :] if text.startswith(self.text) else ("" if reply.calls else f"\n\n{text}")
            text = rest if text.strip() else ""
        if self._thought and (self._first or not reply.sealed):
            # Of a retry's reasoning, the client gets only what the server wants back with the calls.
            reply = replace(reply, reasoning="", sealed="")
        await self._say(reply_pieces(replace(reply, text=text)))

    async def fail(self, error: RequestError, answer: WireAnswer) -> None:
        """End with the error, as an event, or as the answer if the stream has not begun."""
        if self._out.begun:
            await self._write(self._events.fail(error))
            await self._out.end()
        else:
            await self._out.answer(answer)

    async def end(self) -> None:
        """End the stream."""
        await self._out.end()

    async def ping(self) -> None:
        """Send a keep-alive event."""
        after, event = self._events.ping()
        if self._as_it_is:
            event = _PING
        elif after is not self._events:
            self._events, self._passing = after, False
        await self._write(event)

    async def _show(self, shown: Sequence[Heard]) -> None:
        """Send events: all unchanged, or all rewritten."""
        if not shown:
            return
        self._bytes = self._bytes or any(heard.raw for heard in shown)
        as_it_is = self._as_it_is and self._bytes
        passed = _passed_on(self._events, shown) if self._passing and not as_it_is else None
        if passed is None and not as_it_is:
            pieces = (piece for heard in shown for piece in heard.pieces if not isinstance(piece, Fault))
            await self._say(tuple(pieces))
            return
        self._events = passed or self._events
        raw = b"".join(heard.raw for heard in shown)
        self._cut = not raw.endswith((b"\n\n", b"\n\r\n"))
        await self._out.stream()
        await self._out.write(raw)

    async def _say(self, pieces: tuple[Piece, ...]) -> None:
        """Send pieces as events written by forge."""
        events, written = self._events, list[bytes]()
        told: Iterable[Piece] = filter(None, map(_without_reasoning, pieces)) if self._strips else pieces
        for piece in told:
            events, data = events.advance(piece)
            written.append(data)
        self._events, self._passing = events, False
        await self._write(b"".join(written))

    async def _write(self, own: bytes) -> None:
        """Send bytes written by forge."""
        await self._out.stream()
        if own:
            apart, self._cut = b"\n\n" * self._cut, False
            await self._out.write(apart + own)


def _passed_on(events: Events, shown: Sequence[Heard]) -> Events | None:
    """The state after these events; None if clients would not accept all of them unchanged."""
    for heard in shown:
        events, fits = events.pass_on(heard.raw)
        ended = any(isinstance(piece, Ended) for piece in heard.pieces)
        # Pieces without bytes come from a reply that was not streamed, or from the end of the stream.
        lacks = not events.over if ended else bool(heard.pieces) and not heard.raw
        if lacks or not fits:
            return None
    return events


def _without_reasoning(piece: Piece) -> Piece | None:
    if isinstance(piece, ReasoningDelta):
        return None
    return replace(piece, sealed="") if isinstance(piece, Ended) else piece


Sink = WholeAnswer | StreamedAnswer
"""Where an answer goes. `text` is the part that the client has already seen."""
