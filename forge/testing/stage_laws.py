"""The laws of stages, one function each, and `assert_stage_laws`, which tests them on states in every phase."""

from collections.abc import Callable, Sequence

import msgspec
from hypothesis.strategies import SearchStrategy
from msgspec import Struct
from returns.result import Success

from forge.testing.laws import BrokenLawError, listing, parted_call, reseeded, try_laws
from forge.testing.strategies import TOOL_NAMES
from forge.testing.strategies import states as all_states
from stages.halt import Halt
from stages.pipeline import Stage, as_result, name_of
from stages.state import Folded, State


def assert_stage_laws(
    stage: Stage,
    *,
    tools: Sequence[str] = TOOL_NAMES,
    states: SearchStrategy[State] | None = None,
    max_examples: int = 200,
) -> None:
    """Test every law on `max_examples` states. BrokenLawError for the first broken one, with a minimal state.

    `tools` are the names of the tools that are called; `states` replace forge's own.
    """

    def every_law(state: State) -> None:
        moved = apply_stage(stage, state)
        for law in STAGE_LAWS:
            law(moved)

    try_laws(all_states(tools, max_turns=2) if states is None else states, every_law, max_examples)


class _Move(Struct, frozen=True, kw_only=True):
    """A state and what a stage made of it. `before` is the input as JSON, taken before the stage ran."""

    stage: Stage
    state: State
    before: bytes
    after: State | Halt

    @property
    def reached(self) -> State:
        """The returned state; the input, if the stage halted."""
        return self.after if isinstance(self.after, State) else self.state

    def broken(self, law: str, found: str, remedy: str) -> BrokenLawError:
        """The report on a broken law."""
        return BrokenLawError(law, found, remedy, *_given(self.stage, self.state))


def apply_stage(stage: Stage, state: State) -> _Move:
    """Apply the stage. BrokenLawError if it raises, or returns neither a State nor a Halt."""
    law, before = "it answers every state", msgspec.json.encode(state)
    try:
        result = as_result(stage(state), stage)
    except Exception as error:
        remedy = "return a State or a Halt; @on(Phase) passes states in other phases through"
        raise BrokenLawError(law, f"it raised {error!r}", remedy, *_given(stage, state)) from error
    after = result.unwrap() if isinstance(result, Success) else result.failure()
    return _Move(stage=stage, state=state, before=before, after=after)


def stage_input_unchanged(moved: _Move) -> None:
    """The stage does not change its input."""
    if msgspec.json.encode(moved.state) != moved.before:
        remedy = "make the next state with state.to, state.say, state.note or msgspec.structs.replace"
        raise moved.broken("the input is not changed", "the state has changed", remedy)


def stage_deterministic(moved: _Move) -> None:
    """The same state gives the same next state, so that runs can be replayed."""
    with reseeded(moved.before):
        again = apply_stage(moved.stage, moved.state).after
    if again != moved.after:
        remedy = "decide by the state alone: no clock, no random number, nothing remembered from the last call"
        raise moved.broken("the same input gives the same state", "the second time, it returned another state", remedy)


def survives_json(moved: _Move) -> None:
    """The next state can be saved and loaded."""
    law, remedy = "the state can be saved", "use only the declared types of the fields of State and its phases"
    try:
        loaded = msgspec.json.decode(msgspec.json.encode(moved.reached), type=State)
    except (msgspec.MsgspecError, TypeError) as error:
        raise moved.broken(law, f"it cannot: {error}", remedy) from error
    if loaded != moved.reached:
        raise moved.broken(law, "the loaded state is different", remedy)


def history_answered(moved: _Move) -> None:
    """Every call of the history and the view is answered directly after its message, as servers require."""
    reached, law, remedy = moved.reached, "a call is never parted from its result", "keep the two together"
    if found := parted_call(reached.history):
        raise moved.broken(law, found, remedy)
    if isinstance(reached.phase, Folded) and (found := parted_call(reached.phase.view)):
        raise moved.broken(law, f"in the view, {found}", remedy)


def budget_never_grows(moved: _Move) -> None:
    """No budget grows, so that every run ends."""
    old, new = moved.state.ledger.budget, moved.reached.ledger.budget
    for name in ("calls", "tool_calls", "tokens", "seconds", "cost"):
        before, after = getattr(old, name), getattr(new, name)
        if before is not None and (after is None or after > before):
            found = f"the budget of {name} went from {before} to {after}"
            raise moved.broken("budgets only shrink", found, "give more in forge.resume(budget=…)")


def phase_kept_whole(moved: _Move) -> None:
    """A phase that the stage only changes keeps what was asked, and what a person has found out about a call."""
    old, new = moved.state.phase, moved.reached.phase
    for name in ("asked", "settled") if type(old) is type(new) else ():
        if getattr(old, name, None) != getattr(new, name, None):
            remedy = "change the phase with msgspec.structs.replace(phase, …), which keeps its other fields"
            found = f"{type(new).__name__}.{name} is another"
            raise moved.broken("a changed phase keeps `asked` and `settled`", found, remedy)


STAGE_LAWS: tuple[Callable[[_Move], None], ...] = (
    stage_input_unchanged,
    stage_deterministic,
    survives_json,
    history_answered,
    budget_never_grows,
    phase_kept_whole,
)


def _given(stage: Stage, state: State) -> tuple[str, ...]:
    where = (f"phase: {state.phase}", f"ledger: {state.ledger}", listing("history", state.history))
    return (f"stage: {name_of(stage)}", *where)
