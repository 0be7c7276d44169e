"""Watching: the options by which a caller observes and controls a run."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from os import PathLike, fspath
from typing import TYPE_CHECKING, TypedDict

from msgspec.structs import replace

from forge.connection import Connection
from forge.interpreters import Asker, Interpreter, Runner, interpreter, nobody
from forge.interpreters.threads import unheard
from forge.runtime.observers import Observer, notify
from forge.runtime.performing import Keep
from forge.runtime.questions import asking
from forge.runtime.raised import Raised
from forge.runtime.watcher import OnChunk
from forge.workflow.workflow import Workflow
from stages import events
from stages.effect import Execute, Results
from stages.message import History, Message
from stages.rules import Rules
from stages.state import Compaction
from stages.wire.deltas import Sampling

if TYPE_CHECKING:  # what only a journal needs
    from forge.journal.redaction import Redact


class Watching(TypedDict, total=False):
    """Options by which a caller observes and controls a run; all optional, and None means not set.

    `observer` is called with each event, `on_message` with each new message of the history (not with those of an
    earlier conversation), `on_compact` with each compaction; if one raises, that is logged and the run continues.
    Setting `cancel` ends the run. `ask` decides on tools that need approval. `journal` is the file to record the run
    in, `redact` what to hide there. `sampling` overrides the backend's sampling options for this run. `on_chunk`, a
    plain or async function, is called with each delta of a reply (`stages.wire.deltas`) as it arrives; if it raises,
    the run ends with a WatcherError. `hear`, called after each group of tool calls, returns what the user said
    meanwhile: the model reads it with the results. `keep` is given each state that awaits an effect, before the effect
    is performed, to save it.
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
    hear: Callable[[], Sequence[str]] | None
    keep: Keep | None


def announce(opening: History, watching: Watching) -> None:
    """Tell the observers about the messages that a run begins with."""
    if tell := observing(watching):
        for message in opening:
            notify(tell, events.MessageAdded(message=message))


def observing(watching: Watching) -> Observer | None:
    """One observer that calls observer, on_message and on_compact, in that order; None if none is set."""
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


def interpreting(workflow: Workflow, connection: Connection, watching: Watching, raised: Raised) -> Interpreter:
    """The interpreter of the run's effects; tools' progress goes to the observers, what they raise to `raised`."""
    tell = observing(watching)
    heard = partial(notify, tell) if tell else unheard
    send = connection.told(watching.get("on_chunk"))
    # Its rules of what to hide name this run's tools: they would not do for the journals of agents within.
    journal = None if watching.get("redact") else watching.get("journal")
    path = fspath(journal) if journal else None
    run = partial(workflow.execute, heard=heard, raised=raised, ask=watching.get("ask"), journal=path)
    execute = _hearing(run, workflow.rules, watching.get("hear"))
    return interpreter(send, execute, asking(watching.get("ask") or nobody))


def _hearing(execute: Runner, rules: Rules, hear: Callable[[], Sequence[str]] | None) -> Runner:
    """The interpreter of calls, adding what the user said meanwhile; not to a call that may end the run."""
    if hear is None:
        return execute

    async def run(effect: Execute) -> Results:
        results = await execute(effect)
        if any(call.name in rules.terminal for call in effect.calls):
            return results
        return replace(results, heard=tuple(hear()))

    return run
