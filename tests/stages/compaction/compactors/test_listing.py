"""What is left of exchanges that went whole: a list of the calls that were made in them."""

import pytest
from msgspec.structs import replace

from stages.compaction import Compacted, ContextBudget, TieredCompact
from stages.message import Assistant, History, Kind, System, Tool, ToolCall, User
from stages.view.prefix_reuse import common_length

ASKED = (System(text="You look things up."), User(text="Find the answer."))
HEAD = "[Calls that you made earlier; their results were removed to save context]"


def turn(number: int, result: str = "a" * 400, arguments: str | None = None) -> History:
    call = ToolCall(id=f"call_{number:09d}", name="look", arguments=arguments or f'{{"page":{number}}}')
    return (Assistant(calls=(call,), turn=number), Tool(call_id=call.id, name="look", text=result, turn=number))


def turns(first: int, last: int) -> History:
    return sum((turn(n) for n in range(first, last + 1)), ())


def compacted(history: History, budget: ContextBudget) -> History:
    result = TieredCompact()(history, budget)
    assert isinstance(result, Compacted)
    assert result.phase == 4
    return result.history


def lists(history: History) -> list[tuple[int, str]]:
    """Where lists stand, and what they say."""
    return [(i, m.text) for i, m in enumerate(history) if isinstance(m, User) and m.kind is Kind.SUMMARY]


BUDGET = ContextBudget(tokens=3000)


def test_old_exchanges_go_the_oldest_first_and_leave_a_list_of_their_calls() -> None:
    history = compacted(ASKED + turns(1, 18), BUDGET)
    (listed,) = lists(history)
    gone = 18 - sum(isinstance(m, Tool) for m in history)
    assert listed == (2, "\n".join((HEAD, *(f'- look {{"page":{n}}}' for n in range(1, gone + 1)))))
    assert history[:2] == ASKED
    assert history[3:] == turns(gone + 1, 18), "the later ones stay whole"
    assert BUDGET.tokens_of(BUDGET.count(history)) <= BUDGET.target()


def test_the_next_compaction_goes_on_with_the_list_so_the_prompt_stays_the_same_up_to_its_end() -> None:
    first = compacted(ASKED + turns(1, 18), BUDGET)
    second = compacted(first + turns(19, 31), BUDGET)
    (before,), (after,) = lists(first), lists(second)
    assert after[0] == before[0]
    assert after[1].startswith(before[1] + "\n- look")
    assert common_length(first, second) == 2
    assert after[1].count("- look") + sum(isinstance(m, Tool) for m in second) == 31


def test_a_full_list_keeps_the_newer_calls() -> None:
    history: History = ASKED
    for start in range(1, 400, 18):
        history = compacted(history + turns(start, start + 17), BUDGET)
    ((_, text),) = lists(history)
    assert text.startswith("[Calls that you made earlier (the latest ones); ")
    pages = [int(line.split(":")[1].rstrip("}")) for line in text.split("\n")[1:]]
    assert pages == list(range(pages[0], pages[-1] + 1))
    assert pages[-1] == 414 - sum(isinstance(m, Tool) for m in history)
    assert len(text) < 1500


@pytest.mark.parametrize(
    ("exchange", "line"),
    [
        (turn(1), '- look {"page":1}'),
        ((turn(1)[0], replace(turn(1)[1], status="in_doubt")), '- look {"page":1} (in doubt)'),
    ],
    ids=["plain", "in doubt"],
)
def test_a_line_says_what_was_called_and_how_it_failed(exchange: History, line: str) -> None:
    ((_, text),) = lists(compacted(ASKED + exchange + turns(2, 18), BUDGET))
    assert text.split("\n")[1] == line


def test_a_batch_is_listed_call_by_call_and_bare_text_not_at_all() -> None:
    (one, answer), (two, other) = turn(1), turn(2)
    assert isinstance(one, Assistant)
    assert isinstance(two, Assistant)
    batch = (replace(one, calls=one.calls + two.calls), answer, other, Assistant(text="Well. " * 40, turn=2))
    ((_, text),) = lists(compacted(ASKED + batch + turns(3, 18), BUDGET))
    assert text.split("\n")[1:4] == [f'- look {{"page":{n}}}' for n in (1, 2, 3)]


def test_nothing_is_told_before_the_user_asked_for_it() -> None:
    again = User(text="And now the rest.", turn=4)
    history = compacted(ASKED + turns(1, 4) + (again,) + turns(5, 20), BUDGET)
    ((place, text),) = lists(history)
    assert history[:3] == (*ASKED, again)
    assert place == 3
    assert text.startswith(HEAD + '\n- look {"page":1}')


def test_a_list_goes_before_the_run_ends() -> None:
    """Where what is recent needs all the room that there is."""
    first = compacted(ASKED + turns(1, 18), BUDGET)
    asked = User(text="Read this too: " + "b" * 10600, turn=18)
    assert lists(first)
    assert lists(compacted((*first, asked, *turns(19, 20)), BUDGET)) == []


def test_a_list_that_would_be_longer_than_what_it_lists_is_not_written() -> None:
    history = (*ASKED, *turn(1, "ok"), User(text="And this: " + "b" * 1300, turn=1), *turn(2), *turn(3))
    assert lists(compacted(history, ContextBudget(tokens=800))) == []
