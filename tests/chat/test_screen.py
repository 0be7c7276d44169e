"""What a chat shows of each event: printed rows, and the line about what is under way."""

import pytest
from msgspec import Raw
from msgspec.structs import replace

from forge.cli.chat.screen import Printed, Spelled, excerpt, followed_by
from forge.cli.status import ComingReply, RunningTool, Screen, under_way
from forge.errors import explain
from stages import events
from stages.effect import (
    CallResult,
    Failed,
    Fault,
    HandOff,
    NeedsInput,
    Reply,
    Said,
    Succeeded,
    Unresolved,
)
from stages.halt import ApprovalNeeded, Cancelled, JournalFailed
from stages.message import Kind, ToolCall
from stages.state import Compaction, Completed
from stages.wire.deltas import Delta, ReasoningDelta, Retry, TextDelta

EVIL = "\x1b[2J\x07\u202e\nstopped  no"
CUT = Compaction(
    turn=1, phase=1, tokens_before=2000, tokens_after=500, budget_tokens=600, messages_before=9, messages_after=4
)
TOOL = RunningTool(call_id="c1", name="look", arguments='{"a":1}')
CALL = ToolCall(id="c1", name="look", arguments='{"a":1}')
CALLED = events.CallsAccepted(calls=(CALL,))
CONVERSE = ToolCall(id="c1", name="converse", arguments='{"message":"hi"}')
AT_WORK = Screen(running=(TOOL,))
BOTH = Screen(running=(TOOL, RunningTool(call_id="c2", name="find", arguments="{}")))
TALKING = Screen(running=(RunningTool(call_id="c1", name="converse", arguments="{}"),))


def stamped(event: events.Event | Delta, parent: str = "") -> events.Stamped:
    return events.Stamped(run="r", agent="expert", parent=parent, turn=1, event=event)


def rows(event: events.Event | Delta, screen: Screen | None = None, parent: str = "") -> list[tuple[str, str]]:
    _, printed = followed_by(screen or Screen(), stamped(event, parent))
    return [(one.label, one.text) if not isinstance(one, Spelled) else ("answer", one.markdown) for one in printed]


def replied(**reply: str) -> events.ModelReplied:
    return events.ModelReplied(turn=1, reply=Reply(**reply))  # type: ignore[arg-type]


def came(result: CallResult) -> events.ToolsReturned:
    return events.ToolsReturned(results=(result,))


ANSWER = events.RunFinished(outcome=Said(text="**7**"))
NEEDED = ApprovalNeeded(tool="pay", arguments="{}", reason="")
PRINTED: list[tuple[events.Event | Delta, list[tuple[str, str]]]] = [
    (events.RunStarted(message="hi"), []),
    (events.TurnStarted(turn=1, prompt_tokens=1, context_tokens=0, calls_left=1), []),
    (TextDelta(text="x"), []),
    (Retry(fault=Fault(kind="timeout", detail="slow"), attempt=1, seconds=2), [("retry", "in 2.0 seconds: slow")]),
    (replied(reasoning="one two\nthree"), [("thought", "3 words: one two three")]),
    (events.ModelReplied(turn=1, reply=Reply(reasoning="Hm."), summary=True), []),
    (
        events.CallsAccepted(calls=(CALL,), text="I look."),
        [("said", "I look."), ("runs", 'look {"a":1}')],
    ),
    (events.CallsAccepted(calls=(CONVERSE,)), []),
    (events.ApprovalAsked(call=CALL), [("approval", 'look {"a":1} needs a person\'s approval')]),
    (events.ToolProgressed(call_id="c1", name="look", text="half"), []),
    (events.ApprovalAnswered(call_id="c1", approved=False), []),
    (events.Nudged(kind=Kind.RETRY_NUDGE, text="No."), [("corrected", "the model was told: No.")]),
    (events.Warned(kind=Kind.ITERATION_WARNING, text="Full."), [("warning", "the model was told: Full.")]),
    (events.Warned(kind=Kind.PROGRESS_NOTE, text="Done: look."), []),
    (events.Steered(text="In euros."), [("heard", "In euros.")]),
    (
        events.HistoryCompacted(compaction=CUT),
        [("shortened", "the history, from about 2,000 to 500 tokens, 9 to 4 messages")],
    ),
    (ANSWER, [("answer", "**7**")]),
    (events.RunFinished(outcome=Completed(tool="done", value=Raw(b"null"))), []),
    (events.RunFinished(outcome=HandOff(to="billing", payload="A-17")), [("done", "handed over to billing: A-17")]),
    (events.RunHalted(halt=Cancelled(turns=1, completed=())), [("cancelled", "send another message, or /continue")]),
    (events.RunHalted(halt=NEEDED), [("halted", "pay needs a person's approval, and nobody is there to ask")]),
    (
        events.RunHalted(halt=JournalFailed(problem="the disk is full")),
        [("halted", explain(JournalFailed(problem="the disk is full"))), ("", "/continue tries again")],
    ),
    (events.RunFailed(problem="it broke\ntwice"), [("halted", "it broke\ntwice")]),
]


