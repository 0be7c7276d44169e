"""Raised: what the tools of one run raised: logged with its traceback, and the cause of the run's end.

An exception is no value, so none is part of a state or a journal: it is kept beside the run, in its own process.
"""

import logging
import re
import traceback
from collections import deque
from types import TracebackType

from forge.interpreters.tool_results import words_of
from forge.masking import MASK, Hidden
from forge.outcome import Halted
from forge.runtime.log import escaped, printable
from stages.halt import ToolsFailing
from stages.message import ToolCall
from stages.seen import leaves

TOOL_LOGGER = "forge.tools"

_log = logging.getLogger(TOOL_LOGGER)
_log.addFilter(escaped)

_KEPT = 64
"""Maximum number of exceptions that are kept, the latest ones: those of a large batch."""

_MINIMUM = 4
"""Minimum length of an argument to mask within a word, as in a journal (`forge.journal.marks`)."""

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
        """Log the exception with its traceback, and keep it."""
        self._errors.append((call.id, error))
        if not _log.isEnabledFor(logging.WARNING):
            return
        said = "run %s: the tool %s raised %s"
        names = (self._run[:8] or "-", call.name, type(error).__name__)
        record = _log.makeRecord(_log.name, logging.WARNING, __file__, 0, said, names, None)
        # Not as exc_info: some handlers record the local variables that a live traceback gives access to.
        record.exc_text = self._told(call, error)
        _log.handle(record)

    def cause_of(self, halted: Halted) -> Halted:
        """The end of the run, with the exception that it ended with as its cause if there is one."""
        if isinstance(halt := halted.halt, ToolsFailing):
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
            shown = hidden.without(words_of(one, _READ))
            return printable((re.sub(rf"(?<!\w)(?:{short})(?!\w)", MASK, shown) if short else shown)[:_LONGEST])

        def told(one: BaseException) -> str:
            frames = "".join(traceback.format_tb(_of_the_tool(one.__traceback__), -_FRAMES))
            return f"Traceback (most recent call last):\n{frames}{printable(type(one).__name__)}: {words(one)}"

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
