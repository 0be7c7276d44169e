"""InProcessStore: sessions and facts in this process alone, gone when it ends."""

import time
from itertools import count

from msgspec import Struct

from forge.agent.memory.protocol import SavedSession, SessionSummary
from forge.errors import SessionChangedError
from stages.memory import Fact, ranked, title
from stages.saved import load, save
from stages.state import State


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
