"""`forge agent run`: unattended work on a task file; progress on standard error, a record at the end."""

import argparse
import sys
from functools import partial
from pathlib import Path

import msgspec
from rich.text import Text

from forge.agent import Agent
from forge.agent.headless import Record, read_task, run_task
from forge.cli.approval import Approver
from forge.cli.chat.faces import PlainFace
from forge.cli.commands import add_backend, fill_agent_run
from forge.cli.console import Console, print_json, printable
from forge.cli.lines import View
from forge.cli.options import backend_of, refuse_in_vain, refuse_unwritable
from forge.cli.parser import Parser
from forge.cli.progress import downloading
from forge.cli.run import load, new_journal, resume_line, watched
from forge.errors import ForgeError, JournalError
from forge.journal.file import refuse_taken
from forge.journal.summary import glance

_SHOWN = frozenset({"halted", "limit_reached", "cancelled"})
"""Outcomes whose reason was already shown as the last row of the run."""


def run_headless(options: argparse.Namespace) -> int:
    """Work on the task; returns the exit code."""
    task = read_task(options.task)
    agent = None if task.agent is None else load(task.agent, Agent)
    if options.resume is not None and options.journal is not None:
        raise ForgeError("--journal is for a new run; --resume continues the journal that it names: leave one out")
    journal: Path = options.resume or options.journal or new_journal()
    if options.resume is None:
        refuse_taken(journal)  # before loading a model, which may take minutes
    refuse_unwritable("--record", options.record)
    # The command line's backend takes precedence over the task file's, and that over the agent's.
    named = options.backend or task.backend
    if named is None and agent is None:
        raise ForgeError(f"{options.task} has no backend; add one, or give --backend")
    asked = argparse.Namespace(**{**vars(options), "backend": named, "model": options.model or task.model or ""})
    if named is None:
        refuse_in_vain(asked, add_backend, "without a backend in the task file or --backend, an agent uses its own")
    how_to_resume = _how_to_resume(options, journal)
    console = Console(stderr=True)
    with downloading(console) as progress:
        backend = backend_of(asked, progress) if agent is None or named is not None else agent.backend
        console.say(Text.assemble(("task", "bold"), f": {printable(task.task)}"))
        resume = options.resume is not None
        ask = Approver(PlainFace()) if resume and sys.stdin.isatty() and sys.stdout.isatty() else None
        work = partial(run_task, task, journal_file=journal, agent=agent, backend=backend, resume=resume)
        record, signalled = watched(View(console), lambda watching: work(**watching), ask, journal, how_to_resume)
    if record.outcome == "cancelled" and signalled:
        record = msgspec.structs.replace(record, exit_code=signalled)
    file = options.record
    if file is not None:
        try:
            file.write_bytes(msgspec.json.format(msgspec.json.encode(record)) + b"\n")
        except OSError as error:
            told = f"the record cannot be written to {file}: {error.strerror}; it is on standard output"
            console.say(told, "red")
            file = None
    if file is None:  # on one line, except for a person
        print_json(record, indented=sys.stdout.isatty())
    for refused in record.violations:
        arguments = printable(bytes(refused.arguments).decode())
        console.say(f"refused: {refused.tool} {arguments}", "yellow")
    for begun in record.unknown:
        console.say(f"outcome unknown: {begun.tool} {printable(bytes(begun.arguments).decode())}", "yellow")
    why = "" if record.outcome in _SHOWN else f": {printable(record.reason or record.result)}"
    console.say(Text.assemble((record.outcome.replace("_", " "), "bold"), why))
    if _resumable(record, journal):
        console.say(how_to_resume)
    return record.exit_code


def _resumable(record: Record, journal: Path) -> bool:
    """Whether the run was interrupted; a journal that cannot be read leads nowhere."""
    if record.outcome == "cancelled":
        return journal.exists()
    try:
        return glance(journal).state == "open"
    except JournalError:
        return False


def _how_to_resume(options: argparse.Namespace, journal: Path) -> str:
    parser = Parser()
    fill_agent_run(parser)
    again = argparse.Namespace(**{**vars(options), "journal": None, "resume": journal})
    return resume_line("agent", "run", options.task, *parser.words(again))
