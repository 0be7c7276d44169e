"""One guarded turn: what is made of a reply to a client's request, and what the model is asked instead. Pure.

The client has asked already: its request is the turn's first `Send`. Where the backend speaks the client's protocol,
it is sent as it came, and a retry adds messages to it; for any other it is written anew from forge's nouns.
"""

from msgspec import Struct
from msgspec.structs import replace
from returns.result import Failure, Success

from forge.connection import Setup
from forge.proxy.replies import last_reply, with_calls, without_refused
from forge.proxy.tools import Guard
from forge.proxy.writing import writing
from stages import Stage, fold, on, pipeline, send
from stages.deliver import deliver
from stages.effect import Execute, Fault, Replied, Reply, Request, Send
from stages.message import History, Tool, ToolCall, is_nudge
from stages.pipeline import advance
from stages.rules import Rules, needed_tools, pending
from stages.state import Awaiting, Done, Folded, Ledger, Prepared, Ready, State
from stages.wire.deltas import overflow_of
from stages.wire.served import ServerRequest, as_sent
from stages.wire.wires import wire

_NEW = Ledger()

_UNBOUND = send(Rules(tools=(), on_text="accept"))
"""Rules of order may leave no tool to call; there is still the answer in words."""


class Accepted(Struct, frozen=True):
    """The reply that the client gets. `clean`: as the model gave it; otherwise with calls found or repaired."""

    reply: Reply
    clean: bool
    rescued: tuple[str, ...] = ()
    """The calls that were found in the text or repaired: each one's name, and what it took."""


class Again(Struct, frozen=True, kw_only=True):
    """What the model is asked next, with what is wrong in its history. `refused`: the calls, or `a text`.

    `turn` is what goes on with the reply. `last` is what the client gets if there is none; None before the first.
    `constrained`: the request was written from forge's nouns, whatever the client's protocol.
    """

    turn: "Turn"
    state: State
    request: Request
    last: Reply | None = None
    refused: tuple[str, ...] = ()
    constrained: bool = False


class Exhausted(Struct, frozen=True):
    """Every attempt failed: what the client gets of the last."""

    reply: Reply


Step = Accepted | Again | Exhausted


class Turn(Struct, frozen=True, kw_only=True):
    """What a turn goes by. `given` is what the client asks for, `request` what the backend is asked.

    `same`: the client's own body is sent, and retries add to it; if not, each request is written for the backend's own
    protocol and the `model`. `constrains`: retries are held to calls where words are no answer.
    """

    given: ServerRequest
    request: ServerRequest
    guard: Guard
    setup: Setup
    model: str
    same: bool
    constrains: bool


def _asking(turn: Turn) -> Stage:
    """What writes a request of the turn."""
    if not turn.same:
        return _written(turn, turn.guard.rules, turn.setup)

    @on(Folded)
    def write(state: State, _: Folded) -> State:
        sent = as_sent(turn.request)
        added = wire(turn.setup.dialect).messages(state.history[len(turn.request.history) :])
        return state.to(Prepared(request=replace(sent, messages=sent.messages + added)))

    return pipeline(fold(), write, _UNBOUND)


def _constraining(turn: Turn, state: State) -> Stage | None:
    """What writes a retry anew in the mode constrained, where words are no answer; None where it is not to be.

    So is the first request where tools are in the prompt already.

    While steps are pending, the model can call nothing but what they need: one that has skipped a step skips it again
    whatever it is told. Where the client demands a call, it can make no more than a call: servers take the demand and
    do not enforce it. The reply is text, so calls must be looked for there; what has no noun would be lost.
    """
    guard, request, setup = turn.guard, turn.request, turn.setup
    if not (turn.constrains and guard.rules.calls.rescue_enabled):
        return None
    if any(foreign.fate != "dropped" for foreign in request.foreign):
        return None
    if setup.mode == "native" and len(state.history) == len(request.history):
        return None
    left = pending(guard.rules, state.ledger)
    needed = needed_tools(guard.applied.rules, left).intersection(tool.name for tool in guard.rules.tools)
    if not needed and request.choice.mode != "required":
        return None
    rules = guard.applied.among(needed) if needed else guard.rules
    return _written(turn, rules, replace(setup, mode="constrained"))


