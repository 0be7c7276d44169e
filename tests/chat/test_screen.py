"""What a chat shows of each event: printed rows, and the line about what is under way."""

import pytest

from forge.agent import events
from forge.agent.events import AgentEvent
from forge.cli.chat.screen import Printed, RunningTool, Screen, Spelled, followed_by, under_way
from forge.cli.chat.wording import ComingReply, excerpt
from stages.effect import Fault, HandOff
from stages.halt import ApprovalNeeded, Cancelled
from stages.message import Kind
from stages.state import Compaction
from stages.wire.deltas import ReasoningDelta, Retry, TextDelta

EVIL = "\x1b[2J\x07\u202e\nstopped  no"
CUT = Compaction(
    turn=1, phase=1, tokens_before=2000, tokens_after=500, budget_tokens=600, messages_before=9, messages_after=4
)
TOOL = RunningTool(call_id="c1", name="look", arguments='{"a":1}')
CALL = events.ToolCallEvent(call_id="c1", name="look", arguments='{"a":1}')


def rows(event: AgentEvent, screen: Screen | None = None) -> list[tuple[str, str]]:
    _, printed = followed_by(screen or Screen(), event)
    return [(one.label, one.text) if not isinstance(one, Spelled) else ("answer", one.markdown) for one in printed]


PRINTED: list[tuple[AgentEvent, list[tuple[str, str]]]] = [
    (events.TurnStartEvent(message="hi"), []),
    (events.ModelCallStartEvent(), []),
    (events.DeltaEvent(delta=TextDelta(text="x")), []),
    (
        events.DeltaEvent(delta=Retry(fault=Fault(kind="timeout", detail="slow"), attempt=1, seconds=2)),
        [("retry", "in 2.0 seconds: slow")],
    ),
    (events.ThinkingEvent(text="one two\nthree"), [("thought", "3 words: one two three")]),
    (events.RemarkEvent(text="I look."), [("says", "I look.")]),
    (CALL, [("calls", 'look {"a":1}')]),
    (events.ToolCallEvent(call_id="c1", name="converse", arguments='{"message":"hi"}'), []),
    (events.ToolProgressEvent(call_id="c1", text="half"), []),
    (events.ToolResultEvent(call_id="c1", name="look", status="succeeded", text="7"), [("result", "7")]),
    (
        events.ToolResultEvent(call_id="c1", name="look", status="unresolved", text="[ToolResolutionError] no a"),
        [("result", "no a")],
    ),
    (events.ToolResultEvent(call_id="c1", name="look", status="failed", text="[1, 2] x"), [("result", "[1, 2] x")]),
    (events.ToolResultEvent(call_id="c1", name="look", status="succeeded", text="[a] x"), [("result", "[a] x")]),
    (events.ToolResultEvent(call_id="c1", name="converse", status="succeeded", text="hi"), []),
    (events.ToolResultEvent(call_id="c1", name="converse", status="failed", text="empty"), [("result", "empty")]),
    (events.ApprovalStartEvent(call_id="c1"), []),
    (events.ApprovalEndEvent(call_id="c1", approved=False), []),
    (events.CorrectionEvent(kind=Kind.RETRY_NUDGE, text="No."), [("corrected", "No.")]),
    (events.WarningEvent(kind=Kind.CONTEXT_WARNING, text="Full."), [("warned", "Full.")]),
    (events.WarningEvent(kind=Kind.PROGRESS_NOTE, text="Done: look."), []),
    (events.SteeredEvent(text="In euros."), [("heard", "In euros.")]),
    (
        events.CompactionEvent(compaction=CUT),
        [("shortened", "from 2,000 to 500 tokens")],
    ),
    (events.ChildEvent(agent="expert", call_id="c0", event=CALL), [("calls", 'expert: look {"a":1}')]),
    (events.ChildEvent(agent="expert", call_id="c0", event=events.MessageEvent(text="7")), []),
    (events.MessageEvent(text="**7**"), [("answer", "**7**")]),
    (
        events.TurnCompleteEvent(halt=Cancelled(turns=1, completed=())),
        [("cancelled", "say something else, or /continue")],
    ),
    (
        events.TurnCompleteEvent(halt=ApprovalNeeded(tool="pay", arguments="{}", reason="")),
        [("stopped", "pay needs a person's approval, and nobody is there to ask")],
    ),
    (events.TurnCompleteEvent(outcome=HandOff(to="billing", payload="A-17")), [("hand-off", "to billing: A-17")]),
    (events.TurnCompleteEvent(), []),
]


@pytest.mark.parametrize(
    ("event", "printed"), PRINTED, ids=[f"{n} {type(e).__name__}" for n, (e, _) in enumerate(PRINTED)]
)
def test_what_is_printed_of_an_event(event: AgentEvent, printed: list[tuple[str, str]]) -> None:
    assert rows(event) == printed


def test_every_kind_of_event_is_in_the_table_or_told_with_the_end() -> None:
    assert {type(event) for event, _ in PRINTED} == {*AgentEvent.__args__} - {
        events.ModelCallEndEvent,
        events.ErrorEvent,
    }


