"""The laws of guards, one function each, and `assert_guard_laws`, which tests them on many states and batches."""

from collections.abc import Callable, Sequence

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec import Struct

from forge.testing.laws import BrokenLawError, listing, reseeded, short_text, try_laws
from forge.testing.strategies import TOOL_NAMES, batches, states
from stages.message import ToolCall
from stages.objection import Guard, Stop, Verdict, not_a_verdict, render
from stages.state import State


def assert_guard_laws(
    guard: Guard,
    *,
    tools: Sequence[str] = TOOL_NAMES,
    arguments: SearchStrategy[str] | None = None,
    max_examples: int = 200,
) -> None:
    """Test every law on `max_examples` states and batches. BrokenLawError for the first broken one, minimised.

    `tools` are the names of the called tools: pass those that the guard is about. `arguments` generates JSON objects as
    text for every call in the batch, the history and the ledger: pass your own if the guard looks into them.
    """

    @st.composite
    def cases(draw: st.DrawFn) -> tuple[State, tuple[ToolCall, ...]]:
        state = draw(states(tools, max_turns=2, arguments=arguments))
        return state, draw(batches(tools, first_id=state.ledger.ids + 1, arguments=arguments))

    def every_law(case: tuple[State, tuple[ToolCall, ...]]) -> None:
        asked = ask_guard(guard, *case)
        for law in GUARD_LAWS:
            law(asked)

    try_laws(cases(), every_law, max_examples)


class GuardTrial(Struct, frozen=True, kw_only=True):
    """One answer of a guard. `before` is the input as JSON, from before the guard saw it."""

    guard: Guard
    state: State
    calls: tuple[ToolCall, ...]
    before: bytes
    verdict: Verdict

    def broken(self, law: str, found: str, remedy: str) -> BrokenLawError:
        """The report on a broken law."""
        return BrokenLawError(
            law, found, remedy, f"verdict: {self.verdict!r}", *_given(self.guard, self.state, self.calls)
        )


def ask_guard(guard: Guard, state: State, calls: tuple[ToolCall, ...]) -> GuardTrial:
    """Ask the guard. BrokenLawError if it raises, or answers with anything but objections to these calls or `Stop`."""
    law, before = "it answers every state and every batch", msgspec.json.encode((state, calls))
    try:
        verdict: Verdict = guard(state, calls)
    except Exception as error:
        remedy = (
            "return [] where the guard has nothing to say: a batch may be empty, and contain the same call twice; "
            "if its tool never gets such arguments, generate the real ones with arguments=…"
        )
        raise BrokenLawError(law, f"it raised {error!r}", remedy, *_given(guard, state, calls)) from error
    if wrong := not_a_verdict(verdict, calls):
        remedy = "return [Objection(call=call, wrong=Custom(text=…)) for each call that must not run], or Stop(halt=…)"
        raise BrokenLawError("it objects to calls of the batch", f"it {wrong}", remedy, *_given(guard, state, calls))
    return GuardTrial(guard=guard, state=state, calls=calls, before=before, verdict=verdict)


def guard_input_unchanged(asked: GuardTrial) -> None:
    """The guard does not change the state or the calls."""
    if msgspec.json.encode((asked.state, asked.calls)) != asked.before:
        remedy = "a guard only reads; it returns objections, and enforce counts them"
        raise asked.broken("the input is not changed", "the state or a call has changed", remedy)


def guard_deterministic(asked: GuardTrial) -> None:
    """The same state and calls give the same verdict."""
    with reseeded(asked.before):
        again = ask_guard(asked.guard, asked.state, asked.calls).verdict
    if again != asked.verdict:
        remedy = "decide by the state and the calls alone; the ledger counts earlier refusals"
        raise asked.broken("the same input gives the same verdict", f"asked a second time, it said {again!r}", remedy)


def says_something(asked: GuardTrial) -> None:
    """Each objection has a text for the model."""
    for objection in () if isinstance(asked.verdict, Stop) else asked.verdict:
        if not (isinstance(text := render(objection), str) and text.strip()):
            remedy = "say what is wrong, what is allowed and what to do next"
            raise asked.broken("each objection says something", f"its text for {objection.tool} is {text!r}", remedy)


GUARD_LAWS: tuple[Callable[[GuardTrial], None], ...] = (
    guard_input_unchanged,
    guard_deterministic,
    says_something,
)


def _given(guard: Guard, state: State, calls: tuple[ToolCall, ...]) -> tuple[str, ...]:
    batch = (f"  {call.id} {call.name}({short_text(call.arguments)})" for call in calls)
    name = getattr(guard, "__qualname__", repr(guard))
    where = (f"ledger: {state.ledger}", f"phase: {type(state.phase).__name__}", listing("history", state.history))
    return (f"guard: {name}", "calls:", *batch, *where)
