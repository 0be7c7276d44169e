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
    """What a player is given: a workflow, the user's messages, and a model to ask.

    The tools of the workflow and the connection note in `record` what is done with them; the outcome of each message
    is the player's to add. `mode` is one of the player's. `journal` is a path without its suffix, None: nothing is to
    be written.
    """

    workflow: Workflow[Any]
    messages: tuple[str, ...]
    connection: Connection
    record: RunRecord
    mode: str = ""
    journal: Path | None = None

    def journal_of(self, message: int) -> Path | None:
        """The journal of the run for that message, by its number from 0."""
        if self.journal is None:
            return None
        number = f".{message + 1}" if len(self.messages) > 1 else ""
        return self.journal.with_name(f"{self.journal.name}{number}.jsonl")

    @contextmanager
    def answering(self, message: int, workflow: Workflow[Any]) -> Iterator[Interpreter]:
        """What asks the model and runs tools of the workflow for that message, for a loop that is not forge's.

        It is all in the journal of that message, which `forge replay` shows.
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
    """How a run ended by its own word, and, where it reached no outcome, why not."""

    end: str
    why: str = ""


class PlayerMissing(ForgeError):  # noqa: N818 - what happened is in the name
    """The player cannot play here at all, for want of what it runs in: no run of it would say anything."""


class Player(Struct, frozen=True, kw_only=True):
    """A way to run a workflow.

    `play` may raise: the run is then one without an outcome. PlayerMissing ends the whole series instead.
    `modes` are ways that it can be compared in, if there are several. `wire` is the only protocol that it speaks to
    a server; None: any. `counted_like` names another player: where a scenario is not counted for that one, it is not
    for this one either.
    """

    name: str
    about: str
    play: Callable[[Task], Awaitable[RunEnd]]
    modes: tuple[str, ...] = ()
    wire: WireName | None = None
    counted_like: str = ""