def test_why_there_is_no_answer_is_told_with_the_end_and_once() -> None:
    screen, printed = followed_by(Screen(), events.ErrorEvent(text="the server is gone\ntry again"))
    assert printed == ()
    assert rows(events.TurnCompleteEvent(), screen) == [("stopped", "the server is gone"), ("", "try again")]
    after, _ = followed_by(screen, events.TurnCompleteEvent())
    assert after.told
    assert rows(events.TurnCompleteEvent(), after) == []


@pytest.mark.parametrize(
    ("arguments", "said"), [('{"a":1}', [("allowed", "by you")]), ('{"a":2}', [("allowed", 'by you with {"a":2}')])]
)
def test_an_approval_says_what_was_changed(arguments: str, said: list[tuple[str, str]]) -> None:
    event = events.ApprovalEndEvent(call_id="c1", approved=True, arguments=arguments)
    assert rows(event, Screen(running=(TOOL,))) == said


HOSTILE: list[AgentEvent] = [
    events.ThinkingEvent(text=EVIL),
    events.RemarkEvent(text=EVIL),
    events.ToolCallEvent(call_id="c1", name=EVIL, arguments=EVIL),
    events.ToolResultEvent(call_id="c1", name=EVIL, status="succeeded", text=EVIL),
    events.CorrectionEvent(kind=Kind.RETRY_NUDGE, text=EVIL),
    events.WarningEvent(kind=Kind.CONTEXT_WARNING, text=EVIL),
    events.SteeredEvent(text=EVIL),
    events.MessageEvent(text=EVIL, suggestions=(EVIL,)),
    events.ChildEvent(agent=EVIL, call_id="c0", event=events.RemarkEvent(text=EVIL)),
    events.DeltaEvent(delta=Retry(fault=Fault(kind="timeout", detail=EVIL), attempt=1, seconds=1)),
    events.TurnCompleteEvent(outcome=HandOff(to=EVIL, payload=EVIL)),
]


def said(one: Printed) -> str:
    return "".join((one.markdown, *one.suggestions)) if isinstance(one, Spelled) else one.label + one.text


@pytest.mark.parametrize("event", HOSTILE, ids=[f"{n} {type(e).__name__}" for n, e in enumerate(HOSTILE)])
def test_nothing_that_controls_a_terminal_is_printed(event: AgentEvent) -> None:
    _, printed = followed_by(Screen(), event)
    assert printed
    assert all(c.isprintable() or c == "\n" for one in printed for c in said(one))


@pytest.mark.parametrize(
    ("screen", "now"),
    [
        (Screen(), ("working", "")),
        (Screen(asked=True), ("reading", "")),
        (Screen(asked=True, summing=True), ("shortening the conversation", "")),
        (Screen(asked=True, reply=ComingReply(text="Hel\x1blo")), ("answering", "Hel�lo")),
        (Screen(asked=True, reply=ComingReply(text="[{")), ("writing", "")),
        (Screen(asked=True, reply=ComingReply(reasoning="a b")), ("thinking, 2 words: …a b", "")),
        (Screen(asked=True, reply=ComingReply(call="look")), ("calling look", "")),
        (Screen(running=(TOOL,)), ("running look", "")),
        (
            Screen(running=(TOOL, RunningTool(call_id="c2", name="n\x1bn", arguments="", progress="3\nof 4\x1b"))),
            ("running n�n (and 1 more): 3 of 4�", ""),
        ),
    ],
)
def test_what_is_under_way(screen: Screen, now: tuple[str, str]) -> None:
    assert under_way(screen) == now


def test_a_tool_is_under_way_from_its_call_to_its_result() -> None:
    screen, _ = followed_by(Screen(), CALL)
    screen, _ = followed_by(screen, events.ToolProgressEvent(call_id="c1", text="half"))
    assert under_way(screen) == ("running look: half", "")
    screen, _ = followed_by(screen, events.ToolResultEvent(call_id="c1", name="look", status="succeeded", text="7"))
    assert screen.running == ()


def test_of_several_results_each_names_its_tool() -> None:
    both = Screen(running=(TOOL, RunningTool(call_id="c2", name="find", arguments="{}")))
    result = events.ToolResultEvent(call_id="c2", name="find", status="succeeded", text="7")
    assert rows(result, both) == [("result", "find: 7")]


def test_a_reply_grows_until_it_is_there_and_the_thought_stays() -> None:
    screen = Screen()
    for event in (
        events.ModelCallStartEvent(),
        events.DeltaEvent(delta=ReasoningDelta(text="Hm.")),
        events.DeltaEvent(delta=TextDelta(text="Hello")),
    ):
        screen, _ = followed_by(screen, event)
    assert under_way(screen) == ("answering", "Hello")
    for end in (events.ModelCallEndEvent(), events.ThinkingEvent(text="Hm."), events.TurnCompleteEvent()):
        screen, _ = followed_by(screen, end)
    assert screen == Screen(thought="Hm.", told=True)


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        ("", "(nothing)"),
        ("7", "7"),
        ("a\n\tb", "a\n    b"),
        ("1\n2\n3\n4\n5", "1\n2\n3\n4\n… 1 more line"),
        ("x" * 200, "x" * 160 + "… (40 more)"),
    ],
)
def test_a_result_is_shown_in_short(result: str, shown: str) -> None:
    assert excerpt(result) == shown
