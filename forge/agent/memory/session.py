"""Session: one conversation in a store, as `Memory`, and the state that a run continues from."""

import asyncio
from collections.abc import Callable

from forge.agent.memory.protocol import SessionStore, checked_name
from forge.errors import ContextBudgetExceeded, DefinitionError, SessionChangedError, checked_options
from forge.workflow.start import last_id
from stages.decoding import sound_struct
from stages.halt import CannotFit
from stages.memory import Role, branched, in_turn, last_messages, misplaced, of_roles, pruned
from stages.message import History, Message, turn_of
from stages.options import Count, Tokens
from stages.state import Done, Ready, State

_TRIES = 100
"""Maximum attempts of a change that loses against concurrent ones; each time, another one succeeded."""


class Session:
    """The session `name` of a store, which exists once something was saved.

    An agent calls `load`, and `save` after each turn; a save raises SessionChangedError if anybody has saved or deleted
    the session since this object last loaded or saved it, so two processes never overwrite each other. The methods of
    `Memory` change the current session atomically and never lose what others add.
    """

    @checked_options
    def __init__(self, store: SessionStore, name: str) -> None:
        self._store = store
        self._revision = 0
        self.name = checked_name(name, "a session")

    def __repr__(self) -> str:
        return f"Session({self.name!r}, {self._store!r})"

    async def load(self) -> State | None:
        """The last saved state; None if there is none."""
        saved = await self._store.load(self.name)
        self._revision = saved.revision if saved else 0
        return saved.state if saved else None

    @checked_options
    async def save(self, state: State) -> None:
        """Save the state. SessionChangedError if the session has changed since this object last loaded or saved it.

        A cancellation takes effect once it is known whether the state was saved.
        """
        saving = asyncio.ensure_future(self._save(state))
        try:
            await asyncio.shield(saving)
        except asyncio.CancelledError:
            await asyncio.wait([saving])
            if not saving.cancelled():
                saving.exception()  # retrieve the exception; the caller gets the cancellation instead
            raise

    async def _save(self, state: State) -> None:
        self._revision = await self._store.save(self.name, state, after=self._revision)

    @checked_options
    async def add_message(self, message: Message) -> None:
        """Add the message. DefinitionError for a result without its call, or anything else before a call's result."""

        def added(state: State) -> State:
            if problem := misplaced(state.history, message):
                raise DefinitionError((problem,))
            said, known = in_turn(state.history, sound_struct(message)), state.ledger
            turn = max(known.turn, turn_of(said))
            return state.say(said).note(turn=turn, progress=turn, ids=max(known.ids, last_id((said,))))

        await self._change(added)

    @checked_options
    async def get_messages(self, *roles: Role) -> History:
        """All messages, or those of these roles."""
        saved = await self._store.load(self.name)
        history = saved.state.history if saved else ()
        return of_roles(history, roles) if roles else history

    @checked_options
    async def get_recent(self, count: Count) -> History:
        """The last `count` messages, and the calls that the first of them answers."""
        return last_messages(await self.get_messages(), count)

    @checked_options
    async def prune(self, max_tokens: Tokens) -> None:
        """Cut old results, then drop old exchanges, until the conversation has at most `max_tokens`.

        The system prompt, the user's last request, and pinned messages stay; ContextBudgetExceeded, without any change,
        if they do not fit. DefinitionError while a run of the session is in progress.
        """
        await self._change(lambda state: _pruned(state, max_tokens))

    async def clear(self) -> None:
        """Delete all messages but the system prompt."""
        await self._change(lambda state: State(history=of_roles(state.history, ["system"])))

    @checked_options
    async def branch(self, name: str, messages: Count | None = None) -> "Session":
        """A copy of the session as `name`, with its first `messages` or all; both are independent from then on.

        An exchange is never split; an incomplete one is left out. DefinitionError if there is nothing to branch from,
        or a session with that name exists.
        """
        other = Session(self._store, name)
        saved = await self._store.load(self.name)
        if saved is None:
            raise DefinitionError((f"there is no session {self.name!r} to branch from",))
        try:
            await other.save(branched(saved.state, messages))
        except SessionChangedError:
            raise DefinitionError((f"there is a session {name!r} already; choose another name",)) from None
        return other

    async def delete(self) -> bool:
        """Delete the session; False if there was none."""
        self._revision = 0
        return await self._store.delete(self.name)

    async def _change(self, change: Callable[[State], State]) -> None:
        """Apply the change to the current session and save it, retrying if others change it concurrently.

        This object's revision stays the same: a state derived from what it loaded is out of date now.
        """
        for _ in range(_TRIES):
            saved = await self._store.load(self.name)
            before, revision = (saved.state, saved.revision) if saved else (State(history=()), 0)
            if (after := change(before)) == before:
                return
            try:
                await self._store.save(self.name, after, after=revision)
            except SessionChangedError as error:
                last = error
            else:
                return
        raise last


def _pruned(state: State, max_tokens: int) -> State:
    if not (isinstance(state.phase, Done) or state.phase == Ready()):
        raise DefinitionError(("a run of the session is under way; let it end, or prune a branch of the session",))
    shorter = pruned(state, max_tokens)
    if isinstance(shorter, CannotFit):
        problem = f"what must stay takes about {shorter.tokens} tokens, more than {max_tokens}; nothing was pruned"
        raise ContextBudgetExceeded(problem, state)
    return shorter
