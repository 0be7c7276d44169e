"""Every text for a model: bounded whatever the model wrote, and it names the tool that it is about."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.effect import HandOff, NeedsInput, Said
from stages.message import Kind, ToolCall
from stages.nudges import (
    called,
    called_before,
    context_use,
    ended,
    few_calls,
    how_to_end,
    in_doubt,
    listed,
    made_once,
    no_such_tool,
    not_approved,
    only_the_first,
    progress,
    quote,
    refusals,
    rejected_before,
    render,
    text_for_reply,
    too_many_calls,
    tool_failed,
    tool_raised,
    unresolved,
    waits,
)
from stages.objection import (
    BareText,
    Custom,
    Empty,
    Guessed,
    Objection,
    OnlyRepeats,
    OutOfOrder,
    Placeholder,
    PrerequisiteMissing,
    Repeat,
    Repeated,
    StepsPending,
    Ungrounded,
    UnknownTool,
    Unseen,
    Wrong,
)

LONG = "x" * 100_000
LOOK, WRITE = (ToolCall(id=f"call_{name}", name=name, arguments="{}") for name in ("look", "write"))


@given(st.text(max_size=600), st.integers(1, 500))
def test_a_quotation_is_whole_or_says_how_much_is_missing(text: str, limit: int) -> None:
    quoted = quote(text, limit)
    if len(text) <= limit:
        assert quoted == text
    else:
        assert quoted == f"{text[:limit]}… ({len(text) - limit} characters more)"


def test_a_list_of_nothing_says_so() -> None:
    assert [listed([]), listed(["look"]), listed(["look", "write"])] == ["none", "look", "look, write"]


@pytest.mark.parametrize(
    "wrong",
    [
        UnknownTool(known=("look",), nearest="look"),
        Guessed(repairs=("missing_closer",)),
        StepsPending(steps=("look",), attempt=1),
        StepsPending(steps=("look",), attempt=2),
        StepsPending(steps=("look",), attempt=3),
        PrerequisiteMissing(tools=("look",), match=("what",)),
        OutOfOrder(reason="look comes first", allowed=("look",)),
        Placeholder(arguments=(("what", "<what>"),)),
        Ungrounded(values=(Unseen(argument="what", value="7"),), others=("look",)),
        Repeated(times=2, others=("look",), values=("A-17",)),
    ],
)
def test_an_objection_names_the_call_that_it_is_about_and_a_way_on(wrong: Wrong) -> None:
    text = render(Objection(call=WRITE, wrong=wrong))
    assert "write" in text
    assert "look" in text or "again" in text or "with it" in text


@pytest.mark.parametrize(
    "wrong",
    [
        BareText(allowed=("look",), damage=None),
        Empty(allowed=("look",)),
        OnlyRepeats(repeats=(Repeat(tool="write", source="result", way="none"),), allowed=("look",)),
    ],
)
def test_a_reply_without_a_call_is_told_what_may_be_called(wrong: BareText | Empty | OnlyRepeats) -> None:
    assert text_for_reply(wrong).endswith("You may call: look.")


@pytest.mark.parametrize(
    "text",
    [
        text_for_reply(BareText(allowed=(), damage=None)),
        text_for_reply(Empty(allowed=())),
        render(Objection(call=WRITE, wrong=OutOfOrder(reason="look comes first", allowed=()))),
        render(Objection(call=WRITE, wrong=Ungrounded(values=(Unseen(argument="what", value="7"),)))),
    ],
)
def test_where_nothing_may_be_called_nothing_is_proposed(text: str) -> None:
    assert "may call" not in text
    assert text.endswith(".")


def test_an_optional_value_that_nobody_gave_is_to_be_left_out() -> None:
    wrong = Ungrounded(values=(Unseen(argument="what", value="7", optional=True),), others=("look",))
    text = render(Objection(call=WRITE, wrong=wrong))
    assert "Leave what out if nobody gave it." in text
    assert "You may call: look." in text


@pytest.mark.parametrize(
    "text",
    [
        no_such_tool(LONG, None),
        render(Objection(call=WRITE, wrong=Placeholder(arguments=(("what", LONG),)))),
        render(Objection(call=WRITE, wrong=Ungrounded(values=(Unseen(argument="what", value=LONG),)))),
        render(Objection(call=WRITE, wrong=Repeated(times=2, values=(LONG,)))),
        called("call_1", "look", LONG, "failed"),
    ],
)
def test_what_a_model_wrote_is_quoted_to_a_bound(text: str) -> None:
    assert len(text) < 1_000


def test_each_refused_call_hears_its_own_and_those_beside_it_only_where_the_batch_is_refused() -> None:
    objections = [Objection(call=WRITE, wrong=Custom(text="Not yet.", kind=Kind.STEP_NUDGE))]
    alone = refusals(objections, (LOOK, WRITE), render, whole=False)
    assert [(one.call_id, one.text, one.kind) for one in alone] == [("call_write", "Not yet.", Kind.STEP_NUDGE)]
    beside, own = refusals(objections, (LOOK, WRITE), render, whole=True)
    assert (own, beside.call_id) == (alone[0], "call_look")
    assert beside.text.startswith("[NotRun] look was not run, because another call")


def test_beside_a_step_that_was_skipped_it_says_which() -> None:
    skipped = [Objection(call=WRITE, wrong=StepsPending(steps=("look",), attempt=1))]
    beside, _ = refusals(skipped, (LOOK, WRITE), render, whole=True)
    assert "write in the same reply came too early" in beside.text


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        (unresolved("There is no A."), "[ToolResolutionError] There is no A."),
        (tool_raised("ValueError", "no"), "[ToolError] ValueError: no"),
        (tool_failed("Broken."), "[ToolFailed] Broken. Do not repeat this call"),
        (tool_failed("no supplier S-9"), "[ToolFailed] no supplier S-9. Do not repeat this call"),
        (in_doubt("pay", "it timed out"), "pay was begun, but it timed out: nobody knows whether it took effect."),
        (not_approved("pay", "too much", in_doubt=True), "pay was not approved: too much. It may have taken effect"),
        (rejected_before("pay"), "pay was not approved: a person has said no to this very call before."),
        (too_many_calls("look", 32), "look was not run: of one reply, the first 32 calls are run."),
        (only_the_first("look", ("write",)), "Only the first call of your reply was made, look; not write."),
        (made_once(("look",)), "Your reply makes the same call of look more than once; it was made once."),
        (waits(("look",), ("write", "finish")), "Only look was called. write, finish must wait for that result"),
    ],
)
def test_what_came_of_a_call_is_said_first(text: str, begins: str) -> None:
    assert text.startswith(begins)


def test_a_warning_is_the_more_pressing_the_less_is_left() -> None:
    texts = [context_use(threshold, 800, 1_000) for threshold in (0.5, 0.7, 0.9)]
    assert all(text.startswith("[ContextWarning] 80% of the context is used.") for text in texts)
    assert len({*texts}) == 3
    assert few_calls(1, (), ("finish",)) == "[IterationWarning] This is your last reply. Now call finish."
    assert "Only 2 replies are left" in few_calls(2, ("look",), ())
    assert progress(("look",), ("write",), ("finish",)) == "Done: look. Still required: write."


def test_a_list_of_earlier_calls_says_whether_it_is_all_of_them() -> None:
    assert "(the last of them)" in called_before(recall=False, all_of_them=False)
    assert "recall an id" in called_before(recall=True, all_of_them=True)
    assert called("", "look", '{"what":\n"a"}', "") == '- look {"what": "a"}'


def test_the_guidance_names_the_tools_that_there_are_and_no_other() -> None:
    names = ("task_completion", "ask_question", "converse")
    for name in names:
        said = how_to_end([name], words=False)
        assert name in said
        assert not any(other in said for other in names if other != name)
    assert "write your answer" in how_to_end(names, words=True)
    assert how_to_end((), words=True) == ""


def test_what_ended_a_run_is_not_said_twice() -> None:
    question, words, handed = NeedsInput(question=LONG), Said(text=LONG), HandOff(to=LONG)
    assert all(len(ended(how)) < 200 for how in (question, words, handed))
    assert "billing" in ended(HandOff(to="billing"))
