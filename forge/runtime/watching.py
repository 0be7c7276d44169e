"""Who watches a run: events, chunks, approvals, journals, and what tools raise."""

import asyncio
import logging
import re
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from os import PathLike, fspath
from types import TracebackType
from typing import TypedDict

import msgspec
from msgspec.structs import replace

from forge import observation
from forge.callbacks import Asker, OnChunk
from forge.connection import Connection, Sender
from forge.errors import McpToolError
from forge.interpreters import Interpreter, Runner, interpreter, nobody
from forge.interpreters.threads import unheard
from forge.interpreters.tools import error_words
from forge.masking import MASK, Hidden, Redact, both
from forge.outcome import Halted
from forge.runtime.emitter import Emitter, OnEvent, notify
from forge.runtime.log import escape_record, with_escapes
from forge.runtime.loop import Keep
from forge.runtime.questions import asking
from forge.workflow.turn import reading
from forge.workflow.workflow import Workflow
from stages import events
from stages.effect import Execute, Replied, Results, Send, Undelivered
from stages.halt import OutcomeUnknown, ToolsFailing
from stages.message import History, Message, ToolCall
from stages.rules import Rules
from stages.seen import leaves
from stages.state import MAIN, Compaction, State
from stages.tool import ToolSpec
from stages.wire.deltas import Delta
from stages.wire.sampling import Sampling

# Raised: what the tools of one run raised: logged with its traceback, and the cause of the run's end.
#
# An exception is no value, so none is part of a state or a journal: it is kept beside the run, in its own process.

TOOL_LOGGER = "forge.tools"

_log = logging.getLogger(TOOL_LOGGER)
_log.addFilter(escape_record)

_KEPT = 64
"""Maximum number of exceptions that are kept, the latest ones: those of a large batch."""

_MINIMUM = 4
"""Minimum length of an argument to mask within a word, as in a journal (`forge.journal.redaction`)."""

_MOST_VALUES = 200
"""Maximum number of arguments to look for in a message; with more, the message is left out."""

_LONGEST = 2_000
"""Maximum characters of a message."""

_READ = 50 * _LONGEST
"""Maximum characters of a message that are looked through: more than are shown, as none may end within a value."""

_FRAMES = 30
"""Maximum frames of one traceback, the innermost ones."""

_CHAINED = 8
"""Maximum number of exceptions that one log entry tells of: causes, and members of groups."""


class Raised:
    """Told of each unexpected exception of a tool. `redacted`: the run hides values, so no message is logged."""

    def __init__(self, run: str, *, redacted: bool) -> None:
        self._run, self._redacted = run, redacted
        self._errors: deque[tuple[str, Exception]] = deque(maxlen=_KEPT)

    def __call__(self, call: ToolCall, error: Exception) -> None:
        """Log the exception, with its traceback unless a server reported the error, and keep it."""
        self._errors.append((call.id, error))
        if not _log.isEnabledFor(logging.WARNING):
            return
        said = "run %s: the tool %s raised %s"
        told, reported = self._told(call, error), isinstance(error, McpToolError)
        names = (self._run[:8] or "-", call.name, told if reported else type(error).__name__)
        known = {"run": self._run}
        record = _log.makeRecord(_log.name, logging.WARNING, __file__, 0, said, names, None, extra=known)
        # Not as exc_info: some handlers record the local variables that a live traceback gives access to.
        record.exc_text = None if reported else told
        _log.handle(record)

    def cause_of(self, halted: Halted) -> Halted:
        """The end of the run, with the exception that it ended with as its cause if there is one."""
        if isinstance(halt := halted.halt, ToolsFailing | OutcomeUnknown):
            halted.__cause__ = next((error for call_id, error in self._errors if call_id == halt.call_id), None)
        return halted

    def _told(self, call: ToolCall, error: Exception) -> str:
        """The tracebacks, the first cause first; no value of the call is in them."""
        arguments = [str(leaf) for leaf in leaves(call.arguments) if not isinstance(leaf, bool | None)]
        silent = self._redacted or len(arguments) > _MOST_VALUES
        hidden = Hidden(() if silent else arguments, minimum=_MINIMUM)
        short = "|".join(re.escape(text) for text in arguments if 0 < len(text) < _MINIMUM)

        def words(one: BaseException) -> str:
            if silent:
                return MASK
            shown = hidden.without(error_words(one, _READ))
            return with_escapes((re.sub(rf"(?<!\w)(?:{short})(?!\w)", MASK, shown) if short else shown)[:_LONGEST])

        def told(one: BaseException) -> str:
            named = f"{with_escapes(type(one).__name__)}: {words(one)}"
            if isinstance(one, McpToolError):
                return named  # the traceback would show only how forge reads the server's answer
            frames = "".join(traceback.format_tb(_of_the_tool(one.__traceback__), -_FRAMES))
            return f"Traceback (most recent call last):\n{frames}{named}"

        return "\n\n".join(told(one) for one in reversed(_chain(error)))


