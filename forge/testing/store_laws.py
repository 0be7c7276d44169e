"""The laws of session stores and fact stores."""

import asyncio
from collections.abc import Callable
from typing import Literal
from uuid import uuid4

from hypothesis import strategies as st
from msgspec import Struct

from forge.agent.memory.protocol import FactStore, SavedSession, SessionStore
from forge.errors import SessionChangedError
from forge.testing.laws import BrokenLawError, try_laws
from forge.testing.strategies import states
from stages.memory import Fact, ranked, title
from stages.saved import load, save
from stages.state import State

# The laws of fact stores, tested by sequences of operations.

_TEXTS = (
    "Ada drinks tea.",
    "Ada has a DOG",
    "The dog is called Rex",
    "ein Tee für Zürich",
    "我喜欢喝茶",
    "?",
    "x' OR 1=1",
)
_QUERIES = ("", "tea", "the dog", "TEE zurich", "茶", '"dog" OR NEAR(tea*)', "AND", "no match", "'; --", "dog " * 500)


class _FactStep(Struct, frozen=True, kw_only=True):
    """One operation on the facts of a space. `number` is the limit of a recall, or which fact to forget."""

    do: Literal["remember", "recall", "forget"]
    space: int
    text: str
    query: str
    number: int


def assert_fact_store_laws(open_store: Callable[[], FactStore], *, max_examples: int = 50) -> None:
    """Test sequences of operations on the facts of the store, as `assert_session_store_laws` does."""
    steps = st.builds(
        _FactStep,
        do=st.sampled_from(("remember", "remember", "recall", "recall", "forget")),
        space=st.integers(0, 1),
        text=st.sampled_from(_TEXTS),
        query=st.sampled_from(_QUERIES),
        number=st.integers(0, 5),
    )

    series = st.lists(steps, min_size=1, max_size=15)
    try_laws(series, lambda steps: asyncio.run(_Spaces(open_store).follow(steps)), max_examples)


class _Spaces:
    """A model of the store's facts, compared with the store."""

    def __init__(self, open_store: Callable[[], FactStore]) -> None:
        self._open = open_store
        self._prefix = f"{uuid4().hex[:12]} "
        self._kept: dict[str, list[Fact]] = {}
        self._where = ""

    async def follow(self, steps: list[_FactStep]) -> None:
        for number, step in enumerate(steps, start=1):
            self._where = f"operation {number} of {len(steps)}: {step}"
            space = f"{self._prefix}{step.space}"
            kept = self._kept.setdefault(space, [])
            match step.do:
                case "remember":
                    self._remember(kept, await self._open().remember(space, step.text), step.text)
                case "recall":
                    found = await self._open().recall(space, step.query, limit=step.number)
                    if found != (wanted := ranked(kept, step.query, len(kept), step.number)):
                        remedy = "pass all facts that share a word to stages.memory.ranked, and return its result"
                        raise self._broken("recall finds what ranked does", f"{found}, not {wanted}", remedy)
                case "forget":
                    fact = kept[step.number % len(kept)].id if kept and step.number else -1
                    gone = await self._open().forget(space, fact)
                    if gone != any(one.id == fact for one in kept):
                        raise self._broken(
                            "forget says whether there was one", f"it said {gone}", "return False for none"
                        )
                    self._kept[space] = [one for one in kept if one.id != fact]

    def _broken(self, law: str, found: str, remedy: str) -> BrokenLawError:
        return BrokenLawError(law, found, remedy, self._where)

    def _remember(self, kept: list[Fact], fact: Fact, text: str) -> None:
        if same := next((one for one in kept if one.text == text), None):
            if fact != same:
                raise self._broken("a fact is kept once", f"{fact}, beside {same}", "return the one with the same text")
            return
        others = max((one.id for several in self._kept.values() for one in several), default=0)
        if fact.text != text or fact.id <= others:
            remedy = "give the new fact its text and an id that is higher than all before, in every space"
            raise self._broken("a new fact has its text and a higher id", f"{fact}, after id {others}", remedy)
        kept.append(fact)


# The laws of session stores, which an agent's memory relies on, tested by sequences of operations.

_NAMES = ("monday", "Monday", "monday ", "a'; DROP TABLE session; --", "../../%s", "größer 漢字 🙂", 'NULL"\\')


class _SessionStep(Struct, frozen=True, kw_only=True):
    """One operation on a session. `stale`: the number of saves by which a save is out of date."""

    do: Literal["save", "race", "load", "delete", "list"]
    name: str
    state: int = 0
    stale: int = 0


