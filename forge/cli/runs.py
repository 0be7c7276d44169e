"""`forge runs`: recent journals, how their runs ended, and how to resume interrupted ones."""

import argparse
import shlex
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from rich.text import Text

from forge.backends.servers.process import state_folder
from forge.cli.console import Console
from forge.cli.layout import LabelledText, show
from forge.cli.plain import printable
from forge.errors import ForgeError, JournalError
from forge.journal.summary import Glance, glance

_COLOURS = {"done": "green", "open": "yellow", "ended": "red"}


def runs_folder() -> Path:
    """The default folder for journals."""
    return state_folder() / "runs"


def new_journal() -> Path:
    """The file for a new run's journal there."""
    return runs_folder() / f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}.jsonl"


def run_runs(options: argparse.Namespace) -> int:
    """Show the most recent runs."""
    folder: Path = options.folder or runs_folder()
    if options.folder and not folder.is_dir():
        raise ForgeError(f"there is no folder {folder}")
    found = _recent(folder, options.last)
    if options.json:
        print(msgspec.json.encode([one for one in found if isinstance(one, Glance)]).decode())
        return 0
    console = Console(highlight=False)
    if not found:
        told = f"no runs are recorded in {folder} yet; forge run and forge demo write journals there"
        console.print(Text(told), soft_wrap=True)
    for one in found:
        if isinstance(one, JournalError):
            console.print(Text(printable(str(one)), style="dim"), soft_wrap=True)
        else:
            _show(console, one)
    return 0


def _recent(folder: Path, most: int) -> list[Glance | JournalError]:
    """The most recent journals in the folder, newest first."""
    files = [file for file in folder.glob("*.jsonl") if file.is_file()] if folder.is_dir() else []
    files.sort(key=lambda file: file.stat().st_mtime, reverse=True)
    found: list[Glance | JournalError] = []
    for file in files[:most]:
        try:
            found.append(glance(file))
        except JournalError as error:
            found.append(error)
    return found


def _show(console: Console, run: Glance) -> None:
    turns = "" if run.turns is None else f", {run.turns} turn{'' if run.turns == 1 else 's'}"
    facts = f"   {_when(run.started)}{turns}, {printable(run.model) or 'a model'}"
    console.print(Text.assemble((printable(run.workflow), "bold"), (facts, "dim")), soft_wrap=True)
    show(console, LabelledText(run.state, printable(run.outcome), label_style=_COLOURS[run.state]))
    show(console, LabelledText("journal", run.path))
    if run.state == "open" and not run.redacted:
        show(console, LabelledText("resume", _resume_line(run)))


def _when(started: str) -> str:
    """The time in the local time zone."""
    try:
        moment = datetime.fromisoformat(started)
    except ValueError:
        return "at an unknown time"
    return f"{moment.replace(tzinfo=moment.tzinfo or UTC).astimezone():%Y-%m-%d %H:%M}"


def _resume_line(run: Glance) -> str:
    """The command that resumes a run; the journal names neither the workflow's or task's file nor the server."""
    from forge.agent.headless.build import HEADLESS  # noqa: PLC0415 - commands that only record a run can do without

    given = {"--seed": run.seed, "--temperature": run.temperature, "--max-tokens": run.max_tokens}
    words = [word for name, value in given.items() if value is not None for word in (name, str(value))]
    way = "agent run TASK.toml --resume" if run.workflow == HEADLESS else "resume FILE.py:NAME"
    return f"forge {way} {shlex.join((run.path, '--backend'))} BACKEND {shlex.join(words)}".rstrip()
