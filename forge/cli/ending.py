"""The last lines of a run: model calls, journal, calls with an unknown outcome, how to resume."""

import argparse
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.text import Text

from forge.cli.flags import add_backend
from forge.cli.options import redact_of
from forge.cli.parser import Parser
from forge.cli.plain import printable
from forge.errors import quantity
from forge.outcome import Halted
from stages.halt import ApprovalNeeded, BackendFailed, Cancelled, OutcomeUnknown
from stages.message import ToolCall

_RESUMABLE = (Cancelled, BackendFailed, ApprovalNeeded, OutcomeUnknown)
"""The halts from which the journal can be resumed."""


def closing(halted: Halted | None, turns: int, journal: Path, options: argparse.Namespace) -> Iterator[Text]:
    """The last lines of a run; `halted` is None for one that reached its goal."""
    where = f" Journal: {journal}" if journal.exists() else ""
    if halted is not None:
        yield from (Text(line, style="yellow") for line in unknown_lines(halted.state.ledger.in_doubt))
    yield Text(f"{quantity(turns, 'model call')}.{where}", style="dim")
    if halted is not None and isinstance(halted.halt, _RESUMABLE) and where:
        yield Text(going_on(journal, options))


def going_on(journal: Path, options: argparse.Namespace) -> str:
    """How to resume an interrupted run: the complete command, with every option of the run."""
    if redact_of(options).kinds():
        return "It cannot be resumed: its journal is redacted."
    backend = Parser()
    add_backend(backend)
    workflow = getattr(options, "workflow", "demo")
    command = shlex.join(("forge", "resume", workflow, str(journal), *backend.words(options)))
    return f"To resume it: {command}"


def unknown_lines(calls: Iterable[ToolCall]) -> Iterator[str]:
    """One line for each of these calls."""
    for call in calls:
        yield f"Outcome unknown: {call.name} {printable(call.arguments)} was started and may have taken effect."
