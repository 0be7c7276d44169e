"""A streamed reply: shown as far as it may be while it comes, judged when it is whole, asked for again unseen."""

from contextlib import aclosing

from msgspec import Struct
from msgspec.structs import replace

from forge.proxy.admission import Admission, calls, is_said, shown_text
from forge.proxy.asgi import Outlet
from forge.proxy.errors import nothing_usable, passed_on_too_early, refusal_answer, request_error
from forge.proxy.exchange import Exchange
from forge.proxy.passage import RequestOutcome
from forge.proxy.relay import Relay
from forge.proxy.second_try import after_refusal
from forge.proxy.turn import Accepted, Again, Exhausted, Step
from forge.proxy.upstream import Heard, Post, Refusal
from stages.effect import Fault, Reply
from stages.wire.deltas import Ended, Piece, gather_reply, reply_pieces
from stages.wire.served import RequestError


class _Answer(Struct, frozen=True):
    """A reply, and its events that are held."""

    reply: Reply
    held: tuple[Heard, ...]


class Stream:
    """One exchange as a stream to the client."""

    def __init__(self, exchange: Exchange, out: Outlet) -> None:
        self._exchange, self._out = exchange, out
        self.relay = Relay(exchange, out)
        self._text = ""
        self._thought = self._called = False
        self._early = exchange.policy.early_arguments and not exchange.shaped.responds

    async def run(self) -> None:
        """Ask until there is a reply, show it, end the stream."""
        post, attempts, answered = self._exchange.first, 0, 0
        notes = self._out.notes
        notes.compacted, notes.left_out = self._exchange.shaped.compacted, self._exchange.left_out
        asked = self._exchange.guarded.first if self._exchange.guarded else None
        while True:
            attempts += 1
            notes.attempts = attempts
            got = await self._attempt(post, first=attempts == 1)
            if isinstance(got, Refusal):
                if attempts == 1 and not (self._text or self._called):
                    got = await self._exchange.sized(got)
                    if again := after_refusal(self._exchange, got):
                        self._exchange = again
                        return await self.run()
                step: Step | None = self._exchange.unanswered(asked, got)
            else:
                answered = attempts
                notes.usage = got.reply.usage or notes.usage
                step = self._exchange.judged(asked, got.reply)
                if step and self._called and not _as_shown(got.reply, step):
                    return await self._give_up(passed_on_too_early(), "refused")
            if not isinstance(step, Again):
                return await self._show_end(got, step, answered)
            notes.refused += step.refused
            asked, post = step, self._exchange.post(step)

    async def _show_end(self, got: _Answer | Refusal, step: Accepted | Exhausted | None, answered: int) -> None:
        """Show what is left of the reply, which is that of the attempt `answered`, and end the stream."""
        match step:
            case Exhausted(reply=reply):
                if reply.text.strip() or reply.calls or self._text:
                    await self._tell(reply, answered)
                    await self._end("exhausted")
                else:
                    await self._give_up(nothing_usable(self._out.notes.attempts))
            case Accepted(reply=reply, clean=clean, rescued=rescued):
                self._out.notes.rescued = rescued
                if not isinstance(got, Refusal) and (self._called or (clean and answered == 1)):
                    await self.relay.show(got.held)
                    await self._end("clean")
                else:
                    await self._tell(reply, answered)
                    await self._end("retried" if answered > 1 else "repaired")
            case None if isinstance(got, Refusal):
                await self._refuse(self._exchange.told(got))
            case None:
                await self._end("passed")

    async def _attempt(self, post: Post, *, first: bool) -> _Answer | Refusal:
        """The whole reply, and those of its events that were not shown; of a retry, none is."""
        guarded = self._exchange.guarded
        admission = guarded.admission(early=self._early) if guarded else Admission(None)
        pieces: list[Piece | Fault] = []
        keeps = guarded is not None
        async with aclosing(self._exchange.upstream.stream(post)) as events:
            async for heard in events:
                if isinstance(heard, Refusal):
                    return heard
                fault = next((piece for piece in heard.pieces if isinstance(piece, Fault)), None)
                if fault is not None and not _is_ended(pieces):
                    return Refusal(fault)
                pieces += heard.pieces
                if not keeps:
                    del pieces[:-3]  # of a reply that is not judged it matters how it ends
                if not first:
                    continue
                admission, shown = admission.advance(heard)
                await self.relay.show(shown)
                if keeps and shown:
                    self._text += shown_text(shown)
                    self._thought = self._thought or any(map(is_said, shown))
                    self._called = self._called or any(map(calls, shown))
        reply = gather_reply(pieces)
        return Refusal(reply) if isinstance(reply, Fault) else _Answer(reply, admission.held)

    async def _tell(self, reply: Reply, attempt: int) -> None:
        """Show a reply of which some may have been shown, of this attempt or of an earlier one."""
        text = reply.text
        if self._text:
            rest = text[len(self._text) :] if text.startswith(self._text) else ("" if reply.calls else f"\n\n{text}")
            text = rest if text.strip() else ""
        if self._thought and (attempt == 1 or not reply.sealed):
            # Of a retry's reasoning only what its server wants back with the calls goes to the client.
            reply = replace(reply, reasoning="", sealed="")
        await self.relay.say(reply_pieces(replace(reply, text=text)))

    async def _give_up(self, error: RequestError, outcome: RequestOutcome = "exhausted") -> None:
        self._out.notes.outcome = outcome
        if self._out.begun:
            await self.relay.fail(error)
        else:
            await self._out.answer(self._exchange.wire.encode_error(error))

    async def _refuse(self, refusal: Refusal) -> None:
        self._out.notes.outcome = "error"
        self._out.notes.compacted = ""
        if self._out.begun:
            await self.relay.fail(request_error(refusal))
        else:
            await self._out.answer(refusal_answer(self._exchange.wire, refusal, same=self._exchange.same))

    async def _end(self, outcome: RequestOutcome) -> None:
        self._out.notes.outcome = outcome
        await self._out.end()


def _as_shown(reply: Reply, step: Step) -> bool:
    """Whether the calls go on as they came; that a limit of tokens was reached after them is in the stream."""
    if not isinstance(step, Accepted) or step.rescued or len(step.reply.calls) != len(reply.calls):
        return False
    return step.clean or reply.finish == "length"


def _is_ended(pieces: list[Piece | Fault]) -> bool:
    return any(isinstance(piece, Ended) for piece in pieces[-3:])
