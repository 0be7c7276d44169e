"""The laws that every store obeys, on forge's own; and that the kit finds what a store of somebody's gets wrong."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from forge.agent.memory import Fact, InProcessStore, SavedSession, SQLiteStore
from forge.errors import SessionChangedError
from forge.testing import BrokenLawError, assert_fact_store_laws, assert_session_store_laws
from stages.state import State

AnyStore = InProcessStore | SQLiteStore


@pytest.fixture(params=["process", "sqlite"])
def open_store(request: pytest.FixtureRequest) -> Iterator[Callable[[], AnyStore]]:
    # In memory where the system has such a folder: a disk waits for each of some thousand saves.
    memory = Path("/dev/shm")  # noqa: S108 - only if it is there
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        store = InProcessStore()
        opened: dict[str, Callable[[], AnyStore]] = {
            "process": lambda: store,
            "sqlite": lambda: SQLiteStore(Path(folder) / "memory.db"),
        }
        yield opened[request.param]


def test_sessions_obey_the_laws(open_store: Callable[[], AnyStore]) -> None:
    assert_session_store_laws(open_store, max_examples=30)


def test_facts_obey_the_laws(open_store: Callable[[], AnyStore]) -> None:
    assert_fact_store_laws(open_store, max_examples=40)


class LastOneWins(InProcessStore):
    async def save(self, name: str, state: State, *, after: int) -> int:
        while True:
            with suppress(SessionChangedError):
                return await super().save(name, state, after=after)
            saved = await self.load(name)
            after = saved.revision if saved else 0


class RevisionsBySession(InProcessStore):
    async def delete(self, name: str) -> bool:
        self._revisions = count(1)
        return await super().delete(name)


class SaysYes(InProcessStore):
    async def delete(self, name: str) -> bool:
        await super().delete(name)
        return True

    async def forget(self, space: str, fact: int) -> bool:
        await super().forget(space, fact)
        return True


class Forgetful(InProcessStore):
    async def load(self, name: str) -> SavedSession | None:
        saved = await super().load(name)
        return saved and SavedSession(state=State(history=saved.state.history), revision=saved.revision)

    async def recall(self, space: str, query: str, *, limit: int) -> tuple[Fact, ...]:
        return (await super().recall(space, query, limit=limit))[1:]


class OneSpace(InProcessStore):
    async def remember(self, space: str, text: str) -> Fact:
        return await super().remember("", text)

    async def recall(self, space: str, query: str, *, limit: int) -> tuple[Fact, ...]:
        return await super().recall("", query, limit=limit)


class OldestFirst(InProcessStore):
    async def sessions(self):  # type: ignore[no-untyped-def]  # noqa: ANN201
        return (await super().sessions())[::-1]


@pytest.mark.usefixtures("unshrunk")
@pytest.mark.parametrize(
    ("wrong", "law"),
    [
        (LastOneWins, "outdated revision|exactly one succeeds"),
        (RevisionsBySession, "higher revision|is refused"),
        (SaysYes, "delete says whether"),
        (Forgetful, "load returns what was saved last"),
        (OldestFirst, "the last saved first"),
    ],
)
def test_the_kit_finds_a_wrong_session_store(wrong: type[InProcessStore], law: str) -> None:
    store = wrong()
    with pytest.raises(BrokenLawError, match=law) as broken:
        # What Hypothesis draws depends on the modules that are imported, so a hundred miss a mistake now and then.
        assert_session_store_laws(lambda: store, max_examples=1_000)
    assert "what to do:" in str(broken.value)
    assert "operation" in str(broken.value)


@pytest.mark.usefixtures("unshrunk")
@pytest.mark.parametrize(
    ("wrong", "law"),
    [
        (SaysYes, "forget says whether"),
        (Forgetful, "recall finds what ranked does"),
        (OneSpace, "recall finds|kept once|higher id"),
    ],
)
def test_the_kit_finds_a_wrong_fact_store(wrong: type[InProcessStore], law: str) -> None:
    store = wrong()
    with pytest.raises(BrokenLawError, match=law):
        assert_fact_store_laws(lambda: store, max_examples=1_000)