@pytest.mark.parametrize(
    ("event", "printed"), PRINTED, ids=[f"{n} {type(e).__name__}" for n, (e, _) in enumerate(PRINTED)]
)
def test_what_is_printed_of_an_event(event: events.Event | Delta, printed: list[tuple[str, str]]) -> None:
    assert rows(event) == printed


@pytest.mark.parametrize(
    ("result", "screen", "printed"),
    [
        (Succeeded(call_id="c1", text="7"), AT_WORK, [("result", "7")]),
        (Succeeded(call_id="c1", text="[a] x"), AT_WORK, [("result", "[a] x")]),
        (Unresolved(call_id="c1", message="no a"), AT_WORK, [("failed", "no a")]),
        (Succeeded(call_id="c9", text="of a call that was refused"), AT_WORK, []),
        (Succeeded(call_id="c2", text="7"), BOTH, [("result", "find: 7")]),
        (Succeeded(call_id="c1", text="the answer itself"), TALKING, []),
        (Failed(call_id="c1", error="ValueError", message="empty"), TALKING, [("failed", "ValueError: empty")]),
    ],
)
def test_what_is_printed_of_a_result(result: CallResult, screen: Screen, printed: list[tuple[str, str]]) -> None:
    assert rows(came(result), screen) == printed


def test_what_an_agent_within_does_is_told_with_its_name_and_its_answer_is_the_result() -> None:
    assert rows(CALLED, parent="p") == [("runs", 'expert: look {"a":1}')]
    assert rows(ANSWER, parent="p") == []
    assert rows(events.RunHalted(halt=NEEDED), parent="p") == []


def test_what_a_model_says_beside_its_calls_is_told_once_a_turn() -> None:
    said = events.CallsAccepted(calls=(CALL,), text="I look.")
    screen, _ = followed_by(Screen(), stamped(said))
    assert rows(said, screen) == []


def test_an_edited_call_with_an_id_of_its_own_is_the_only_one_that_runs() -> None:
    screen, _ = followed_by(AT_WORK, stamped(events.ApprovalAnswered(call_id="c1", approved=True)))
    edited = ToolCall(id="c2", name="look", arguments='{"a":2}')
    screen, _ = followed_by(screen, stamped(events.CallsAccepted(calls=(edited,))))
    assert ([one.call_id for one in screen.running], screen.approved) == (["c2"], ())


def test_a_call_that_nobody_could_be_asked_about_was_not_run() -> None:
    first, *_ = rows(events.RunHalted(halt=NEEDED), AT_WORK)
    assert first == ("result", "It was not run.")
    after, _ = followed_by(AT_WORK, stamped(events.RunHalted(halt=NEEDED)))
    assert after == Screen(told=True)


