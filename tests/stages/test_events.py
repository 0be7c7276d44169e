"""Events: each transition is told once, in the order in which a person would tell it."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from stages.compaction import ContextBudget
from stages.effect import (
    Approved,
    Ask,
    Budget,
    Execute,
    Fault,
    NotRun,
    Outcome,
    Rejected,
    Replied,
    Reply,
    Request,
    Send,
    Settled,
    Succeeded,
    Undelivered,
)
from stages.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallsAccepted,
    Event,
    FellBack,
    HistoryCompacted,
    MessageAdded,
    ModelFailed,
    ModelReplied,
    Notice,
    Nudged,
    RunFinished,
    SummaryAsked,
    SummaryFailed,
    ToolsReturned,
    TurnStarted,
    closing,
    facts,
    following,
    new_messages,
    observe,
    told,
)
from stages.message import Assistant, Kind, Tool, UnknownCall, User
from stages.state import (
    Awaiting,
    Batch,
    Compaction,
    Completed,
    Done,
    Executed,
    Phase,
    Ready,
    State,
    SummaryOrder,
    Vetted,
)

CALL = UnknownCall(id="call_1", name="look", arguments="{}")
BEFORE = State(history=(User(text="Go."),)).note(turn=1, budget=Budget(calls=4))
SEND = Send(request=Request(), turn=1)
DONE = Succeeded(call_id="call_1", text="7")
ASKING = Awaiting(effect=Ask(call=CALL, digest="d"))
UNSURE = Awaiting(effect=Ask(call=CALL, digest="d", in_doubt=CALL))
REPLY = Reply(text="Hello.")
FAULT = Fault(kind="timeout", detail="slow")
ORDER = SummaryOrder(text="Sum up.", messages=3, shortest=1, budget=ContextBudget(tokens=100))


@pytest.mark.parametrize(
    ("phase", "event"),
    [
        (Awaiting(effect=SEND, summary=ORDER), SummaryAsked(turn=1, messages=3, calls_left=4)),
        (Awaiting(effect=Execute(calls=(CALL,))), CallsAccepted(calls=(CALL,))),
        (Awaiting(effect=Ask(call=CALL, digest="d", problem="p")), ApprovalAsked(call=CALL, problem="p")),
        (Executed(batch=Batch(results=(DONE,))), ToolsReturned(results=(DONE,))),
        (
            Done(outcome=Completed(tool="finish", value=Raw(b"7"))),
            RunFinished(outcome=Completed(tool="finish", value=Raw(b"7"))),
        ),
    ],
)
def test_where_a_run_arrives_is_one_event(phase: Phase, event: Event) -> None:
    assert observe(BEFORE, BEFORE.to(phase)) == (event,)


def test_a_turn_begins_with_what_it_takes_and_what_is_left() -> None:
    after = BEFORE.to(Awaiting(effect=SEND)).note(context_tokens=1_000, prompt_size=400)
    (event,) = observe(BEFORE, after)
    assert isinstance(event, TurnStarted)
    assert (event.turn, event.context_tokens, event.calls_left) == (1, 1_000, 4)
    assert 50 < event.prompt_tokens < 400


@pytest.mark.parametrize(
    ("phase", "outcome", "event"),
    [
        (Awaiting(effect=SEND), Replied(reply=REPLY, seconds=2.0), ModelReplied(turn=1, reply=REPLY, seconds=2.0)),
        (Awaiting(effect=SEND), Undelivered(fault=FAULT, attempts=2), ModelFailed(turn=1, problem="slow", attempts=2)),
        (ASKING, Approved(digest="d"), ApprovalAnswered(call_id="call_1", approved=True, arguments="{}")),
        (ASKING, Rejected(digest="d", reason="no"), ApprovalAnswered(call_id="call_1", approved=False)),
        (UNSURE, Settled(digest="d", happened=True), ApprovalAnswered(call_id="call_1", approved=False, happened=True)),
    ],
)
def test_what_the_world_answers_is_told_first(phase: Phase, outcome: Outcome, event: Event) -> None:
    waiting = BEFORE.to(phase)
    assert observe(waiting, BEFORE.say(User(text="More.")), outcome)[:1] == (event,)
    assert observe(waiting, waiting, outcome) == (event,), "where it ends the run, nothing else is told"


@pytest.mark.parametrize("phase", [Awaiting(effect=SEND), Awaiting(effect=Execute(calls=(CALL,))), ASKING])
def test_what_is_cut_short_has_an_end(phase: Phase) -> None:
    (event,) = closing(BEFORE.to(phase))
    assert isinstance(event, ModelFailed | ToolsReturned | ApprovalAnswered)
    assert closing(BEFORE) == ()


def test_events_are_numbered_after_the_effect_that_they_follow() -> None:
    state = State(history=()).note(effects=2)
    assert following((1, 7), state) == (2, 1)
    assert following((2, 1), state) == (2, 2)


def test_only_the_results_that_are_new_are_told() -> None:
    other = replace(DONE, call_id="call_2")
    waiting = BEFORE.to(Awaiting(effect=Execute(calls=(CALL,)), batch=Batch(results=(DONE,))))
    assert observe(waiting, waiting.to(Executed(batch=Batch(results=(DONE, other))))) == (
        ToolsReturned(results=(other,)),
    )


def test_calls_that_the_turn_itself_answers_are_told_once() -> None:
    no = NotRun(call_id="call_1", reason="pay was not approved")
    begun, batch = BEFORE.to(Vetted(said=Assistant(calls=(CALL,)))), Batch(results=(no,))
    runs = begun.to(Awaiting(effect=Execute(calls=(CALL,)), batch=batch))
    assert observe(begun, runs) == (ToolsReturned(results=(no,)), CallsAccepted(calls=(CALL,)))

    answer = Tool(call_id="call_1", name="pay", text="[NotRun] pay was not approved", status="not_run")
    over = BEFORE.to(Ready()).say(answer)
    assert observe(begun, over) == (MessageAdded(message=answer), ToolsReturned(results=(no,)))
    assert observe(begun.to(Executed(batch=batch)), over) == (MessageAdded(message=answer),)


def test_messages_are_told_then_what_corrects_then_the_rest() -> None:
    nudge = Tool(call_id="call_1", name="look", text="Not yet.", kind=Kind.STEP_NUDGE)
    cut = Compaction(
        turn=1, phase=1, tokens_before=9, tokens_after=5, budget_tokens=9, messages_before=2, messages_after=1
    )
    after = BEFORE.say(Assistant(calls=(CALL,)), nudge).note(
        compactions=(cut,), summary_failures=("too long",), fallback="no tools"
    )
    assert observe(BEFORE, after) == (
        MessageAdded(message=Assistant(calls=(CALL,))),
        MessageAdded(message=nudge),
        Nudged(kind=Kind.STEP_NUDGE, text="Not yet."),
        FellBack(reason="no tools"),
        SummaryFailed(problem="too long"),
        HistoryCompacted(compaction=cut),
    )


def test_a_reshaped_history_adds_no_message() -> None:
    assert new_messages(BEFORE, BEFORE.say(User(text="More."))) == (User(text="More."),)
    assert new_messages(BEFORE.say(User(text="More.")), BEFORE) == ()
    assert new_messages(BEFORE, replace(BEFORE, history=(User(text="Stop."), User(text="More.")))) == ()


@pytest.mark.parametrize("kind", get_args(Notice), ids=lambda kind: str(kind.__name__))
@given(data=st.data())
def test_every_notice_has_words_and_what_is_logged_of_it_quotes_nobody(kind: type[Notice], data: st.DataObject) -> None:
    quoted = {name: "QUOTED" for name in ("text", "problem", "reason") if name in kind.__struct_fields__}
    event = replace(data.draw(st.from_type(kind)), **quoted)
    words = told(event)
    assert words.title or (words.label and words.text)
    assert "QUOTED" not in words.log + str(facts(event))
