"""The protocols of memory: what an agent asks of a session, and what anyone's own store has to do."""

from typing import Protocol

from msgspec import Struct

from stages.memory import Fact, Role
from stages.message import History, Message
from stages.state import State


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