@pytest.mark.parametrize(
    ("arguments", "said"), [('{"a":1}', [("allowed", "by you")]), ('{"a":2}', [("allowed", 'by you with {"a":2}')])]
)
def test_an_approval_says_what_was_changed(arguments: str, said: list[tuple[str, str]]) -> None:
    screen, _ = followed_by(AT_WORK, stamped(events.ApprovalAnswered(call_id="c1", approved=True)))
    allowed = events.CallsAccepted(calls=(replace(CALL, arguments=arguments),))
    assert rows(allowed, screen) == said
    after, _ = followed_by(screen, stamped(allowed))
    assert after.approved == ()


HOSTILE: list[events.Event | Delta] = [
    replied(reasoning=EVIL),
    events.CallsAccepted(calls=(ToolCall(id="c2", name=EVIL, arguments=EVIL),), text=EVIL),
    came(Succeeded(call_id="c1", text=EVIL)),
    events.Nudged(kind=Kind.RETRY_NUDGE, text=EVIL),
    events.Warned(kind=Kind.ITERATION_WARNING, text=EVIL),
    events.Steered(text=EVIL),
    Retry(fault=Fault(kind="timeout", detail=EVIL), attempt=1, seconds=1),
    events.RunFinished(outcome=NeedsInput(question=EVIL, suggestions=(EVIL,))),
    events.RunFinished(outcome=HandOff(to=EVIL, payload=EVIL)),
    events.RunFailed(problem=EVIL),
]


def said(one: Printed) -> str:
    return "".join((one.markdown, *one.suggestions)) if isinstance(one, Spelled) else one.label + one.text


@pytest.mark.parametrize("event", HOSTILE, ids=[f"{n} {type(e).__name__}" for n, e in enumerate(HOSTILE)])
def test_nothing_that_controls_a_terminal_is_printed(event: events.Event | Delta) -> None:
    _, printed = followed_by(AT_WORK, stamped(event))
    assert printed
    assert all(c.isprintable() or c == "\n" for one in printed for c in said(one))


@pytest.mark.parametrize(
    ("screen", "now"),
    [
        (Screen(), ("working", "")),
        (Screen(asked=True), ("reading", "")),
        (Screen(asked=True, summing=True), ("compacting the conversation", "")),
        (Screen(asked=True, reply=ComingReply(text="Hel\x1blo")), ("answering", "Hel�lo")),
        (Screen(asked=True, reply=ComingReply(text="[{")), ("writing", "")),
        (Screen(asked=True, reply=ComingReply(reasoning="a b")), ("thinking, 2 words: …a b", "")),
        (Screen(asked=True, reply=ComingReply(call="look")), ("calling look", "")),
        (Screen(asked=True, reply=ComingReply(call="look", arguments='{"a":"\x1b')), ('calling look: …{"a":"�', "")),
        (
            Screen(running=(TOOL, RunningTool(call_id="c2", name="n\x1bn", arguments="", progress="3\nof 4\x1b"))),
            ("running n�n (and 1 more): 3 of 4�", ""),
        ),
    ],
)
def test_what_is_under_way(screen: Screen, now: tuple[str, str]) -> None:
    assert under_way(screen) == now


def test_a_turn_from_the_question_to_the_answer() -> None:
    screen, seen = Screen(), list[str]()
    for event in (
        events.TurnStarted(turn=1, prompt_tokens=1, context_tokens=0, calls_left=1),
        ReasoningDelta(text="Hm."),
        TextDelta(text="Hello"),
        replied(reasoning="Hm.", text="Hello"),
        events.ApprovalAsked(call=CALL),
        events.ApprovalAnswered(call_id="c1", approved=True),
        CALLED,
        events.ToolProgressed(call_id="c1", name="look", text="half"),
        came(Succeeded(call_id="c1", text="7")),
    ):
        screen, _ = followed_by(screen, stamped(event))
        seen.append(under_way(screen)[0])
    assert list(dict.fromkeys(seen)) == [
        *("reading", "thinking, 1 word: …Hm.", "answering", "working"),
        *("asking about look", "running look", "running look: half"),
    ]
    assert seen[-1] == "working"
    screen, _ = followed_by(screen, stamped(ANSWER))
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
