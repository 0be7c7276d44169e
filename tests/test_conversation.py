"""Conversations: what one run leaves to the next, and what it does not."""

import asyncio

import pytest
from returns.result import Failure

from forge import Conversation, Limits
from forge.errors import ForgeError, WatcherError
from forge.interpreters.scripted import Line, Scripted, call
from forge.testing import assert_answered
from stages.fold import collapsed
from stages.message import Assistant, History, Kind, System, Tool, User
from stages.saved import load, save
from stages.wire.deltas import Delta, Ended
from tests.flows import Desk

LOOK, FINISH = call("look", what="a"), call("finish", result="ok")


def outline(history: History) -> list[str]:
    return [f"{type(m).__name__}:{m.text[:12]}" for m in history]


def talk(*script: Line, **options: object) -> tuple[Conversation, Scripted]:
    model = Scripted(script)
    return Conversation(Desk(**options).workflow, backend=model), model


def test_what_was_said_goes_on_and_what_went_wrong_does_not() -> None:
    """Seed: transient messages are filtered between the turns of a conversation."""
    conversation, model = talk("Hm.", FINISH, LOOK, call("fail", how="once"), FINISH, LOOK, FINISH)
    conversation.say_sync("First.").unwrap()
    conversation.say_sync("Second.").unwrap()
    second = model.requests[5]
    assert b"Hm." not in second
    assert b"StepEnforcementError" not in second
    assert b"ToolError" in second  # fail never worked: that is worth knowing
    assert second.index(b"First.") < second.index(b"a is 7") < second.index(b"Second.")
    state = conversation.state
    assert state is not None
    assert_answered(state.history)
    assert sum(isinstance(m, System) for m in state.history) == 1
    ids = [c.id for m in state.history if isinstance(m, Assistant) for c in m.calls]
    assert len({*ids}) == len(ids)


def test_steps_and_budgets_are_those_of_each_message() -> None:
    conversation, _ = talk(LOOK, FINISH, FINISH, LOOK, FINISH, limits=Limits(max_iterations=3))
    conversation.say_sync("First.").unwrap()
    again = conversation.say_sync("Second.").unwrap()
    assert again.state.ledger.budget.calls == 0
    assert again.state.ledger.turn == 5


def test_after_a_halt_the_conversation_goes_on() -> None:
    conversation, model = talk("Hm.", "Hm.", LOOK, FINISH, limits=Limits(max_retries_per_step=1))
    assert isinstance(conversation.say_sync("First."), Failure)
    conversation.say_sync("Second.").unwrap()
    assert outline(model_history(conversation))[:3] == ["System:Do the work.", "User:First.", "User:Second."]
    assert b"Hm." not in model.requests[2]


def model_history(conversation: Conversation) -> History:
    assert conversation.state is not None
    return conversation.state.history


def test_a_saved_conversation_goes_on_elsewhere() -> None:
    first, _ = talk(LOOK, FINISH)
    first.say_sync("First.").unwrap()
    assert first.state is not None
    saved = save(first.state)
    model = Scripted([LOOK, FINISH])
    second = Conversation(Desk().workflow, backend=model, state=load(saved))
    second.say_sync("Second.").unwrap()
    assert b"First." in model.requests[0]


async def test_one_message_at_a_time_and_no_loop_within_a_loop() -> None:
    conversation, _ = talk(LOOK, FINISH)
    with pytest.raises(ForgeError, match=r"await conversation.say"):
        conversation.say_sync("First.")
    begun = asyncio.Event()
    running = asyncio.ensure_future(conversation.say("First.", on_event=lambda _: begun.set()))
    await begun.wait()
    with pytest.raises(ForgeError, match="the conversation is still running another message"):
        await conversation.say("Second.")
    (await running).unwrap()


def test_a_run_that_is_over_leaves_no_attempt_behind_even_if_nothing_worked() -> None:
    history: History = (
        User(text="Go."),
        Assistant(text="Hm."),
        User(text="Call.", kind=Kind.RETRY_NUDGE),
        Assistant(text="Kept.", pinned=True),
        User(text="Call.", kind=Kind.RETRY_NUDGE),
        Assistant(text="It is 7."),
    )
    assert collapsed(history) == history
    assert outline(collapsed(history, over=True)) == ["User:Go.", "Assistant:Kept.", "User:Call.", "Assistant:It is 7."]


def test_what_was_done_before_an_error_is_not_forgotten() -> None:
    conversation, _ = talk(LOOK, FINISH, FINISH)

    replies = iter((1, 2))

    def watch(delta: Delta) -> None:
        if isinstance(delta, Ended) and next(replies) == 2:
            raise ValueError("the screen is gone")

    with pytest.raises(WatcherError, match="the screen is gone"):
        conversation.say_sync("First.", on_chunk=watch)
    assert conversation.state is not None
    assert_answered(conversation.state.history)
    assert [m.text for m in conversation.state.history if isinstance(m, Tool)] == ["a is 7"]
