"""Watching: how a run is watched and steered from outside, and what that means to its loop."""

import asyncio
from collections.abc import Callable
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, TypedDict

from forge.connection import Connection
from forge.interpreters import Asker, Interpreter, interpreter, nobody
from forge.interpreters.threads import unheard
from forge.runtime.loop import Observer, notify
from forge.runtime.questions import asking
from forge.runtime.watcher import OnChunk
from forge.workflow.workflow import Workflow
from stages import events
from stages.message import History, Message
from stages.state import Compaction
from stages.wire.sampling import Sampling

if TYPE_CHECKING:  # what only a journal needs
    from forge.journal.redaction import Redact


class Watching(TypedDict, total=False):
    """How a run is watched and steered from outside; all of it optional, None included.

    `observer` is called with each event, `on_message` with each message that the history grows by (not with those of
    an earlier conversation), `on_compact` with each compaction; one that raises is logged, and the run goes on.
    Setting `cancel` ends the run. `ask` is asked about tools that want approval. `journal` is the file to record the
    run in, `redact` what must not stand there. `sampling` are the options of this run's replies, over those of the
    backend. `on_chunk`, a plain or an async function, is called with each delta of a reply (`stages.wire.deltas`)
    while it comes; one that raises ends the run with a WatcherError.
    """

    observer: Observer | None
    on_message: Callable[[Message], None] | None
    on_compact: Callable[[Compaction], None] | None
    on_chunk: OnChunk | None
    cancel: asyncio.Event | None
    ask: Asker | None
    journal: str | PathLike[str] | None
    redact: "Redact | None"
    sampling: Sampling | None


def announce(opening: History, watching: Watching) -> None:
    """Tell who watches of the messages that a run begins with."""
    if tell := observing(watching):
        for message in opening:
            notify(tell, events.MessageAdded(message=message))


def observing(watching: Watching) -> Observer | None:
    """One observer that tells all who watch, in the order observer, on_message, on_compact; None where nobody does."""
    observer, on_message = watching.get("observer"), watching.get("on_message")
    on_compact = watching.get("on_compact")
    if not (on_message or on_compact):
        return observer

    def tell(event: events.Event) -> None:
        if observer:
            notify(observer, event)
        match event:
            case events.MessageAdded(message=message) if on_message:
                notify(on_message, message)
            case events.HistoryCompacted(compaction=compaction) if on_compact:
                notify(on_compact, compaction)
            case _:
                pass

    return tell


def interpreting(workflow: Workflow, connection: Connection, watching: Watching) -> Interpreter:
    """What performs the effects of such a run; what its tools yield on the way is told to whoever watches."""
    tell = observing(watching)
    heard = partial(notify, tell) if tell else unheard
    send = connection.told(watching.get("on_chunk"))
    return interpreter(send, partial(workflow.execute, heard=heard), asking(watching.get("ask") or nobody))
