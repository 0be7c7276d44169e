"""What a memory is: five functions, the names it takes, facts, and one that lives in the process."""

import time
from collections.abc import Sequence
from itertools import count
from typing import Protocol

from msgspec import Struct

from forge.errors import DefinitionError, SessionChangedError, checked_options
from stages.memory import Fact, Role, ranked, title
from stages.message import History, Message
from stages.options import Count
from stages.repair.decoding import sound
from stages.saved import load, save
from stages.state import State

# Names of sessions and spaces, checked before a store sees them.

_LONGEST = 200


def checked_name(name: str, what: str) -> str:
    """The name, if it is printable text of 1 to 200 characters; DefinitionError, in words, if it is not.

    A name is shown in terminals and lists, so it holds no control characters. Everything else is data to a store:
    quotes, slashes and dots mean nothing.
    """
    if not isinstance(name, str):
        raise DefinitionError((f"the name of {what} is {name!r:.200}; it must be a string",))
    if not 0 < len(name) <= _LONGEST:
        raise DefinitionError((f"the name of {what} has {len(name)} characters; it must have 1 to {_LONGEST}",))
    if strange := [one for one in name if not (one.isprintable() or one in _JOINERS)]:
        raise DefinitionError(
            (f"the name of {what}, {name!a}, has the character {strange[0]!a}, which cannot be printed",)
        )
    if not name.strip():
        raise DefinitionError((f"the name of {what} is blank",))
    return name


_JOINERS = "\u200d\ufe0f"
"""Characters inside emoji, which Python does not call printable."""


# The protocols of memory: what an agent asks of a session, and what anyone's own store has to do.


class Memory(Protocol):
    """A conversation that is kept, behind five methods. `Session` is one, over any store."""

    async def add_message(self, message: Message) -> None:
        """Keep the message, after all others."""

    async def get_messages(self, *roles: Role) -> History:
        """All messages, or those of these roles."""

    async def get_recent(self, count: int) -> History:
        """The last `count` messages, and the calls that the first of them answer."""

    async def prune(self, max_tokens: int) -> None:
        """Shorten the conversation to at most so many tokens; calls keep their results, the system prompt stays."""

    async def clear(self) -> None:
        """Forget what was said; the system prompt stays."""


class SavedSession(Struct, frozen=True, kw_only=True):
    """A session as it was saved. No two saves of a store have the same `revision`; a later one has a higher."""

    state: State
    revision: int