def _written(turn: Turn, rules: Rules, setup: Setup) -> Stage:
    return pipeline(*writing(turn.request, rules, setup, turn.model), _UNBOUND)


def opening(request: ServerRequest, max_retries: int, *, asked: bool, ledger: Ledger = _NEW) -> State:
    """The state in which a turn of the session begins. `asked`: the client's own body is the first request."""
    budget = replace(ledger.budget, calls=max_retries + (0 if asked else 1))
    ledger = replace(ledger, budget=budget, turn=ledger.turn + asked)
    phase = Awaiting(effect=Send(request=Request(), turn=ledger.turn)) if asked else Ready()
    return State(history=request.history, ledger=ledger, phase=phase)


def ask(turn: Turn, state: State) -> Again | None:
    """What the model is asked; None where the turn's attempts are used up."""
    constraining = _constraining(turn, state)
    match advance(constraining or _asking(turn), state):
        case Success(State(phase=Awaiting(effect=Send(request=request))) as asked):
            return Again(turn=turn, state=asked, request=request, constrained=constraining is not None)
        case _:
            return None


def judged(asked: Again, reply: Reply) -> Step:
    """What is made of the reply to what was asked."""
    turn, state = asked.turn, asked.state
    match deliver(state, Replied(reply=reply)).bind(lambda answered: advance(turn.guard.judging, answered)):
        case Success(State(phase=Awaiting(effect=Execute(calls=calls), batch=batch))):
            clean = _as_given(reply, calls)
            if clean:
                return Accepted(reply, clean)
            return Accepted(with_calls(reply, calls, batch.said.text), clean, _rescued(calls))
        case Success(State(phase=Done())):
            # Where a call was asked about and was not meant, the first reply is the answer.
            first = asked.last if state.ledger.asked_about is not None else None
            answer = first or reply
            answer = without_refused(turn.guard, state, answer) or answer
            return Accepted(answer, clean=answer is reply)
        case Success(State(phase=Ready()) as corrected):
            again, last = ask(turn, corrected), last_reply(turn.given, turn.guard, state, reply)
            if again is None:
                return Exhausted(last)
            return replace(again, last=last, refused=_refused(corrected.history[len(state.history) :]))
        case Failure():
            return Exhausted(last_reply(turn.given, turn.guard, state, reply))
        case moved:
            raise TypeError(f"a turn ended in {moved}")


def unanswered(asked: Again, fault: Fault) -> Again | Exhausted | None:
    """What follows where the backend has refused what was asked; None where its error is the client's concern.

    A prompt that only corrections have made too long ends the turn. The schema of a constrained retry, which no client
    has asked for, may not be taken: from then on the turn has none.
    """
    if overflow_of(fault):
        return Exhausted(asked.last) if asked.last else None
    refused = 400 <= (fault.status or 0) < 500 and fault.status not in (408, 429)  # those say: later
    if not (refused and asked.constrained):
        return None
    plain = replace(asked.turn, constrains=False)
    again = ask(plain, asked.state.reshape(asked.state.history).to(Ready()))
    if again:
        return replace(again, last=asked.last)
    return Exhausted(asked.last) if asked.last else None


def _as_given(reply: Reply, calls: tuple[ToolCall, ...]) -> bool:
    """Whether these are the reply's own calls, as it has them; ids are the answer's concern.

    Agents run no call of a reply that says that it was cut off, so where all calls are whole it must not say so.
    """
    own = len(calls) == len(reply.calls) and all(call.origin == "native" and not call.repairs for call in calls)
    return own and reply.finish != "length"


def _rescued(calls: tuple[ToolCall, ...]) -> tuple[str, ...]:
    notes = ((call.name, *([] if call.origin == "native" else [call.origin]), *call.repairs) for call in calls)
    return tuple(f"{name} ({', '.join(how)})" for name, *how in notes if how)


def _refused(added: History) -> tuple[str, ...]:
    nudges = filter(is_nudge, added)
    return tuple(dict.fromkeys(nudge.name if isinstance(nudge, Tool) else "a text" for nudge in nudges))
