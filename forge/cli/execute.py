"""What the commands do: choose the backend, run the workflow, show it, say how it ended."""

import argparse
import asyncio
import random
import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from returns.result import Failure
from rich.console import Console
from rich.text import Text

from forge.backends import Backend, startable
from forge.backends.process import state_folder
from forge.cli import demo
from forge.cli.interrupt import Running, interruptible
from forge.cli.load import load_workflow
from forge.cli.options import backend_of, redact_of
from forge.cli.progress import downloading
from forge.cli.view import View, printable
from forge.errors import ForgeError
from forge.interpreters import nobody
from forge.interpreters.recorded import read_journal
from forge.interpreters.threads import in_thread, unheard
from forge.interpreters.write_ahead import refuse_taken
from forge.recovery import resume_journal
from forge.run import run
from forge.watching import Watching
from forge.workflow import Workflow
from stages.effect import Approved, Ask, Rejected
from stages.halt import BackendFailed, Cancelled


def run_demo(options: argparse.Namespace) -> int:
    """Run the demo's workflow; the exit code."""
    order = options.order or random.choice([*demo.ORDERS])  # noqa: S311 - variety, not secrecy
    return _begin(demo.workflow, options.message or demo.request(order), {}, options)


def run_workflow(options: argparse.Namespace) -> int:
    """Run a user's workflow; the exit code."""
    workflow = load_workflow(options.workflow)
    pairs = [pair.partition("=") for pair in options.var]
    if wrong := [name for name, equals, _ in pairs if not equals]:
        raise ForgeError(f"--var {wrong[0]}: write it as NAME=VALUE")
    return _begin(workflow, options.message, {name: value for name, _, value in pairs}, options)


def resume_workflow(options: argparse.Namespace) -> int:
    """Go on with a run of a user's workflow; the exit code."""
    workflow = load_workflow(options.workflow)
    journal: Path = options.journal
    done = len(read_journal(journal).entries)

    def go_on(backend: Backend, watching: Watching) -> Running:
        return resume_journal(workflow, journal, backend=backend, **watching)

    title = Text(workflow.name, style="bold").append(f": goes on after {done} steps of {journal}", style="none")
    return _show(title, go_on, journal, options)


def _begin(workflow: Workflow, message: str, values: Mapping[str, str], options: argparse.Namespace) -> int:
    workflow.start(message, values)  # what is wrong with the definition is said before a model is loaded
    journal = options.journal or _journal()
    refuse_taken(journal)  # before a model is loaded, which may take minutes
    hidden = redact_of(options)

    def begin(backend: Backend, watching: Watching) -> Running:
        recorded: Watching = {**watching, "journal": str(journal)}
        if hidden.kinds():
            recorded["redact"] = hidden
        return run(workflow, message, backend=backend, prompt_vars=values, **recorded)

    return _show(
        Text(workflow.name, style="bold").append(f": {printable(message)}", style="none"), begin, journal, options
    )


Begin = Callable[[Backend, Watching], Running]


def _show(title: Text, begin: Begin, journal: Path, options: argparse.Namespace) -> int:
    console = Console(highlight=False)
    view = View(console)
    with downloading(console) as progress:
        backend = backend_of(options, progress)
        console.print(title, soft_wrap=True)
        watching: Watching = {"observer": view, "ask": ask_person if sys.stdin.isatty() else nobody}
        if console.is_terminal:
            watching["on_chunk"] = view.grow
        # A download and a server that starts say themselves how far they are.
        asks = options.backend != "local" and not startable(options.backend)
        with view.connecting(options.backend) if asks else nullcontext():
            result = asyncio.run(interruptible(partial(begin, backend), watching))
    where = f" Journal: {journal}" if journal.exists() else ""
    calls = "1 model call" if view.turns == 1 else f"{view.turns} model calls"
    console.print(Text(f"{calls}.{where}", style="dim"), soft_wrap=True)
    resumable = where and not redact_of(options).kinds()
    if isinstance(result, Failure) and isinstance(result.failure().halt, Cancelled | BackendFailed) and resumable:
        console.print(Text(f"To go on with it: {_again(options, journal)}", style="dim"), soft_wrap=True)
    return 1 if isinstance(result, Failure) else 0


def _again(options: argparse.Namespace, journal: Path) -> str:
    """The command that goes on with a run that was cut short."""
    workflow = getattr(options, "workflow", "demo")
    command = shlex.join(("forge", "resume", workflow, str(journal), "--backend", options.backend))
    return f"{command} (and the other options of the run, if there were any)"


async def ask_person(effect: Ask) -> Approved | Rejected:
    """Whoever sits at the terminal decides; anything but yes is no."""
    before = "it was begun before, and may have taken effect: " if effect.in_doubt else ""
    before += f"these arguments are wrong: {printable(effect.problem)}; " if effect.problem else ""
    question = f"     {before}may {effect.call.name} {printable(effect.call.arguments)} run? [y/N] "
    try:
        answer = await in_thread(lambda: input(question), unheard)
    except EOFError:
        answer = ""
    if str(answer).strip().lower() in {"y", "yes"}:
        return Approved(digest=effect.digest)
    return Rejected(digest=effect.digest, reason="the user said no")


def _journal() -> Path:
    return state_folder() / "runs" / f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}.jsonl"
