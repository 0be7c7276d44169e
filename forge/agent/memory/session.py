"""Session: one conversation in a store, behind the five methods of `Memory`, and the state that a run goes on from."""

import asyncio
from collections.abc import Callable

from forge.agent.memory.protocol import SessionStore, checked_name
from forge.errors import ContextBudgetExceeded, DefinitionError, SessionChangedError, checked_options
from forge.workflow.start import last_id
from stages.halt import CannotFit
from stages.memory import Role, branched, in_turn, last_messages, misplaced, of_roles, pruned
from stages.message import History, Message, turn_of
from stages.options import Count, Tokens
from stages.repair.decoding import sound_struct
from stages.state import Done, Ready, State

_KEPT: tuple[Role, ...] = ("system",)
_TRIES = 100
"""Maximum number of times a change is made anew because another came first: each time, another got through."""


class Session:
    """The session `name` of a store, which exists once something was saved.

    An agent calls `load`, and `save` after each turn; a save raises SessionChangedError if anybody has saved or
    deleted the session since this object last loaded or saved it, so two processes never overwrite one another. The
    five methods read the session as it is now, change it as a whole, and never lose what another adds.
    """

    @checked_options
    def __init__(self, store: SessionStore, name: str) -> None:
        self._store = store
        self._revision = 0
        self.name = checked_name(name, "a session")

    def __repr__(self) -> str:
        return f"Session({self.name!r}, {self._store!r})"

    async def load(self) -> State | None:
        """The state that was last saved; None: there is none."""
        saved = await self._store.load(self.name)
        self._revision = saved.revision if saved else 0
        return saved.state if saved else None

    @checked_options
    async def save(self, state: State) -> None:
        """Save the state. SessionChangedError if it does not follow what this object last loaded or saved.

        Cancelled, it ends once it is known whether the state was saved.
        """
        saving = asyncio.ensure_future(self._save(state))
        try:
            await asyncio.shield(saving)
        except asyncio.CancelledError:
            await asyncio.wait([saving])
            if not saving.cancelled():
                saving.exception()  # it was looked at: the cancellation is what the caller hears of
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
        """The last `count` messages, and the calls that the first of them answer."""
        return last_messages(await self.get_messages(), count)

    @checked_options
    async def prune(self, max_tokens: Tokens) -> None:
        """Cut old results, then drop old exchanges, until the conversation takes at most `max_tokens`.

        The system prompt, the last request of the user, and pinned messages stay; ContextBudgetExceeded if they do not
        fit, and nothing is changed. DefinitionError while a run of the session is under way.
        """
        await self._change(lambda state: _pruned(state, max_tokens))

    async def clear(self) -> None:
        """Forget what was said; the system prompt stays."""
        await self._change(lambda state: State(history=of_roles(state.history, _KEPT)))

    @checked_options
    async def branch(self, name: str, messages: Count | None = None) -> "Session":
        """Another session that goes on after the first `messages` of this one, or after all; both go their own way.

        An exchange that would be cut in two is left out. DefinitionError if there is nothing to branch from, or a
        session of that name.
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
        """Delete the session; False: there was none."""
        self._revision = 0
        return await self._store.delete(self.name)

    async def _change(self, change: Callable[[State], State]) -> None:
        """Save what the function makes of the session, however many others change it at the same time.

        What this object has loaded stays what it was: a state that was made from it no longer follows.
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
