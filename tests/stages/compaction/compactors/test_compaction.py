"""What each compactor cuts, and when."""

import pytest
from msgspec.structs import replace

from stages.compaction import Compacted, ContextBudget, Meter, NoCompact, SlidingWindowCompact, TieredCompact, estimate
from stages.halt import CannotFit
from stages.message import Assistant, History, Kind, System, Tool, ToolCall, User

ASKED = (System(text="You look things up."), User(text="Find the answer."))


def turn(number: int, result: str, reasoning: str = "") -> History:
    call = ToolCall(id=f"call_{number}", name="look", arguments='{"what":"x"}')
    said = Assistant(calls=(call,), turn=number, reasoning=reasoning)
    return (said, Tool(call_id=call.id, name="look", text=result, turn=number))


def failed(number: int) -> History:
    nudge = User(text="Call a tool.", kind=Kind.RETRY_NUDGE, turn=number)
    return (Assistant(text="Sure, I can do that!", turn=number), nudge)


def answers(history: History) -> list[str]:
    return [m.text for m in history if isinstance(m, Tool)]


def compacted(compactor: TieredCompact | SlidingWindowCompact | NoCompact, history: History, tokens: int) -> Compacted:
    result = compactor(history, ContextBudget(tokens=tokens, low=0.5))
    assert isinstance(result, Compacted)
    return result


def test_phase_1_drops_failed_attempts_and_truncates_old_results_with_their_name_and_id() -> None:
    history = ASKED + failed(1) + turn(2, "a" * 1000) + turn(3, "b" * 500) + turn(4, "c")
    result = compacted(TieredCompact(keep_recent=2), history, 690)
    assert result.phase == 1
    cut = result.history[3]
    assert isinstance(cut, Tool)
    assert cut.text == "a" * 200 + "\n[Truncated — 800 chars removed]"
    assert (cut.call_id, cut.name) == ("call_2", "look")
    assert result.history[4:] == turn(3, "b" * 500) + turn(4, "c")


def test_results_are_cut_oldest_first_and_no_more_of_them_than_the_target_asks_for() -> None:
    history = ASKED + sum((turn(n, "a" * 1000) for n in range(1, 9)), ()) + turn(9, "b")
    budget = ContextBudget(tokens=3000, low=0.5)
    result = TieredCompact(keep_recent=1)(history, budget)
    assert isinstance(result, Compacted)
    cut = [len(text) < 1000 for text in answers(result.history)[:-1]]
    assert cut == sorted(cut, reverse=True)
    assert {True, False} == set(cut)
    assert budget.tokens_of(budget.count(result.history)) <= budget.target()


def test_a_pinned_call_stays_where_old_exchanges_go_and_its_long_result_is_cut() -> None:
    said, answer = turn(1, "a" * 4000)
    assert isinstance(said, Assistant)
    pinned = (replace(said, pinned=True), answer)
    result = compacted(TieredCompact(), ASKED + pinned + sum((turn(n, "b" * 40) for n in range(2, 40)), ()), 400)
    assert pinned[0] in result.history
    assert len(answers(result.history)[0]) < 300
    assert len(answers(result.history)) < 39


def test_what_is_pinned_is_cut_as_far_as_it_may_be_even_where_the_target_is_out_of_reach() -> None:
    exchanges = [turn(n, "a" * 400) for n in range(1, 9)]
    pinned = sum(
        ((replace(said, pinned=True), answer) for said, answer in exchanges if isinstance(said, Assistant)), ()
    )
    result = TieredCompact()(ASKED + pinned + turn(9, "b") + turn(10, "c"), ContextBudget(tokens=700))
    assert isinstance(result, Compacted)
    assert answers(result.history) == ["[Result removed to save context]"] * 8 + ["b", "c"]


def test_phase_2_leaves_a_stub_for_a_result() -> None:
    history = ASKED + turn(1, "a" * 1000) + turn(2, "b" * 1000) + turn(3, "c")
    result = compacted(TieredCompact(keep_recent=1), history, 340)
    assert result.phase == 2
    assert [m.text for m in result.history if isinstance(m, Tool)] == ["[Result removed to save context]"] * 2 + ["c"]


def test_phase_3_drops_reasoning_and_bare_text_but_no_call() -> None:
    said = Assistant(text="I will look it up now. " * 20, turn=1)
    history = ASKED + (said,) + turn(2, "a" * 400) + turn(3, "c")
    result = compacted(TieredCompact(keep_recent=1), history, 200)
    assert result.phase == 3
    assert said not in result.history
    assert [c.id for m in result.history if isinstance(m, Assistant) for c in m.calls] == ["call_2", "call_3"]


def test_each_phase_has_its_own_threshold_if_asked() -> None:
    history = ASKED + turn(1, "a" * 1000) + turn(2, "b" * 1000) + turn(3, "c")
    only_first = TieredCompact(keep_recent=1, phase_thresholds=(0.1, 0.99, 0.99))
    assert compacted(only_first, history, 600).phase == 1


def test_recent_turns_count_over_several_requests_of_the_user() -> None:
    """A second request used to switch compaction off for what came before."""
    history = ASKED + turn(1, "a" * 1000) + turn(2, "b" * 1000) + (User(text="And now?", turn=2),) + turn(3, "c")
    result = compacted(TieredCompact(keep_recent=1), history, 400)
    assert [len(m.text) for m in result.history if isinstance(m, Tool)][:2] != [1000, 1000]
    assert User(text="And now?", turn=2) in result.history


