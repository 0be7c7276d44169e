"""Player: what attempts a scenario: forge, a plain loop, or another framework."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from forge.connection import Connection
from forge.errors import ForgeError
from forge.evals.record import RunRecord
from forge.interpreters import Interpreter, interpreter
from forge.journal.file import recording
from forge.journal.records import Header
from forge.workflow.workflow import Workflow
from stages.wire.wires import WireName


class Task(Struct, frozen=True, kw_only=True):
    """What a player gets: a workflow, the user's messages, and a model.

    The workflow's tools and the connection record their use in `record`; the player adds the outcome of each message.
    `mode` is one of the player's. `journal` is a path without suffix; None writes no journal.
    """

    workflow: Workflow[Any]
    messages: tuple[str, ...]
    connection: Connection
    record: RunRecord
    mode: str = ""
    journal: Path | None = None

    def journal_of(self, message: int) -> Path | None:
        """The journal for a message, by its number from 0."""
        if self.journal is None:
            return None
        number = f".{message + 1}" if len(self.messages) > 1 else ""
        return self.journal.with_name(f"{self.journal.name}{number}.jsonl")

    @contextmanager
    def answering(self, message: int, workflow: Workflow[Any]) -> Iterator[Interpreter]:
        """An interpreter for one message, for loops other than forge's.

        Its effects are recorded in the message's journal, for `forge replay`.
        """
        self.record.message = message
        perform, path = interpreter(self.connection.send, workflow.execute), self.journal_of(message)
        if path is None:
            yield perform
            return
        state = workflow.start(self.messages[message])
        with recording(
            perform, path, Header(workflow=workflow.name, state=state, setup=self.connection.setup)
        ) as noted:
            yield noted


class RunEnd(Struct, frozen=True):
    """How a run ended by the player's account, and why if it reached no outcome."""

    end: str
    why: str = ""


class PlayerMissing(ForgeError):  # noqa: N818 - what happened is in the name
    """The player's requirements are missing, so it cannot play at all."""


class Player(Struct, frozen=True, kw_only=True):
    """A way to run a workflow.

    If `play` raises, the run has no outcome; PlayerMissing ends the whole series. `modes` are the modes to compare, if
    there are several. `wire` is the only protocol that it speaks; None: any. `counted_like` names another player whose
    excluded scenarios also apply to this one.
    """

    name: str
    about: str
    play: Callable[[Task], Awaitable[RunEnd]]
    modes: tuple[str, ...] = ()
    wire: WireName | None = None
    counted_like: str = ""
