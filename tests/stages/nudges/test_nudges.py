"""Every text for a model: bounded whatever the model wrote, and it names the tool that it is about."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.effect import HandOff, NeedsInput, Said
from stages.message import ToolCall
from stages.nudges import call_row, ended, how_to_end, quote
from stages.objection import (
    BareText,
    Objection,
    Ungrounded,
    Unseen,
    no_such_tool,
    render,
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


@pytest.mark.parametrize(
    "text",
    [
        render(Objection(wrong=BareText(allowed=(), damage=None))),
        render(Objection(call=WRITE, wrong=Ungrounded(values=(Unseen(argument="what", value="7"),)))),
    ],
)
def test_where_nothing_may_be_called_nothing_is_proposed(text: str) -> None:
    assert "may call" not in text
    assert text.endswith(".")


def test_an_optional_value_that_nobody_gave_is_to_be_left_out() -> None:
    wrong = Ungrounded(values=(Unseen(argument="what", value="7", optional=True),), others=("look",))
    text = render(Objection(call=WRITE, wrong=wrong))
    assert "Leave out what if nobody gave it." in text
    assert "You may call: look." in text


@pytest.mark.parametrize(
    "text",
    [
        no_such_tool(LONG, None),
        call_row("call_1", "look", LONG, "failed"),
    ],
)
def test_what_a_model_wrote_is_quoted_to_a_bound(text: str) -> None:
    assert len(text) < 1_000


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
