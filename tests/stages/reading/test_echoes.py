"""No user is told a correction as the answer; whose words they are is decided by who said them first."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from returns.pipeline import is_successful

from forge import Workflow, run_sync, tool
from forge.interpreters.scripted import Scripted, call
from stages.effect import Reply, Said
from stages.halt import BadReplies
from stages.message import Assistant, Kind, Message, System, Tool, ToolCall, User
from stages.objection import (
    BadArguments,
    BareText,
    CutOff,
    Empty,
    Objection,
    OutOfOrder,
    Placeholder,
    PrerequisiteMissing,
    Repeated,
    StepsPending,
    UnknownTool,
    mistake_of,
    render,
)
from stages.reading.echoes import is_echo
from stages.saved import load, save
from stages.schema.check import Problem
from stages.state import Answered, Asked, State

ASKED = User(text="What does the invoice come to?")
TOOLS = ("get_invoice", "get_customer", "send_reminder", "cancel_invoice", "respond")
PLAIN = (
    "Your reply was plain text, and this task is done with tool calls only. Reply with one tool call and nothing else."
)
NUDGE = User(text=f"{PLAIN} You may call: {', '.join(TOOLS)}.", kind=Kind.RETRY_NUDGE)


def refused(text: str, kind: Kind = Kind.RETRY_NUDGE) -> Tool:
    return Tool(call_id="call_1", name="respond", text=text, kind=kind)


def wrote(**arguments: str) -> Assistant:
    made = call("respond", **arguments).calls[0]
    return Assistant(calls=(ToolCall(id="call_1", name="respond", arguments=made.arguments),))


QUOTING = refused(
    '[ToolArgValidationError] respond: message: expected string, got {"text":"The invoice comes to 340 euros today."}'
)
MINE = "The refund form is to be sent to the office in Lisbon within two weeks."
CASES: list[tuple[str, tuple[Message, ...], str, bool]] = [
    ("an answer", (ASKED, NUDGE), "It comes to 340 euros.", False),
    ("the correction", (ASKED, NUDGE), NUDGE.text, True),
    ("a part of it", (ASKED, NUDGE), "This task is done with tool calls only; reply with one tool call!", True),
    ("a part, among other words", (ASKED, NUDGE), f"I see. {PLAIN} So it comes to 340 euros.", True),
    ("a short part of it", (ASKED, NUDGE), "This task is done.", False),
    ("nobody told it so", (ASKED,), PLAIN, False),
    ("the names of the tools", (ASKED, NUDGE), f"I can use {', '.join(TOOLS)}.", False),
    ("a mark", (ASKED,), " [ToolError] LookupError: no such invoice", True),
    ("a mark of a warning", (ASKED,), "[IterationWarning] Only 2 replies are left.", True),
    ("brackets of its own", (ASKED,), "[Total] 340 euros", False),
    (
        "the user asks about a mark",
        (User(text="What is [NotRun]?"),),
        "[NotRun] stands before what did not run.",
        False,
    ),
    ("the user pastes it", (User(text="[NotRun] So it says."),), "[NotRun] means that it did not run.", False),
    ("a log has the mark", (ASKED, Tool(call_id="c", name="log", text="12:01 [ToolError] x")), "[ToolError] x", False),
    ("a tool's own error", (ASKED, Tool(call_id="c", name="log", text="[ToolError] x")), "[ToolError] x", True),
    ("what the model said first", (ASKED, wrote(message=MINE), refused(f"[NotRun] {MINE}")), MINE, False),
    ("what it said after it was told", (ASKED, refused(f"[NotRun] {MINE}"), wrote(message=MINE)), MINE, True),
    (
        "a value that a correction quotes",
        (ASKED, wrote(message='{"text":"The invoice comes to 340 euros today."}'), QUOTING),
        "The invoice comes to 340 euros today.",
        False,
    ),
    ("what the user said", (User(text=f"Tell Ines: {MINE}"), refused(f"[NotRun] {MINE}")), MINE, False),
    ("what the system prompt says", (System(text=MINE), ASKED, refused(f"[NotRun] {MINE}")), MINE, False),
    ("a guard of the user's own", (ASKED, refused(f"Say this: {MINE}")), MINE, False),
    ("a check of the user's own", (ASKED, refused(f"[Incomplete] respond was not accepted: say {MINE}")), MINE, False),
]


@pytest.mark.parametrize(("history", "text", "echo"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_only_repeats_what_forge_said(history: tuple[Message, ...], text: str, *, echo: bool) -> None:
    assert is_echo(text, State(history=history), TOOLS) == echo


def test_a_note_beside_the_prompt_counts_and_a_saved_state_knows_it() -> None:
    note = User(text="Once everything that was asked for is done, call respond.", kind=Kind.PROGRESS_NOTE)
    asked = Asked(notes=(note,))
    state = State(history=(ASKED,), phase=Answered(reply=Reply(), asked=asked))
    for known in (state, load(save(state))):
        assert is_echo("Once everything that was asked for is done", known, TOOLS)


names = st.sampled_from(TOOLS)
lists = st.lists(names, min_size=1, max_size=5, unique=True).map(tuple)
problems = st.just((Problem(path="total", rule="type", expected="number", found='"all"'),))
wrongs = st.one_of(
    st.builds(BareText, allowed=lists),
    st.builds(CutOff, allowed=lists),
    st.builds(Empty, allowed=lists),
    st.builds(StepsPending, steps=lists, attempt=st.integers(1, 3)),
    st.builds(PrerequisiteMissing, tools=lists),
    st.builds(OutOfOrder, reason=st.just("it may be called once"), allowed=lists),
    st.builds(Placeholder, arguments=st.just((("total", "<total>"),))),
    st.builds(Repeated, times=st.integers(2, 3), others=lists),
    st.builds(BadArguments, problems=problems),
    st.builds(UnknownTool, known=lists),
)


@given(wrong=wrongs, words=st.text(max_size=20))
def test_no_correction_of_forge_s_passes_as_an_answer_whatever_is_written_before_it(wrong: Any, words: str) -> None:
    objection = Objection(wrong=wrong, call=ToolCall(id="call_1", name="respond", arguments="{}"))
    text, mistake = render(objection), mistake_of(wrong)
    told = refused(text, mistake.kind) if mistake.mark else User(text=text, kind=mistake.kind)
    state = State(history=(ASKED, told))
    assert is_echo(text, state, TOOLS)
    if not isinstance(wrong, UnknownTool | BadArguments | Empty | OutOfOrder):  # which have few words of their own
        assert is_echo(f"{words} {text}", state, TOOLS)


letters = st.text("ab c", max_size=160)


@given(said=letters, more=letters)
def test_what_somebody_else_said_first_is_never_an_echo(said: str, more: str) -> None:
    told = refused(f"[UngroundedArgument] respond was not run: message is {said} {more}")
    for before in (User(text=said), System(text=said), Assistant(text=said), Tool(call_id="c", name="log", text=said)):
        assert not is_echo(said, State(history=(before, told)), ())


@tool(effect="read")
def get_invoice(invoice: str) -> dict[str, int]:
    """Look up an invoice."""
    return {"total": 340}


WORDS = Workflow("words", tools=[get_invoice], on_text="accept")


@pytest.mark.parametrize("mode", ["native", "constrained"])
def test_words_that_end_a_run_are_not_a_correction(mode: Any) -> None:
    words = '{"answer":"[ToolError] no"}' if mode == "constrained" else "[ToolError] no"
    right = '{"answer":"340"}' if mode == "constrained" else "340"
    model = Scripted([words, right], mode=mode)
    run = run_sync(WORDS, ASKED.text, backend=model).unwrap()
    assert run.outcome == Said(text="340")
    assert b"Your reply repeats a note that was meant for you, not for the user." in model.requests[1]


def test_without_no_echoed_answers_nobody_looks_for_corrections_in_an_answer() -> None:
    taken = run_sync(
        dataclasses.replace(WORDS, without="no_echoed_answers"), "What?", backend=Scripted(["[NotRun] Look."])
    )
    assert taken.unwrap().outcome == Said(text="[NotRun] Look.")


def test_a_model_that_goes_on_repeating_it_ends_the_run_as_what_it_is() -> None:
    ended = run_sync(WORDS, ASKED.text, backend=Scripted(["[ToolError] no"] * 4))
    assert not is_successful(ended)
    assert isinstance(ended.failure().halt, BadReplies)


def test_words_of_a_user_s_own_replace_the_correction() -> None:
    workflow = dataclasses.replace(WORDS, nudges={"retry": "Say it yourself."})
    model = Scripted(["[NotRun] no", "340"])
    run_sync(workflow, ASKED.text, backend=model).unwrap()
    assert b"Say it yourself." in model.requests[1]
