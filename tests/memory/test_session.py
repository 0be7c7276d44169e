"""A session behind the five methods, saved, branched and shared: what others write is never lost or overwritten."""

import asyncio
from pathlib import Path

import pytest

from forge.agent.memory import InProcessStore, Session, SessionStore, SQLiteStore
from forge.errors import ContextBudgetExceeded, DefinitionError, SessionChangedError
from stages.effect import Execute
from stages.message import Assistant, Message, System, Tool, ToolCall, User
from stages.state import Awaiting, Batch, State

CALL = ToolCall(id="call_000000001", name="look", arguments="{}")
TALK: tuple[Message, ...] = (
    System(text="Be brief."),
    User(text="Look it up."),
    Assistant(calls=(CALL,), turn=1),
    Tool(call_id=CALL.id, name="look", text="7", turn=1),
    Assistant(text="It is 7.", turn=2),
)


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    """One of them: that all stores do the same is in test_stores."""
    return SQLiteStore(tmp_path / "memory.db")


async def talked(store: SessionStore, name: str = "monday") -> Session:
    session = Session(store, name)
    for message in TALK:
        await session.add_message(message)
    return session


async def test_the_five_methods(store: SessionStore) -> None:
    session = await talked(store)
    assert await session.get_messages() == TALK
    assert await session.get_messages("user", "tool") == (TALK[1], TALK[3])
    assert await session.get_recent(1) == TALK[4:]
    assert await session.get_recent(2) == TALK[2:]  # a result comes with its call
    await session.prune(10_000)
    assert await session.get_messages() == TALK
    await session.clear()
    assert await session.get_messages() == TALK[:1]


async def test_pruning_keeps_pairs_and_says_what_does_not_fit(store: SessionStore) -> None:
    session = await talked(store)
    await session.add_message(User(text="And now?"))
    await session.prune(45)
    left = await session.get_messages()
    assert left[0] == TALK[0]
    assert left[-1] == User(text="And now?", turn=2)
    assert len(left) < len(TALK) + 1
    with pytest.raises(ContextBudgetExceeded, match=r"what must stay takes about \d+ tokens, more than 1; nothing was"):
        await session.prune(1)
    assert await session.get_messages() == left


async def test_what_cannot_be_is_refused_before_anything_is_kept(store: SessionStore) -> None:
    session = Session(store, "monday")
    with pytest.raises(DefinitionError, match="not waiting for one"):
        await session.add_message(TALK[3])
    with pytest.raises(DefinitionError, match="must be one of system, user, assistant, tool"):
        await session.get_messages("usr")  # type: ignore[arg-type]  # that it is wrong is what is tested
    with pytest.raises(DefinitionError, match="whole number, at least 1"):
        await session.prune(0)
    with pytest.raises(DefinitionError, match="no session 'monday' to branch from"):
        await session.branch("tuesday")
    await session.clear()
    assert await store.sessions() == ()


@pytest.mark.parametrize("name", ["", " ", "a\nb", "\x1b[31mred", "\x00", "\ud800", "\u202eevil", "x" * 201])
def test_a_name_that_cannot_be_shown_is_refused(name: str) -> None:
    with pytest.raises(DefinitionError, match="session"):
        Session(InProcessStore(), name)


async def test_a_save_that_does_not_follow_is_refused_and_nothing_is_lost(store: SessionStore) -> None:
    session = await talked(store)
    state = await session.load()
    assert state is not None
    other = Session(store, "monday")
    with pytest.raises(SessionChangedError, match="already, which this one was not loaded from"):
        await other.save(state)
    await other.add_message(User(text="Me too"))
    with pytest.raises(SessionChangedError, match="was changed elsewhere after it was loaded; load it again"):
        await session.save(state.say(User(text="Mine")))
    assert await session.get_messages() == (*TALK, User(text="Me too", turn=2))
    again = await session.load()
    assert again is not None
    await session.save(again.say(User(text="Mine")))
    await session.save(again)  # one save follows another of the same object
    await other.delete()
    with pytest.raises(SessionChangedError, match="was deleted since it was loaded"):
        await session.save(state)


async def test_messages_added_at_the_same_time_are_all_kept(store: SessionStore) -> None:
    texts = [f"message {number}" for number in range(30)]
    await asyncio.gather(*(Session(store, "monday").add_message(User(text=text)) for text in texts))
    kept = await Session(store, "monday").get_messages()
    assert sorted(m.text for m in kept) == sorted(texts)


async def test_branches_go_their_own_way(store: SessionStore) -> None:
    session = await talked(store)
    whole = await session.branch("whole")
    cut = await session.branch("cut", messages=3)  # in the middle of an exchange, which is left out
    await session.clear()
    await whole.add_message(User(text="Thanks."))
    assert await whole.get_messages() == (*TALK, User(text="Thanks.", turn=2))
    assert await cut.get_messages() == TALK[:2]
    with pytest.raises(DefinitionError, match="a session 'cut' already"):
        await whole.branch("cut")


async def test_a_run_under_way_is_saved_whole_and_not_pruned(store: SessionStore) -> None:
    running = State(
        history=TALK[:2],
        phase=Awaiting(effect=Execute(calls=(CALL,)), batch=Batch(said=Assistant(calls=(CALL,), turn=1))),
    )
    session = Session(store, "monday")
    await session.save(running)
    assert await Session(store, "monday").load() == await session.load()
    with pytest.raises(DefinitionError, match="a run of the session is under way"):
        await session.prune(1)
    branch = await session.branch("other")
    left = await branch.get_messages()
    assert [type(m) for m in left] == [System, User, Assistant, Tool]  # the call is answered as interrupted


class SlowStore(InProcessStore):
    """Saves when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.saving, self.may_save = asyncio.Event(), asyncio.Event()

    async def save(self, name: str, state: State, *, after: int) -> int:
        self.saving.set()
        await self.may_save.wait()
        return await super().save(name, state, after=after)


async def test_a_cancelled_save_is_whole_and_the_next_one_follows_it() -> None:
    slow = SlowStore()
    session, state = Session(slow, "monday"), State(history=TALK)
    saving = asyncio.create_task(session.save(state))
    await slow.saving.wait()
    saving.cancel()
    slow.may_save.set()
    with pytest.raises(asyncio.CancelledError):
        await saving
    assert await session.get_messages() == TALK
    await session.save(state.say(User(text="It goes on.")))