def test_keep_recent_0_protects_no_turn() -> None:
    result = compacted(TieredCompact(keep_recent=0), ASKED + turn(1, "a" * 1000), 300)
    assert [m.text[:3] for m in result.history if isinstance(m, Tool)] == ["aaa"]
    assert result.phase == 1


def test_a_sliding_window_keeps_the_request_and_the_recent_turns() -> None:
    history = ASKED + turn(1, "a" * 1000) + turn(2, "b") + turn(3, "c")
    assert compacted(SlidingWindowCompact(keep_recent=2), history, 400) == Compacted(
        history=ASKED + turn(2, "b") + turn(3, "c"), phase=1
    )


def test_a_window_with_nothing_left_to_drop_is_no_compaction() -> None:
    """An event used to be reported at every turn."""
    history = ASKED + turn(1, "a" * 1000)
    assert compacted(SlidingWindowCompact(keep_recent=2), history, 400).phase == 0


def test_what_cannot_fit_is_said_with_its_numbers() -> None:
    history = ASKED + turn(1, "a" * 4000)
    budget = ContextBudget(tokens=100)
    assert NoCompact()(history, budget) == CannotFit(tokens=estimate(history, budget), budget=100)
    asked = (System(text="You look things up."), User(text="Find this. " * 100))
    assert isinstance(TieredCompact(keep_recent=1)(asked + turn(1, "a" * 4000), budget), CannotFit)


def refused(number: int, arguments: str) -> History:
    call = ToolCall(id=f"call_{number}", name="look", arguments=arguments)
    text = "look was not run: `what` is missing."
    answer = Tool(call_id=call.id, name="look", text=text, kind=Kind.RETRY_NUDGE, turn=number)
    return (Assistant(calls=(call,), turn=number), answer)


LONG = (Assistant(text="I will now " * 300, turn=3), User(text="That was cut off.", kind=Kind.RETRY_NUDGE, turn=3))
WRONG = refused(3, '{"notes":"' + "x" * 3000 + '"}')


@pytest.mark.parametrize("compactor", [TieredCompact(), SlidingWindowCompact()], ids=["tiered", "sliding"])
@pytest.mark.parametrize(
    ("recent", "kept"),
    [(turn(2, "b") + LONG, turn(2, "b") + LONG[1:]), (turn(2, "b") + WRONG, turn(2, "b"))],
    ids=["of bare text the correction stays", "a call goes with its answer"],
)
def test_recent_attempts_that_failed_go_before_it_gives_up(
    compactor: TieredCompact | SlidingWindowCompact, recent: History, kept: History
) -> None:
    """A reply that was cut off can be as long as a small context."""
    result = compacted(compactor, ASKED + recent, 400)
    assert result.history == ASKED + kept
    assert compacted(compactor, ASKED + recent, 1500).history == ASKED + recent, "not while there is room"


def test_it_goes_down_to_the_low_mark_and_leaves_what_it_need_not_take() -> None:
    """The next compaction is then some turns away, and the prompt's beginning stays the same until then."""
    history = ASKED + sum((turn(n, "a" * 1000) for n in range(1, 9)), ())
    to_the_mark = TieredCompact(keep_recent=1)(history, ContextBudget(tokens=2400, low=0.4))
    to_the_threshold = TieredCompact(keep_recent=1)(history, ContextBudget(tokens=2400, low=0.75))
    assert isinstance(to_the_mark, Compacted)
    assert isinstance(to_the_threshold, Compacted)
    assert (to_the_threshold.phase, to_the_mark.phase) == (1, 2)


def test_a_budget_goes_down_to_a_part_of_what_is_not_taken_for_good() -> None:
    """With a mark below what stays anyway, every compaction would take all that may go."""
    plain, meter = ContextBudget(tokens=1000, low=0.2), Meter(overhead=1600)
    tools = replace(plain, meter=meter)
    assert (plain.target(), tools.target()) == (200, 400 + 120)
    assert tools.target(opening=4000) == tools.trigger


def test_sizes_of_another_history_are_not_believed() -> None:
    history = ASKED + turn(1, "a" * 4000) + turn(2, "b") + turn(3, "c")
    shorter = ASKED + turn(3, "c")
    budget = ContextBudget(tokens=500, meter=Meter(sizes=ContextBudget(tokens=1).sizes(history)))
    assert TieredCompact()(shorter, budget) == Compacted(history=shorter, phase=0)


def test_a_recent_result_too_long_for_the_context_is_cut_to_what_fits() -> None:
    history = ASKED + turn(1, "a" * 1000) + turn(2, "b" * 9000)
    result = compacted(TieredCompact(), history, 1000)
    older, newest = (m.text for m in result.history if isinstance(m, Tool))
    assert len(older) < 240
    assert 3000 < len(newest) < 3900
    assert newest.endswith("chars removed]")


def test_reasoning_counts_and_is_cut_only_where_it_is_shown_again() -> None:
    history = ASKED + turn(1, "a", reasoning="hm " * 500) + turn(2, "b")
    shown = TieredCompact(keep_recent=1)(history, ContextBudget(tokens=200, low=0.75, reasoning=True))
    assert isinstance(shown, Compacted)
    assert shown.phase == 3
    assert [m.reasoning for m in shown.history if isinstance(m, Assistant)] == ["", ""]
    assert compacted(TieredCompact(keep_recent=1), history, 200).phase == 0
