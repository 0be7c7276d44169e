"""Laws of pruning: short enough or refused, pairs whole, the system prompt and the last request kept."""

from hypothesis import given
from hypothesis import strategies as st

from forge.testing import assert_answered, histories
from stages.halt import CannotFit
from stages.memory import pruned
from stages.message import Assistant, History, Kind, System, Tool, ToolCall, User, size
from stages.state import Ledger, State
from stages.tokens import Report, tokens_of

LIMITS = st.integers(1, 1500)


def tokens(state: State) -> int:
    return tokens_of(sum(map(size, state.history)), state.ledger.tokens_per_character, Report())


@given(history=histories(max_turns=6), limit=LIMITS, rate=st.sampled_from((0.1, 0.25, 0.5)))
def test_what_is_left_fits_and_is_valid(history: History, limit: int, rate: float) -> None:
    before = State(history=history, ledger=Ledger(tokens_per_character=rate))
    after = pruned(before, limit)
    if isinstance(after, CannotFit):
        assert tokens(before) > limit
        return
    assert tokens(after) <= limit
    assert_answered(after.history)
    assert [m for m in after.history if isinstance(m, System)] == [m for m in history if isinstance(m, System)]
    asked = [m for m in history if isinstance(m, User) and m.kind is Kind.USER_INPUT]
    assert asked[-1] in after.history
    assert [m for m in history if isinstance(m, User | Assistant) and m.pinned and m not in after.history] == []
    assert pruned(after, limit) == after
    if tokens(before) <= limit:
        assert after is before


def test_one_oversized_result_is_cut_and_empties_nothing() -> None:
    call = ToolCall(id="call_000000001", name="read", arguments="{}")
    history = (
        System(text="Be brief."),
        User(text="Sum up the file"),
        Assistant(calls=(call,), turn=1),
        Tool(call_id=call.id, name="read", text="long text " * 5000, turn=1),
        Assistant(text="It is long.", turn=2),
        User(text="And in one word?", turn=2),
        Assistant(text="Long.", turn=3),
    )
    after = pruned(State(history=history), 300)
    assert isinstance(after, State)
    assert after.history[:2] == history[:2]
    assert after.history[-2:] == history[-2:]
    assert tokens(after) <= 300


def test_what_must_stay_is_named_with_its_size() -> None:
    problem = pruned(State(history=(System(text="rule " * 400), User(text="Go"))), 100)
    assert isinstance(problem, CannotFit)
    assert problem.tokens > 400
    assert problem.budget == 100
