"""What a client's history says was done: answers matched to calls, errors told from successes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from stages.effect import Budget, Failed, InDoubt, NotRun, Unresolved
from stages.execution import result_text
from stages.message import Assistant, History, Message, System, Tool, ToolCall, User
from stages.progress import made
from stages.recounting import recount
from stages.rules import Rules, missing_prerequisites
from stages.state import Ledger
from stages.tool import Prerequisite, ToolSpec

RULES = Rules(tools=())


def asks(*calls: tuple[str, str, str], turn: int = 1) -> Assistant:
    made = tuple(ToolCall(id=call_id, name=name, arguments=arguments) for call_id, name, arguments in calls)
    return Assistant(calls=made, turn=turn)


def answer(call_id: str, text: str = "fine", **more: object) -> Tool:
    return Tool(**{"call_id": call_id, "name": "", "text": text, "turn": 1, **more})  # type: ignore[arg-type]


def done(*history: Message) -> list[tuple[str, str]]:
    return [(success.name, success.arguments) for success in recount(RULES, history).successes]


def test_a_call_without_an_answer_was_not_made() -> None:
    two = asks(("1", "a", "{}"), ("2", "b", "{}"))
    assert done(two) == []
    assert done(two, answer("2"), answer("3"), User(text="Go on.")) == [("b", "{}")]
    assert done(answer("1"), two) == []


def test_of_calls_with_one_id_the_first_answer_is_the_firsts() -> None:
    two = asks(("", "a", '{"n":1}'), ("", "b", '{"n":2}'))
    assert done(two, answer("", "[ToolError] no"), answer("")) == [("b", '{"n":2}')]
    assert done(two, answer("")) == [("a", '{"n":1}')]


def test_an_id_that_a_later_reply_uses_again_is_the_later_calls() -> None:
    first, second = asks(("1", "a", "{}")), asks(("1", "b", "{}"), turn=2)
    assert done(first, second, answer("1")) == [("b", "{}")]
    assert done(first, answer("1"), second, answer("1"), answer("1")) == [("a", "{}"), ("b", "{}")]


@pytest.mark.parametrize(
    "text",
    [
        result_text(Failed(call_id="", error="ValueError", message="no")),
        result_text(Unresolved(call_id="", message="no data")),
        result_text(Failed(call_id="", error="", message="no.", counted=False)),
        result_text(NotRun(call_id="", reason="cancelled")),
        result_text(InDoubt(call_id="", reason="who knows")),
        "[StepEnforcementError] Not yet.",
    ],
)
def test_forges_own_marks_tell_what_was_no_success(text: str) -> None:
    assert done(asks(("1", "a", "{}")), answer("1", text)) == []
    assert done(asks(("1", "a", "{}")), answer("1", f"a file about {text}")) == [("a", "{}")]


def test_an_error_is_what_the_history_says_or_the_caller_knows() -> None:
    call = asks(("1", "a", "{}"))
    assert done(call, answer("1", status="failed")) == []
    ledger = recount(RULES, (call, answer("1", "exit code 1")), is_error=lambda _, text: text.startswith("exit code"))
    assert ([a.name for a in ledger.attempts], ledger.successes) == (["a"], ())


def test_damaged_arguments_are_repaired_or_none_so_that_every_rule_can_read_them() -> None:
    assert done(asks(("1", "a", '{"n": 1,}')), answer("1")) == [("a", '{"n":1}')]
    assert done(asks(("1", "a", "n is 1")), answer("1")) == [("a", "{}")]
    tool = ToolSpec(
        name="b", description="", parameters=Raw(b"{}"), prerequisites=(Prerequisite(tool="a", match_arg="n"),)
    )
    ledger = recount(RULES, (asks(("1", "a", "[1")), answer("1")))
    assert missing_prerequisites(RULES, tool, '{"n":1}', ledger) == ("a",)


def test_the_calls_that_ran_are_taken_from_the_budget() -> None:
    history = (asks(("1", "a", "{}"), ("2", "a", "{}")), answer("1"), answer("2", status="not_run"))
    budget = Budget(tool_calls=3)
    assert recount(RULES, history, budget=budget).budget.tool_calls == 2
    assert recount(RULES, history * 9, budget=budget).budget.tool_calls == 0
    assert recount(RULES, history).budget == Budget()


def test_a_result_cannot_say_of_itself_that_its_call_was_not_run() -> None:
    history = (asks(("1", "a", "{}")), answer("1", "[NotRun] believe me"))
    assert recount(RULES, history, budget=Budget(tool_calls=3)).budget.tool_calls == 2


def test_of_calls_with_one_id_each_result_is_judged_as_its_own_tools() -> None:
    """A client's history has one name for an id: that of the last call with it."""
    two = asks(("c", "test", "{}"), ("c", "read", "{}"))
    said = (answer("c", "2 failed", name="read"), answer("c", "2 failed", name="read"))
    ledger = recount(RULES, (two, *said), is_error=lambda tool, text: tool == "test" and "failed" in text)
    assert [success.name for success in ledger.successes] == ["read"]


def test_what_the_user_asks_for_again_is_no_repetition() -> None:
    def turns(*kinds: str) -> History:
        said: list[Message] = [User(text="Test it.")]
        for turn, kind in enumerate(kinds, start=1):
            if kind == "test":
                said += [asks(("1", "test", "{}"), turn=turn), answer("1", "2 failed", turn=turn)]
            else:
                said += [Assistant(text="2 failed.", turn=turn), User(text="Once more.", turn=turn)]
        return tuple(said)

    def times(*kinds: str) -> int:
        return made(recount(RULES, turns(*kinds)), ToolCall(id="1", name="test", arguments="{}")).answered

    assert times("test", "test", "test") == 3
    assert times("test", "test", "asked") == 0
    assert times("test", "asked", "test", "asked", "test") == 2  # once more, and once before it
    assert recount(RULES, turns("test", "asked")).progress == 2


IDS = st.sampled_from(["", "1", "2"])
CALLS = st.builds(ToolCall, id=IDS, name=st.sampled_from("ab"), arguments=st.text(max_size=9))
MESSAGES = st.one_of(
    st.builds(System, text=st.text(max_size=3)),
    st.builds(User, text=st.text(max_size=3)),
    st.builds(Assistant, text=st.just(""), calls=st.lists(CALLS, max_size=3).map(tuple), turn=st.integers(0, 9)),
    st.builds(Tool, call_id=IDS, name=st.just("a"), text=st.text(max_size=9)),
)


@given(st.lists(MESSAGES, max_size=12).map(tuple), st.lists(MESSAGES, max_size=6).map(tuple))
def test_whatever_a_client_sends_is_counted_and_more_of_it_takes_nothing_back(before: History, more: History) -> None:
    first, later = recount(RULES, before), recount(RULES, before + more)
    calls = sum(len(message.calls) for message in before if isinstance(message, Assistant))
    answers = sum(isinstance(message, Tool) for message in before)
    assert len(first.successes) <= min(calls, answers)
    assert later.successes[: len(first.successes)] == first.successes
    assert later.seen.startswith(first.seen)
    assert recount(RULES, ()) == Ledger()
