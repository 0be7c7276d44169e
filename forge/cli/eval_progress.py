"""Progress of `forge eval run`: a line for each run, and how long the rest will take; in a terminal, a bar."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from forge.cli.console import printable
from forge.errors import quantity
from forge.evals.row import Configuration, Row
from forge.evals.scenario import RunVerdict

_STYLES: dict[RunVerdict, str] = {
    "right": "green",
    "wrong": "red",
    "harm": "bold red",
    "unfinished": "yellow",
    "unjudged": "magenta",
}
_MINUTE, _HOUR = 60, 3600


class EvalProgress:
    """Shows rows as they come, of `total` that there will be; in the end, with those from `before`, how runs ended."""

    def __init__(self, console: Console, bar: Progress, total: int, before: Iterable[Row]) -> None:
        self._console, self._bar, self._total = console, bar, total
        self._began, self._done = time.monotonic(), 0
        self._verdicts: defaultdict[Configuration, Counter[RunVerdict]] = defaultdict(Counter)
        for row in before:
            self._verdicts[row.configuration][row.verdict] += 1
        self._task = bar.add_task("", total=total, visible=total > 0)

    @classmethod
    @contextmanager
    def shown(cls, console: Console, total: int, before: Iterable[Row] = ()) -> Iterator[Self]:
        """The progress, with a bar for as long as it lasts where somebody watches."""
        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
            made = cls(console, bar, total, before)
            try:
                yield made
            finally:
                for line in made._summary():
                    console.print(line, soft_wrap=True)

    def told(self, row: Row) -> None:
        """Show the row."""
        self._done += 1
        self._verdicts[row.configuration][row.verdict] += 1
        # How long the rest will take, from how long what is done took.
        rest = (time.monotonic() - self._began) / self._done * (self._total - self._done)
        about = f"{rest:.0f} s"
        if rest >= _MINUTE:
            about = f"{rest / _MINUTE:.0f} min" if rest < _HOUR else f"{rest / _HOUR:.1f} h"
        left = f"about {about} left" if self._done < self._total else ""
        self._bar.update(self._task, completed=self._done, description=left)
        number = "" if self._console.is_terminal else f"[{self._done}/{self._total}] "
        more = f"; {left}" if left and not self._console.is_terminal else ""
        verdict = Text(f"{row.verdict:<10}", style=_STYLES[row.verdict])
        took = f"  {quantity(row.calls, 'call')}, {row.seconds:.1f} s{more}"
        name = f" {row.configuration.name}  {row.scenario} {row.seed}"
        line = Text.assemble(number, verdict, name, (took, "dim"))
        if row.verdict != "right":
            line.append(f"  {printable(row.why, 160)}", style="dim")
        self._console.print(line, soft_wrap=True)

    def _summary(self) -> Iterator[Text]:
        """A line for each configuration: how many of its runs ended how."""
        for configuration, counts in self._verdicts.items():
            parts = [f"{counts['right']} of {counts.total()} right"]
            parts += [f"{counts[v]} {v}" for v in _STYLES if v != "right" and counts[v]]
            yield Text.assemble((configuration.name, "bold"), f": {', '.join(parts)}")