def assert_session_store_laws(open_store: Callable[[], SessionStore], *, max_examples: int = 50) -> None:
    """Test sequences of operations on the store. BrokenLawError for a broken law, with the shortest such sequence.

    `open_store` opens the same store each time, as another process would; it may return the same object. Existing data
    is not touched: the names used in the test have a unique prefix.
    """
    steps = st.builds(
        _SessionStep,
        do=st.sampled_from(("save", "save", "save", "race", "load", "load", "delete", "list")),
        name=st.sampled_from(_NAMES[:2]) | st.sampled_from(_NAMES),
        state=st.integers(0, 2),
        stale=st.sampled_from((0, 0, 0, 1, 2)),
    )

    saved = st.lists(states(max_turns=1), min_size=1, max_size=3)
    series = st.tuples(saved, st.lists(steps, min_size=1, max_size=12))
    try_laws(series, lambda case: asyncio.run(_Sessions(open_store, case[0]).follow(case[1])), max_examples)


class _Sessions:
    """A model of the store, compared with the store."""

    def __init__(self, open_store: Callable[[], SessionStore], states: list[State]) -> None:
        self._open = open_store
        self._states = states
        self._prefix = f"{uuid4().hex[:12]} "
        self._kept: dict[str, SavedSession] = {}
        self._seen: dict[str, list[int]] = {}
        self._last = 0
        self._where = ""

    async def follow(self, steps: list[_SessionStep]) -> None:
        for number, step in enumerate(steps, start=1):
            name, state = self._prefix + step.name, self._states[step.state % len(self._states)]
            self._where = f"operation {number} of {len(steps)}: {step.do} {step.name!r}"
            match step.do:
                case "save":
                    await self._save(name, state, step.stale)
                case "race":
                    await self._race(name, state)
                case "load":
                    found, kept = await self._open().load(name), self._kept.get(name)
                    if found != kept:
                        remedy = "keep what stages.saved.save gives, byte for byte, and commit before save returns"
                        told = f"{found!r}, and {kept!r} was saved"
                        raise self._broken("load returns what was saved last", told, remedy)
                case "delete":
                    gone = await self._open().delete(name)
                    if gone != (self._kept.pop(name, None) is not None):
                        remedy = "return False for none"
                        raise self._broken("delete says whether there was one", f"it said {gone}", remedy)
                case "list":
                    await self._list()

    def _broken(self, law: str, found: str, remedy: str) -> BrokenLawError:
        return BrokenLawError(law, found, remedy, self._where)

    def _revision(self, name: str) -> int:
        return self._kept[name].revision if name in self._kept else 0

    async def _save(self, name: str, state: State, stale: int) -> None:
        earlier = [0, *self._seen.get(name, ()), self._revision(name)]
        after = earlier[-1 - min(stale, len(earlier) - 1)]
        follows = after == self._revision(name)
        saved = await _tried(self._open(), name, state, after)
        if (saved is not None) != follows:
            law = "a save with an outdated revision is refused"
            found = f"after {after}, with the session at {self._revision(name)}, {'refused' if follows else 'taken'}"
            remedy = "compare the revision and write in one transaction; raise SessionChangedError for another"
            raise self._broken(law, found, remedy)
        if saved is not None:
            self._note(name, state, saved)

    async def _race(self, name: str, state: State) -> None:
        after = self._revision(name)
        saved = await asyncio.gather(*(_tried(self._open(), name, state, after) for _ in range(3)))
        taken = [one for one in saved if one is not None]
        if len(taken) != 1:
            remedy = "compare the revision and write in one transaction"
            raise self._broken("of concurrent saves, exactly one succeeds", f"{len(taken)} of 3 were", remedy)
        self._note(name, state, taken[0])

    def _note(self, name: str, state: State, revision: int) -> None:
        if revision <= self._last:
            remedy = "count revisions for the whole store, and never down: a session made anew is another one"
            raise self._broken("a later save has a higher revision", f"{revision} came after {self._last}", remedy)
        self._last = revision
        self._kept[name] = SavedSession(state=load(save(state)), revision=revision)
        self._seen.setdefault(name, []).append(revision)

    async def _list(self) -> None:
        listed = [one for one in await self._open().sessions() if one.name.startswith(self._prefix)]
        kept = sorted(self._kept.items(), key=lambda item: item[1].revision, reverse=True)
        wanted = [(name, title(one.state.history), len(one.state.history)) for name, one in kept]
        if [(one.name, one.title, one.messages) for one in listed] != wanted:
            remedy = "list names, stages.memory.title(history) and len(history), the highest revision first"
            raise self._broken("every session is listed, the last saved first", f"{listed}, not {wanted}", remedy)


async def _tried(store: SessionStore, name: str, state: State, after: int) -> int | None:
    """The revision of the save; None if it was refused."""
    try:
        return await store.save(name, state, after=after)
    except SessionChangedError:
        return None
