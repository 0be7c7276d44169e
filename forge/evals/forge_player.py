"""Forge as a player: the workflow is run as any user would run it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct
from returns.result import Failure

from forge.connection import Connection
from forge.evals.player import Player, RunEnd, Task
from forge.runtime.conversation import Conversation
from forge.runtime.watching import Watching


class Connected(Struct, frozen=True):
    """A backend that is connected already."""

    connection: Connection

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """The connection."""
        yield self.connection


async def _play(task: Task) -> RunEnd:
    conversation, end = Conversation(task.workflow, backend=Connected(task.connection)), ""
    for number, message in enumerate(task.messages):
        task.record.message = number
        watching: Watching = {"observer": task.record.observe, "journal": task.journal_of(number)}
        result = await conversation.say(message, **watching)
        if isinstance(result, Failure):
            halted = result.failure()
            return RunEnd(type(halted.halt).__name__, str(halted))
        outcome = result.unwrap().outcome
        task.record.outcomes.append(outcome)
        end = type(outcome).__name__
    return RunEnd(end)


FORGE = Player(name="forge", about="forge's own loop, in the mode asked for", play=_play)