def _of_the_tool(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames that call the tool."""
    while trace and trace.tb_next and str(trace.tb_frame.f_globals.get("__name__")).startswith("forge.interpreters."):
        trace = trace.tb_next
    return trace


def _chain(error: BaseException) -> list[BaseException]:
    """The exception, then what led to it: the members of a group, causes, and what was being handled."""
    found, left = list[BaseException](), deque([error])
    while left and len(found) < _CHAINED:
        one = left.popleft()
        if any(one is known for known in found):
            continue
        found.append(one)
        members = one.exceptions if isinstance(one, BaseExceptionGroup) else ()
        before = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
        left.extend((*members, *((before,) if before else ())))
    return found


# Watching: the options by which a caller observes and controls a run.


class Following(TypedDict, total=False):
    """Options by which a caller observes and controls a run or an agent; all optional, and None means not set.

    `on_event` is called with each event (`stages.events.Stamped`), `on_message` with each new message of the history
    (not with those of an earlier conversation), `on_compact` with each compaction; if one raises, that is logged and
    the run continues.
    Setting `cancel` ends the run. `ask` decides on tools that need approval. `journal` is the file to record the run
    in, `redact` what to hide there. `sampling` overrides the backend's sampling options for this run. `on_chunk`, a
    plain or async function, is called with each delta of a reply (`stages.wire.deltas`) as it arrives; if it raises,
    the run ends with a WatcherError.
    """

    on_event: OnEvent | None
    on_message: Callable[[Message], None] | None
    on_compact: Callable[[Compaction], None] | None
    on_chunk: OnChunk | None
    cancel: asyncio.Event | None
    ask: Asker | None
    journal: str | PathLike[str] | None
    redact: Redact | None
    sampling: Sampling | None


class Watching(Following, total=False):
    """Two more for a run; an agent sets them itself (`steer`, `memory`).

    `hear`, called after each group of tool calls, returns what the user said meanwhile, a list of messages: the model
    reads it with the results. If it raises, that is logged and the run continues. `keep` is given each state that
    awaits an effect, before the effect is performed, to save it.
    """

    hear: Callable[[], Sequence[str]] | None
    keep: Keep | None


class RunOptions(Watching, total=False):
    """How a run begins, and what is done while it goes.

    `prompt_vars` fill the system prompt's `{placeholders}`. `initial_messages` are an earlier conversation, including
    its system prompt, which the message continues.
    """

    prompt_vars: Mapping[str, str] | None
    initial_messages: History


def listening(watching: Watching) -> OnEvent | None:
    """One function that calls on_event, on_message and on_compact, in that order; None if none is set."""
    on_event, on_message = watching.get("on_event"), watching.get("on_message")
    on_compact = watching.get("on_compact")
    if not (on_message or on_compact):
        return on_event

    def tell(stamped: events.Stamped) -> None:
        if on_event:
            notify("on_event", on_event, stamped)
        match stamped.event:
            case events.MessageAdded(message=message) if on_message:
                notify("on_message", on_message, message)
            case events.HistoryCompacted(compaction=compaction) if on_compact:
                notify("on_compact", on_compact, compaction)
            case _:
                pass

    return tell


def emitting(workflow: Workflow, state: State, watching: Watching) -> Emitter:
    """The emitter of a run that begins in this state."""
    return Emitter(listening(watching), state, workflow.name, talks=workflow.rules.on_text == "accept")


def interpreting(
    workflow: Workflow, connection: Connection, watching: Watching, raised: Raised, emitter: Emitter
) -> Interpreter:
    """The interpreter of the run's effects; deltas and tools' progress are events, `raised` gets exceptions."""
    heard = emitter.pass_on if emitter.listening else unheard
    on_chunk = _chunks(watching.get("on_chunk"), emitter)
    send, around = connection.told(on_chunk), None
    # Its rules of what to hide name this run's tools: they would not do for the journals of agents within.
    journal = None if watching.get("redact") else watching.get("journal")
    path = fspath(journal) if journal else None
    if observation.observing():
        writer = _writer(workflow, connection, watching.get("redact"))
        send = _observed(send, connection, writer, streamed=on_chunk is not None)

        def around(call: ToolCall, spec: ToolSpec) -> observation.Observed:
            return observation.Observed(observation.ToolCalled(call=call, spec=spec, writer=writer))

    run = partial(workflow.execute, heard=heard, raised=raised, ask=watching.get("ask"), journal=path, around=around)
    execute = _hearing(run, workflow.rules, watching.get("hear"))
    return interpreter(send, execute, asking(watching.get("ask") or nobody))


def _observed(send: Sender, connection: Connection, writer: observation.Writer, *, streamed: bool) -> Sender:
    """What sends, each model call observed."""

    async def observed_send(effect: Send) -> Replied | Undelivered:
        setup, target = connection.setup, effect.target
        setup = setup.targets.get(target, setup)
        asked = observation.ModelAsked(
            model=setup.model,
            endpoint=connection.endpoint if target == MAIN else connection.endpoints.get(target),
            sampling=setup.sampling,
            effect=effect,
            target=target,
            streamed=streamed,
            writer=writer,
        )
        with observation.Observed(asked) as observed:
            observed.outcome = outcome = await send(effect)
            return outcome

    return observed_send


def _writer(workflow: Workflow, connection: Connection, own: Redact | None) -> observation.Writer:
    """What writes parts of the run for who observes it, with what the run hides, and what they hide themselves."""
    made: list[observation.Write] = []

    def writer(more: Redact | None) -> observation.Write:
        if not made and own is None and more is None:
            made.append(lambda line, _: msgspec.json.encode(line))
        elif not made:
            from forge.journal.redaction import Redactor  # noqa: PLC0415 - most runs hide nothing

            parameters = workflow.compiled.tools.parameters
            rules, read = both(own, more, parameters), reading(workflow.compiled, connection.setup)
            made.append(Redactor(rules, read, parameters).written)
        return made[0]

    return writer


def _chunks(own: OnChunk | None, emitter: Emitter) -> OnChunk | None:
    """The user's `on_chunk`, after whoever listens to the events; None: replies are not streamed."""
    if own is None or not emitter.listening:
        return own

    def chunk(delta: Delta) -> Awaitable[None] | None:
        emitter.pass_on(delta)
        return own(delta)

    return chunk


def _hearing(execute: Runner, rules: Rules, hear: Callable[[], Sequence[str]] | None) -> Runner:
    """The interpreter of calls, adding what the user said meanwhile; not to a call that may end the run."""
    if hear is None:
        return execute

    def said() -> tuple[str, ...]:
        given = hear()
        return (given,) if isinstance(given, str) else msgspec.convert(given or (), tuple[str, ...])

    async def run(effect: Execute) -> Results:
        results = await execute(effect)
        if any(call.name in rules.terminal for call in effect.calls):
            return results
        # The calls have run: their results are not lost with it.
        nothing: tuple[str, ...] = ()
        return replace(results, heard=observation.quietly(said, nothing, "hear failed", logging.getLogger("forge")))

    return run
