"""A run in the terminal: connects, shows each turn, handles signals, reports the end."""

import argparse
import asyncio
import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from returns.result import Failure, Result
from rich.text import Text

from forge.backends import Backend, startable
from forge.cli.console import Console
from forge.cli.ending import closing, going_on, unknown_lines
from forge.cli.options import backend_of, with_larger
from forge.cli.progress import downloading
from forge.cli.signals import SIGPIPE, RunInProgress, StopSignals, handling
from forge.cli.view import View
from forge.errors import ForgeError
from forge.interpreters import Asker
from forge.outcome import Finished, Halted
from forge.runtime.watching import Watching
from forge.workflow.workflow import Workflow
from stages import events
from stages.halt import Cancelled

_Begin = Callable[[Backend, Watching], RunInProgress]


class Shown:
    """A run of that workflow with the command's options, recorded in that journal."""

    def __init__(self, workflow: Workflow, journal: Path, options: argparse.Namespace) -> None:
        self._workflow, self._journal, self._options = workflow, journal, options
        self._console = Console(highlight=False)
        self._view = View(self._console)

    def run(self, title: Text, begin: _Begin, ask: Asker) -> int:
        """Show the run from start to end; the exit code."""
        with downloading(self._console) as progress:
            backend = with_larger(backend_of(self._options, progress), self._options, self._workflow)
            self._console.print(title, soft_wrap=True)
            stop = StopSignals(self._view.stopping, self._last_words)
            watching: Watching = {"observer": partial(self._show, stop), "ask": ask}
            if self._console.is_terminal:
                watching["on_chunk"] = self._view.grow
            with handling(stop):
                result = self._result(partial(begin, backend), watching, stop)
        halted = result.failure() if isinstance(result, Failure) else None
        for line in closing(halted, self._view.turns, self._journal, self._options):
            self._console.print(line, soft_wrap=True)
        if halted is None:
            return 0
        return stop.code if stop.code and isinstance(halted.halt, Cancelled) else 1

    def _show(self, stop: StopSignals, event: events.Event) -> None:
        """Show the event; where nobody reads any more, the run is cancelled, as it is by a signal."""
        try:
            self._view(event)
        except BrokenPipeError:
            if not stop.code:
                stop(SIGPIPE, None)

    def _result(
        self, begin: Callable[[Watching], RunInProgress], watching: Watching, stop: StopSignals
    ) -> Result[Finished, Halted]:
        # A download and a starting server show their own progress.
        asks = self._options.backend != "local" and not startable(self._options.backend)
        try:
            with self._view.connecting(self._options.backend) if asks else nullcontext():
                return asyncio.run(stop.run(begin, watching))
        except ForgeError:
            if self._view.turns and self._journal.exists():
                print(going_on(self._journal, self._options), file=sys.stderr)
            raise

    def _last_words(self) -> str:
        """The last lines of an aborted run: what may have happened, and how to resume."""
        specs = ((call, self._workflow.rules.tool(call.name)) for call in self._view.running)
        begun = unknown_lines(call for call, spec in specs if spec is None or not spec.retriable)
        on = (going_on(self._journal, self._options),) if self._journal.exists() else ()
        cursor = "\x1b[?25h" if self._console.is_terminal else ""
        return "\n".join((f"{cursor}\naborted", *begun, *on, ""))
