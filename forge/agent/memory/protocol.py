"""The protocols of memory, valid names, facts, and a store in this process."""

import time
from collections.abc import Sequence
from itertools import count
from typing import Protocol

from msgspec import Struct

from forge.errors import DefinitionError, SessionChangedError, checked_options
from stages.decoding import sound
from stages.memory import Fact, Role, ranked, title
from stages.message import History, Message
from stages.options import Count
from stages.saved import load, save
from stages.state import State

# Names of sessions and spaces, checked before a store sees them.

_LONGEST = 200


def checked_name(name: str, what: str) -> str:
    """The name, if it is printable text of 1 to 200 characters; otherwise DefinitionError.

    Names are shown in terminals and lists, so control characters are refused. Everything else is plain data for a
    store: quotes, slashes and dots have no meaning.
    """
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
"""Characters inside emoji that Python does not consider printable."""


# The protocols: what an agent needs of a session, and what a store must do.


class Memory(Protocol):
    """A saved conversation. `Session` implements it for any store."""

    async def add_message(self, message: Message) -> None:
        """Append the message."""

    async def get_messages(self, *roles: Role) -> History:
        """All messages, or those of these roles."""

    async def get_recent(self, count: int) -> History:
        """The last `count` messages, and the calls that the first of them answers."""

    async def prune(self, max_tokens: int) -> None:
        """Shorten the conversation to at most `max_tokens`; calls keep their results, the system prompt stays."""

    async def clear(self) -> None:
        """Delete all messages but the system prompt."""


class SavedSession(Struct, frozen=True, kw_only=True):
    """A saved session. A store never reuses a `revision`; a later save has a higher one."""

    state: State
    revision: int


def unchanged(before: Sequence[object], after: Sequence[bytes]) -> int:
    """The length of the common prefix, which a store need not write again."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((at for at, (old, new) in pairs if old != new), min(len(before), len(after)))


class SessionSummary(Struct, frozen=True, kw_only=True):
    """A session in a list: its name, title, number of messages, and time of the last save (Unix seconds)."""

    name: str
    title: str
    messages: int
    saved: float


class SessionStore(Protocol):
    """A store of sessions. Test yours with `forge.testing.assert_session_store_laws`.

    `Session` checks names: printable, 1 to 200 characters. A save is atomic, even with concurrent writers or if the
    process dies.
    """

    async def load(self, name: str) -> SavedSession | None:
        """The session, as `stages.saved.load` returns it; None if there is none with this name."""

    async def save(self, name: str, state: State, *, after: int) -> int:
        """Save the session and return its new revision; `after` is 0 for a new one.

        SessionChangedError if its current revision is not `after`, because another writer saved or deleted it.
        """

    async def sessions(self) -> tuple[SessionSummary, ...]:
        """All sessions, last saved first."""

    async def delete(self, name: str) -> bool:
        """Delete the session; False if there was none with this name."""


class FactStore(Protocol):
    """A store of facts, separated by `space`: a user, a project. Test yours with `assert_fact_store_laws`."""

    async def remember(self, space: str, text: str) -> Fact:
        """Store the fact; if the space has one with the same text, return that instead."""

    async def recall(self, space: str, query: str, *, limit: int) -> tuple[Fact, ...]:
        """Up to `limit` facts of the space that share a word with the query, ordered by `stages.memory.ranked`.

        For a query without words: the newest.
        """

    async def forget(self, space: str, fact: int) -> bool:
        """Delete the fact with this id; False if the space has none."""


# InProcessStore: sessions and facts in this process only.


class _Entry(Struct, frozen=True):
    """A session, serialised as in a file, so that every store returns the same."""

    saved: bytes
    revision: int
    summary: SessionSummary


class InProcessStore:
    """A SessionStore and a FactStore for tests, and for programs without a file. For async code of one event loop."""

    def __init__(self) -> None:
        self._sessions: dict[str, _Entry] = {}
        self._revisions = count(1)
        self._facts: dict[str, list[Fact]] = {}
        self._ids = count(1)

    def __repr__(self) -> str:
        return "InProcessStore()"

    async def load(self, name: str) -> SavedSession | None:
        """The session; None if there is none with this name."""
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
        """All sessions, last saved first."""
        entries = sorted(self._sessions.values(), key=lambda entry: entry.revision, reverse=True)
        return tuple(entry.summary for entry in entries)

    async def delete(self, name: str) -> bool:
        """Delete the session; False if there was none with this name."""
        return self._sessions.pop(name, None) is not None

    async def remember(self, space: str, text: str) -> Fact:
        """Store the fact, or return the existing one with the same text."""
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
        """Delete the fact with this id; False if the space has none."""
        facts = self._facts.get(space, [])
        left = [one for one in facts if one.id != fact]
        self._facts[space] = left
        return len(left) < len(facts)


# Facts: what an agent remembers across sessions, in one space of a store.

_LONGEST_FACT = 2000
"""Maximum characters of a fact: a sentence or a few, because it takes room in prompts."""

_LONGEST_QUERY = 10_000
"""Maximum characters of a query to use."""


class Facts:
    """The facts of one space, such as a user's or a project's, isolated from other spaces.

    `stages.memory.with_facts` puts them before a request, marked as data. An agent is shown those that share words with
    a message, and the `newest` ones in any case.
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
        """Store the fact. DefinitionError if it is empty or longer than 2,000 characters."""
        kept = sound(text).replace("\0", "").strip()  # some stores refuse NUL characters
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
        """The facts for a message: those that share words with it, then the newest."""
        newest = await self.recall(limit=self._newest) if self._newest else ()
        return tuple(dict.fromkeys((*await self.recall(message), *newest)))

    @checked_options
    async def forget(self, fact: Fact | int) -> bool:
        """Delete the fact; False if there was none with this id. Sessions that were shown it keep it."""
        return await self._store.forget(self.space, fact if isinstance(fact, int) else fact.id)
