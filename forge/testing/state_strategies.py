"""Strategies for states in the middle of a run, in each phase of a turn."""

from collections.abc import Sequence
from typing import get_args

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from hypothesis.vendor.pretty import RepresentationPrinter, for_type_by_name
from msgspec import Raw

from forge.testing.history_strategies import TOOL_NAMES, batches, histories, texts
from forge.testing.history_strategies import arguments as any_arguments
from forge.testing.reply_strategies import replies
from stages.effect import (
    Ask,
    Budget,
    CallResult,
    Execute,
    Failed,
    HandOff,
    InDoubt,
    NeedsInput,
    NotRun,
    Paused,
    Said,
    Send,
    Succeeded,
    Unresolved,
)
from stages.execution import call_digest
from stages.message import Assistant, History, ToolCall, turn_of
from stages.rules import Rules
from stages.serialize import serialize
from stages.state import (
    Answered,
    Awaiting,
    Batch,
    Completed,
    Done,
    Edited,
    Ending,
    Executed,
    Folded,
    Ledger,
    Phase,
    Prepared,
    Ready,
    State,
    Success,
    Vetted,
)


def _whole(state: State, printer: RepresentationPrinter, _: bool) -> None:
    """A State as Python that can be pasted into a test; its own repr is too short for that."""
    with printer.group(6, "State(", ")"):
        for name in state.__struct_fields__:
            printer.text(f"{name}=")
            printer.pretty(getattr(state, name))
            printer.text(",")
            printer.breakable()


for_type_by_name(State.__module__, State.__name__, _whole)

PHASES: tuple[type[Phase], ...] = get_args(Phase)


@st.composite
def states(
    draw: st.DrawFn,
    tools: Sequence[str] = TOOL_NAMES,
    *,
    phases: Sequence[type[Phase]] = PHASES,
    max_turns: int = 4,
    arguments: SearchStrategy[str] | None = None,
) -> State:
    """A state in one of these phases: a valid history, and a ledger that agrees with it.

    `arguments` are the arguments of every call in it, JSON texts of objects.
    """
    given = any_arguments() if arguments is None else arguments
    history = draw(histories(tools, max_turns=max_turns, arguments=given))
    ledger, phase = draw(ledgers(history, tools, arguments=given)), draw(st.sampled_from(phases))
    return State(history=history, ledger=ledger, phase=draw(_phase(phase, history, ledger, tools, given)))


def ledgers(
    history: History = (), tools: Sequence[str] = TOOL_NAMES, *, arguments: SearchStrategy[str] | None = None
) -> SearchStrategy[Ledger]:
    """A ledger for that history: turns and ids agree with it, counts are arbitrary."""
    few, given = st.integers(0, 4), any_arguments() if arguments is None else arguments
    called = [int(call.id[-9:]) for m in history if isinstance(m, Assistant) for call in m.calls]
    return st.builds(
        Ledger,
        budget=st.builds(Budget, calls=st.integers(0, 5)),
        turn=st.just(max(map(turn_of, history), default=0)),
        ids=st.just(max(called, default=0)),
        successes=st.lists(st.builds(Success, name=st.sampled_from(tools), arguments=given), max_size=3).map(tuple),
        retries=few,
        tool_errors=few,
        premature=few,
        prerequisite_violations=few,
    )


def results(call: ToolCall) -> SearchStrategy[CallResult]:
    """All outcomes of a call."""
    return st.sampled_from(
        (
            Succeeded(call_id=call.id, text="fine", value=Raw(b'"fine"')),
            Succeeded(call_id=call.id, text="?", ends=NeedsInput(question="Which one?")),
            Failed(call_id=call.id, error="ValueError", message="broken"),
            Failed(call_id=call.id, error="ToolFailed", message="no use", counted=False),
            Unresolved(call_id=call.id, message="not there"),
            NotRun(call_id=call.id, reason="cancelled"),
            InDoubt(call_id=call.id, reason="crashed"),
            Paused(call_id=call.id, asks=NeedsInput(question="Which one?"), saved="{}"),
        )
    )


def _phase(
    phase: type[Phase], history: History, ledger: Ledger, tools: Sequence[str], arguments: SearchStrategy[str]
) -> SearchStrategy[Phase]:
    calls = batches(tools, first_id=ledger.ids + 1, least=1, arguments=arguments)
    said = st.builds(Assistant, text=texts(), reasoning=texts(), calls=calls, turn=st.just(ledger.turn))
    folded = Folded(view=history)
    prepared = _prepared(folded)
    made: dict[type[Phase], SearchStrategy[Phase]] = {
        Ready: st.just(Ready()),
        Folded: st.just(folded),
        Prepared: st.just(prepared),
        Awaiting: st.just(Awaiting(effect=Send(request=prepared.request, turn=ledger.turn))) | said.flatmap(_underway),
        Answered: st.builds(Answered, reply=replies(tools)),
        Vetted: st.builds(Vetted, said=said, allowed=st.booleans()),
        Edited: said.flatmap(lambda reply: _edited(reply, arguments)),
        Executed: said.flatmap(_executed),
        Done: st.sampled_from(_ENDINGS).map(lambda ending: Done(outcome=ending)),
    }
    return made[phase]


_ENDINGS: tuple[Ending, ...] = (
    Completed(tool="finish", value=Raw(b"null")),
    Said(text="Done."),
    NeedsInput(question="Which?"),
    HandOff(to="me"),
)


def _prepared(folded: Folded) -> Prepared:
    """The request for that view, as forge writes it where there are no tools."""
    write = serialize(Rules(tools=()), "native", "model")
    phase = write(State(history=folded.view, phase=folded)).unwrap().phase
    if not isinstance(phase, Prepared):
        raise TypeError(f"serialize leaves {type(phase).__name__}")
    return phase


def _underway(said: Assistant) -> SearchStrategy[Awaiting]:
    effects = (Execute(calls=said.calls), Ask(call=said.calls[0], digest=call_digest(said.calls[0])))
    return st.builds(Awaiting, effect=st.sampled_from(effects), batch=st.just(Batch(said=said)))


def _edited(said: Assistant, arguments: SearchStrategy[str]) -> SearchStrategy[Edited]:
    """The first call was approved with other arguments, which may or may not fit its tool."""
    ask = Ask(call=said.calls[0], digest=call_digest(said.calls[0]))
    written = arguments | texts()
    return written.map(lambda text: Edited(batch=Batch(said=said), ask=ask, arguments=text))


def _executed(said: Assistant) -> SearchStrategy[Executed]:
    """The first of the calls have come back, or all of them."""
    back = st.integers(1, len(said.calls)).flatmap(lambda number: st.tuples(*map(results, said.calls[:number])))
    heard = st.sampled_from([(), ("Stop after this.",)])
    return st.builds(lambda came, words: Executed(batch=Batch(said=said, results=came, heard=words)), back, heard)
