"""One guarded turn: what is made of a reply to a client's request, and what the model is asked instead. Pure.

The client has asked already: its request is the turn's first `Send`. Where the backend speaks the client's protocol,
it is sent as it came, and a retry adds messages to it; for any other it is written anew from forge's nouns.
"""

from collections.abc import Callable
from functools import partial

from msgspec import UNSET, Raw, Struct
from msgspec.structs import replace
from returns.result import Failure, Success

from forge.connection import Setup
from forge.proxy.replies import last_reply, with_calls
from forge.proxy.tools import Guard
from stages import Stage, fold, on, pipeline, send, serialize
from stages.deliver import deliver
from stages.effect import Execute, Replied, Reply, Request, Send
from stages.ledger import Ledger
from stages.message import History, Tool, ToolCall, is_nudge
from stages.pipeline import advance
from stages.policy.rules import Rules
from stages.state import Awaiting, Done, Folded, Prepared, Ready, State
from stages.wire.prompted.forms import FORMS
from stages.wire.sampling import Sampling
from stages.wire.served import ServerRequest, as_sent
from stages.wire.translation import format_field, translated_sampling
from stages.wire.valid import system_first
from stages.wire.wires import demandable, demanding, wire

_NEW = Ledger()

_UNBOUND = send(Rules(tools=(), on_text="accept"))
"""Rules of order may leave no tool to call; there is still the answer in words."""


class Accepted(Struct, frozen=True):
    """The reply that the client gets. `clean`: as the model gave it; otherwise with calls found or repaired."""

    reply: Reply
    clean: bool
    rescued: tuple[str, ...] = ()
    """The calls that were found in the text or repaired: each one's name, and what it took."""


class Again(Struct, frozen=True):
    """What the model is asked next, with what is wrong in its history. `refused`: the calls, or `a text`."""

    state: State
    request: Request
    refused: tuple[str, ...] = ()


class Exhausted(Struct, frozen=True):
    """Every attempt failed: what the client gets of the last."""

    reply: Reply


Step = Accepted | Again | Exhausted


class Turn(Struct, frozen=True):
    """The two halves of a turn, what asks, made when it is needed, and what judges; and what is `last` if all fails."""

    asking: Callable[[], Stage]
    judging: Stage
    last: Callable[[State, Reply], Reply]


def verbatim_turn(given: ServerRequest, request: ServerRequest, guard: Guard, setup: Setup) -> Turn:
    """A turn in which the client's own body is sent, and retries add to it; `given` is what the client asks for."""

    def asking() -> Stage:
        @on(Folded)
        def write(state: State, _: Folded) -> State:
            sent = as_sent(request)
            added = wire(setup.dialect).messages(state.history[len(request.history) :])
            return state.to(Prepared(request=replace(sent, messages=sent.messages + added)))

        return pipeline(fold(), write, _UNBOUND)

    return Turn(asking, guard.judging, partial(last_reply, given, guard))


def written_turn(given: ServerRequest, request: ServerRequest, guard: Guard, setup: Setup, model: str) -> Turn:
    """A turn in which the request is written for the backend's own protocol; `given` is what the client asks for."""
    asking = pipeline(*_writing(request, guard.rules, setup, model), _UNBOUND)
    return Turn(lambda: asking, guard.judging, partial(last_reply, given, guard))


def plain_request(request: ServerRequest, setup: Setup, model: str) -> Request:
    """A request whose reply is not judged, for a backend of another protocol: no call may be made."""
    return _written(request, Rules(tools=(), on_text="accept"), setup, model)[0]


def counted_request(request: ServerRequest, setup: Setup, model: str) -> tuple[Request, int]:
    """The request as the backend would be sent it, and the characters of its prompt."""
    return _written(request, Rules(tools=request.specs, on_text="accept"), setup, model)


def _written(request: ServerRequest, rules: Rules, setup: Setup, model: str) -> tuple[Request, int]:
    written = pipeline(*_writing(request, rules, setup, model))(opening(request, 0, asked=False)).unwrap()
    match written.phase:
        case Prepared(request=made):
            return made, written.ledger.prompt_size
        case phase:
            raise TypeError(f"the request was not written: {type(phase).__name__}")


def _writing(request: ServerRequest, rules: Rules, setup: Setup, model: str) -> tuple[Stage, ...]:
    spoken = wire(setup.dialect)
    sampling = translated_sampling(request, spoken).over(setup.sampling)
    if sampling.max_tokens is UNSET:
        sampling = replace(sampling, max_tokens=max(1024, setup.context_tokens // 2))
    written = serialize(
        rules,
        setup.mode,
        model or setup.model or request.model,
        sampling,
        wire=spoken,
        form=FORMS[setup.form],
        alternating=setup.alternating,
    )
    return fold(), _system_first, written, _with_demands(request, rules, setup, sampling)


@on(Folded)
def _system_first(state: State, phase: Folded) -> State:
    """Many templates take system messages at the beginning alone; clients put reminders where they are due."""
    return state.to(replace(phase, view=system_first(phase.view)))


def _with_demands(request: ServerRequest, rules: Rules, setup: Setup, sampling: Sampling) -> Stage:
    """A stage that adds what the request demands of the reply: a call, a form."""
    spoken = wire(setup.dialect)
    demanded = request.choice.mode == "required" and setup.mode == "native" and demandable(spoken, sampling)

    @on(Prepared)
    def stage(state: State, phase: Prepared) -> State:
        tail = phase.request.tail
        if demanded and rules.tools:
            tail = demanding(tail, spoken, tuple(tool.name for tool in rules.tools))
        elif request.format is not None and not rules.tools:
            field = format_field(request.format, spoken)
            tail = Raw(b"{" + b",".join(filter(None, (bytes(tail)[1:-1], field))) + b"}")
        return state.to(replace(phase, request=replace(phase.request, tail=tail)))

    return stage


def opening(request: ServerRequest, max_retries: int, *, asked: bool, ledger: Ledger = _NEW) -> State:
    """The state in which a turn of the session begins. `asked`: the client's own body is the first request."""
    budget = replace(ledger.budget, calls=max_retries + (0 if asked else 1))
    ledger = replace(ledger, budget=budget, turn=ledger.turn + asked)
    phase = Awaiting(effect=Send(request=Request(), turn=ledger.turn)) if asked else Ready()
    return State(history=request.history, ledger=ledger, phase=phase)


def ask(turn: Turn, state: State) -> Again | None:
    """What the model is asked; None where the turn's attempts are used up."""
    match advance(turn.asking(), state):
        case Success(State(phase=Awaiting(effect=Send(request=request))) as asked):
            return Again(asked, request)
        case _:
            return None


def judged(turn: Turn, state: State, reply: Reply) -> Step:
    """What is made of the reply to the request that the state awaits."""
    match deliver(state, Replied(reply=reply)).bind(lambda answered: advance(turn.judging, answered)):
        case Success(State(phase=Awaiting(effect=Execute(calls=calls), batch=batch))):
            clean = _as_given(reply, calls)
            if clean:
                return Accepted(reply, clean)
            return Accepted(with_calls(reply, calls, batch.said.text), clean, _rescued(calls))
        case Success(State(phase=Done())):
            return Accepted(reply, clean=True)
        case Success(State(phase=Ready()) as corrected):
            again = ask(turn, corrected)
            if again is None:
                return Exhausted(turn.last(state, reply))
            return replace(again, refused=_refused(corrected.history[len(state.history) :]))
        case Failure():
            return Exhausted(turn.last(state, reply))
        case moved:
            raise TypeError(f"a turn ended in {moved}")


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