def unchanged(before: Sequence[object], after: Sequence[bytes]) -> int:
    """The number of messages at the beginning that are the same, which a store can leave as they are."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((at for at, (old, new) in pairs if old != new), min(len(before), len(after)))


class SessionSummary(Struct, frozen=True, kw_only=True):
    """What a list says of a session: its name, how it began, its messages, and when it was saved (Unix seconds)."""

    name: str
    title: str
    messages: int
    saved: float


class SessionStore(Protocol):
    """Where sessions are kept. `forge.testing.assert_session_store_laws` tests yours.

    Names are as `Session` lets them pass: printable, 1 to 200 characters. A save is whole or not at all, whoever
    writes beside it, and whenever the process ends.
    """

    async def load(self, name: str) -> SavedSession | None:
        """The session, as `stages.saved.load` gives it; None: there is none of this name."""

    async def save(self, name: str, state: State, *, after: int) -> int:
        """Save the session and return its new revision; 0 for `after`: it is new.

        SessionChangedError unless its revision is `after`: another has saved or deleted it since.
        """

    async def sessions(self) -> tuple[SessionSummary, ...]:
        """All sessions, the last saved first."""

    async def delete(self, name: str) -> bool:
        """Delete the session; False: there was none of this name."""


class FactStore(Protocol):
    """Where facts are kept, apart by `space`: a user, a project. `forge.testing.assert_fact_store_laws` tests yours."""

    async def remember(self, space: str, text: str) -> Fact:
        """Keep the fact; one with the same text in the space is returned as it is, and not kept twice."""

    async def recall(self, space: str, query: str, *, limit: int) -> tuple[Fact, ...]:
        """Up to `limit` facts of the space that share a word with the query, in the order of `stages.memory.ranked`.

        For a query without a word: the newest.
        """

    async def forget(self, space: str, fact: int) -> bool:
        """Delete the fact with this id; False: the space has none."""


# InProcessStore: sessions and facts in this process alone, gone when it ends.


class _Entry(Struct, frozen=True):
    """A session as it is kept: saved, as in a file, so that what is loaded is the same from every store."""

    saved: bytes
    revision: int
    summary: SessionSummary


class InProcessStore:
    """A SessionStore and a FactStore for tests and for programs that need no file. Async code of one loop shares it."""

    def __init__(self) -> None:
        self._sessions: dict[str, _Entry] = {}
        self._revisions = count(1)
        self._facts: dict[str, list[Fact]] = {}
        self._ids = count(1)

    def __repr__(self) -> str:
        return "InProcessStore()"

    async def load(self, name: str) -> SavedSession | None:
        """The session; None: there is none of this name."""
        entry = self._sessions.get(name)
        return SavedSession(state=load(entry.saved), revision=entry.revision) if entry else None

    async def save(self, name: str, state: State, *, after: int) -> int:
        """Save the session and return its new revision. SessionChangedError unless its revision is `after`."""
        there = self._sessions.get(name)
        if (found := there.revision if there else 0) != after:
            raise SessionChangedError(name, after, found)
        revision, history = next(self._revisions), state.history
        summary = SessionSummary(name=name, title=title(history), messages=len(history), saved=time.time())
        self._sessions[name] = _Entry(save(state), revision, summary)
        return revision

    async def sessions(self) -> tuple[SessionSummary, ...]:
        """All sessions, the last saved first."""
        entries = sorted(self._sessions.values(), key=lambda entry: entry.revision, reverse=True)
        return tuple(entry.summary for entry in entries)

    async def delete(self, name: str) -> bool:
        """Delete the session; False: there was none of this name."""
        return self._sessions.pop(name, None) is not None

    async def remember(self, space: str, text: str) -> Fact:
        """Keep the fact, or return the one with the same text."""
        facts = self._facts.setdefault(space, [])
        if same := next((fact for fact in facts if fact.text == text), None):
            return same
        facts.append(Fact(id=next(self._ids), text=text, at=time.time()))
        return facts[-1]

    async def recall(self, space: str, query: str, *, limit: int) -> tuple[Fact, ...]:
        """Up to `limit` facts of the space that share a word with the query, the most relevant first."""
        facts = self._facts.get(space, [])
        return ranked(facts, query, len(facts), limit)

    async def forget(self, space: str, fact: int) -> bool:
        """Delete the fact with this id; False: the space has none."""
        facts = self._facts.get(space, [])
        left = [one for one in facts if one.id != fact]
        self._facts[space] = left
        return len(left) < len(facts)


# Facts: what an agent remembers beyond a session, in one space of a store.

_LONGEST_FACT = 2000
"""Maximum characters of a fact: it is a sentence or a few, and takes room in every prompt that it is recalled for."""

_LONGEST_QUERY = 10_000
"""Characters of a query that are looked at."""


class Facts:
    """The facts of one space, such as a user's or a project's; those of other spaces are never seen.

    `stages.memory.with_facts` puts them before a request, marked as data. An agent is shown those that share words with
    a message, and also the `newest` ones, whatever the message says.
    """

    @checked_options
    def __init__(self, store: FactStore, space: str = "default", *, newest: Count = 0) -> None:
        self._store = store
        self._newest = newest
        self.space = checked_name(space, "a space of facts")

    def __repr__(self) -> str:
        return f"Facts({self._store!r}, {self.space!r})"

    @checked_options
    async def remember(self, text: str) -> Fact:
        """Keep the fact. DefinitionError for an empty one, or one of more than 2,000 characters."""
        kept = sound(text).replace("\0", "").strip()  # which not every store takes
        if not kept:
            raise DefinitionError(("the fact is empty; say what is to be remembered",))
        if len(kept) > _LONGEST_FACT:
            problem = f"the fact has {len(kept)} characters; a fact has at most {_LONGEST_FACT}: shorten or split it"
            raise DefinitionError((problem,))
        return await self._store.remember(self.space, kept)

    @checked_options
    async def recall(self, query: str = "", limit: Count = 8) -> tuple[Fact, ...]:
        """The facts that share words with the query, the most relevant first; without a query, the newest."""
        return await self._store.recall(self.space, sound(query[:_LONGEST_QUERY]), limit=limit)

    async def recall_for(self, message: str) -> tuple[Fact, ...]:
        """What an agent is shown for the message: the facts that share words with it, then the newest."""
        newest = await self.recall(limit=self._newest) if self._newest else ()
        return tuple(dict.fromkeys((*await self.recall(message), *newest)))

    @checked_options
    async def forget(self, fact: Fact | int) -> bool:
        """Delete the fact; False: there was none with this id. Sessions that were shown it keep what was said."""
        return await self._store.forget(self.space, fact if isinstance(fact, int) else fact.id)
