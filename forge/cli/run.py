"""`forge run`, `resume` and `runs journals`: load a workflow from a file, run it, and report the end."""

import argparse
import asyncio
import importlib.util
import random
import shlex
import sys
import traceback
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from returns.result import Failure, Result
from rich.text import Text

from forge.agent import Agent
from forge.backends import Backend, startable
from forge.backends.servers.process import state_folder
from forge.callbacks import Asker
from forge.cli import demo
from forge.cli.approval import Approver
from forge.cli.chat.faces import PlainFace
from forge.cli.commands import add_backend
from forge.cli.console import Console, LabelledText, print_json, printable
from forge.cli.lines import View
from forge.cli.options import backend_of, redact_of
from forge.cli.parser import Parser
from forge.cli.progress import downloading
from forge.cli.signals import SIGPIPE, Stopping, handling
from forge.errors import ForgeError, JournalError, quantity
from forge.interpreters import nobody
from forge.journal.file import refuse_taken
from forge.journal.records import read_journal
from forge.journal.summary import Glance, glance
from forge.outcome import Finished, Halted
from forge.runtime.recovery import resume_journal
from forge.runtime.runs import run
from forge.runtime.watching import Watching
from forge.workflow.workflow import Workflow
from stages import events
from stages.effect import Execute
from stages.halt import ApprovalNeeded, BackendFailed, Cancelled, OutcomeUnknown
from stages.message import ToolCall
from stages.options import OptionError, did_you_mean

# The last lines of a run: model calls, journal, calls with an unknown outcome, how to resume.

_RESUMABLE = (Cancelled, BackendFailed, ApprovalNeeded, OutcomeUnknown)
"""The halts from which the journal can be resumed."""


def _how_to_resume(journal: Path, options: argparse.Namespace) -> str:
    """How to resume an interrupted run of a workflow."""
    if redact_of(options).kinds():
        return "It cannot be resumed: its journal is redacted."
    backend = Parser()
    add_backend(backend)
    return resume_line("resume", getattr(options, "workflow", "demo"), journal, *backend.words(options))


def resume_line(*words: str | Path) -> str:
    """The complete command that resumes a run, with all options."""
    return f"To resume it: {shlex.join(('forge', *map(str, words)))}"


def _unknown_lines(calls: Iterable[ToolCall]) -> Iterator[str]:
    for call in calls:
        yield f"Outcome unknown: {call.name} {printable(call.arguments)} was started and may have taken effect."


# Loading definitions from a user's Python file: `FILE.py:NAME`.

_T = TypeVar("_T")


def load_definition(reference: str) -> Workflow:
    """The Workflow with that name in the file, or the workflow of the Agent with that name."""
    served = load_served(reference)
    return served.workflow if isinstance(served, Agent) else served


def load_served(reference: str, several: str = "") -> Workflow | Agent:
    """The Workflow or Agent with that name. `several`: a command that takes more than one."""
    kinds: tuple[type[Workflow | Agent], ...] = (Workflow, Agent)
    return load(reference, *kinds, several=several)


def load(reference: str, *kinds: type[_T], several: str = "") -> _T:
    """The value of one of these types with that name in the file, or the only one there. ForgeError if there is none.

    `demo` is the workflow of `forge demo`.
    """
    if reference == "demo" and isinstance(demo.workflow, kinds):
        return demo.workflow
    file, _, name = reference.rpartition(":") if ".py:" in reference else (reference, "", "")
    what = " or ".join(kind.__name__.lower() for kind in kinds)
    module = imported(file, f"the {what} as FILE.py:NAME")
    found = {key: value for key, value in vars(module).items() if isinstance(value, kinds)}
    if not found:
        line = " or ".join(f"{kind.__name__.lower()} = {kind.__name__}(…)" for kind in kinds)
        raise ForgeError(f"{file} has no {what}; it needs a line like: {line}")
    there = ", ".join(found)
    if name and name not in found:
        raise ForgeError(f"{file} has no {what} named {name!r}; it has: {there}.{did_you_mean(name, found)}")
    if not name and len(found) > 1:
        each = [f"{file}:{one}" for one in found]
        write = f"{several} {shlex.join(each)}, and the options as before" if several else " or ".join(each)
        raise ForgeError(f"{file} has more than one {what}; write {write}")
    return found[name] if name else next(iter(found.values()))


def imported(file: str, written: str) -> ModuleType:
    """The imported file. ForgeError if that fails; `written` says how to write the argument."""
    path = Path(file)
    if path.is_dir():
        raise ForgeError(f"{file} is a folder; write {written}")
    if not path.is_file():
        meant = did_you_mean(path.name, [near.name for near in path.parent.glob("*.py")])
        raise ForgeError(f"there is no file {file}; write {written}.{meant}")
    # Use the file's own name, unless a module such as `json` has it already.
    taken = not path.stem.isidentifier() or importlib.util.find_spec(path.stem) is not None
    name = f"forge_workflow_{path.stem}" if taken else path.stem
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise ForgeError(f"{path} is not a Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    # Append, so that modules next to the file can be imported but hide no installed ones.
    sys.path.append(str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except OptionError as error:
        problems = "\n".join(f"- {problem}" for problem in error.problems)
        raise ForgeError(f"{path} has an invalid workflow, agent or scenario:\n{problems}") from None
    # A user's file may raise anything: report what and where, without a traceback through forge.
    except (Exception, SystemExit) as error:
        what = "it ends the program" if isinstance(error, SystemExit) else f"{type(error).__name__}: {error}"
        trace = traceback.extract_tb(error.__traceback__)
        at = next((f" (line {one.lineno})" for one in reversed(trace) if one.filename == str(path.resolve())), "")
        raise ForgeError(f"{path} cannot be imported: {what}{at}") from error
    return module


# A run in the terminal: connects, shows each turn, handles signals, reports the end.

_Begin = Callable[[Backend, Watching], Coroutine[None, None, Result[Finished, Halted]]]


def watched(
    view: View,
    work: Callable[[Watching], Coroutine[None, None, _T]],
    ask: Asker | None,
    journal: Path,
    how_to_resume: str,
) -> tuple[_T, int]:
    """The result of the work, which the view shows, and the exit code of the signal that cancelled it, or 0.

    The first signal ends the run as `Cancelled`, with every call answered. The second prints the calls with an unknown
    outcome and how to resume, and exits: the journal is always complete, and servers started by forge notice.
    """

    def aborted() -> str:
        lines = ["\x1b[?25h" if view.console.is_terminal else "", "aborted"]
        if journal.exists():
            with suppress(JournalError):
                pending = read_journal(journal).pending
                if isinstance(pending, Execute) and not pending.retriable:
                    lines += _unknown_lines(pending.calls)
            lines.append(how_to_resume)
        return "\n".join((*lines, ""))

    async def watching(signals: ExitStack) -> tuple[_T, int]:
        cancel = asyncio.Event()

        def stopping() -> None:
            cancel.set()
            view.stopping(stop.again)

        def show(event: events.Stamped) -> None:
            try:
                view(event)
            except BrokenPipeError:  # as with a signal, unless it is only the progress of unattended work
                if not stop.code and not view.console.stderr:
                    stop(SIGPIPE)

        stop = Stopping(stopping, last_words=aborted)
        signals.enter_context(handling(stop))
        options: Watching = {"on_event": show, "cancel": cancel, "ask": ask}
        if view.console.is_terminal:
            options["on_chunk"] = view.stream
        return await work(options), stop.code

    with ExitStack() as signals:  # until the loop is closed, which waits for tools that do not end
        return asyncio.run(watching(signals))


def _shown(journal: Path, options: argparse.Namespace, title: Text, begin: _Begin) -> int:
    """Show a run, recorded in that journal, from start to end; returns the exit code."""
    view, how_to_resume = View(console := Console()), _how_to_resume(journal, options)
    with downloading(console) as progress:
        backend = backend_of(options, progress)
        console.say(title)
        ask: Asker = Approver(PlainFace()) if sys.stdin.isatty() else nobody
        # A download and a starting server show their own progress.
        asks = options.backend != "local" and not startable(options.backend)
        try:
            with view.connecting(options.backend) if asks else nullcontext():
                result, signalled = watched(view, partial(begin, backend), ask, journal, how_to_resume)
        except ForgeError:
            if view.turns and journal.exists():
                print(how_to_resume, file=sys.stderr)
            raise
    halted = result.failure() if isinstance(result, Failure) else None
    for line in _unknown_lines(halted.state.ledger.in_doubt if halted else ()):
        console.say(line, "yellow")
    recorded = journal.exists()
    console.say(f"{quantity(view.turns, 'model call')}.{f' Journal: {journal}' if recorded else ''}", "dim")
    if halted is None:
        return 0
    if recorded and isinstance(halted.halt, _RESUMABLE):
        console.say(how_to_resume)
    return signalled if signalled and isinstance(halted.halt, Cancelled) else 1


# `forge runs`: recent journals, how their runs ended, and how to resume interrupted ones.

_COLOURS = {"done": "green", "open": "yellow", "ended": "red"}


def new_journal() -> Path:
    """The file for a new run's journal, in forge's state folder."""
    return state_folder() / "runs" / f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}.jsonl"


def run_runs(options: argparse.Namespace) -> int:
    """Show the most recent runs."""
    folder: Path = options.folder or state_folder() / "runs"
    if options.folder and not folder.is_dir():
        raise ForgeError(f"there is no folder {folder}")
    files = [file for file in folder.glob("*.jsonl") if file.is_file()] if folder.is_dir() else []
    files.sort(key=lambda file: file.stat().st_mtime, reverse=True)
    found: list[Glance | JournalError] = []
    for file in files[: options.last]:
        try:
            found.append(glance(file))
        except JournalError as error:
            found.append(error)
    if options.json:
        for unread in (one for one in found if isinstance(one, JournalError)):
            sys.stderr.write(f"{printable(str(unread))}\n")
        print_json([one for one in found if isinstance(one, Glance)])
        return 0
    console = Console()
    if not found:
        told = f"no runs are recorded in {folder} yet; forge run and forge demo write their journals there"
        console.say(f"{told}, unless --journal names another file. For durable runs: forge runs list")
    for one in found:
        if isinstance(one, JournalError):
            console.say(printable(str(one)), "dim")
        else:
            _show(console, one)
    if any(isinstance(one, Glance) and _resumable(one) for one in found):
        console.say("In place of the words in capitals, write what the run was started with.", "dim")
    return 0


def _resumable(run: Glance) -> bool:
    return run.state == "open" and not run.redacted


def _show(console: Console, run: Glance) -> None:
    from forge.agent.headless.running import HEADLESS  # noqa: PLC0415 - commands that only record a run can do without

    try:
        moment = datetime.fromisoformat(run.started)
        when = f"{moment.replace(tzinfo=moment.tzinfo or UTC).astimezone():%Y-%m-%d %H:%M}"
    except ValueError:
        when = "at an unknown time"
    facts = f"   {when}, {quantity(run.turns, 'turn')}, {printable(run.model) or 'a model'}"
    console.say(Text.assemble((printable(run.workflow), "bold"), (facts, "dim")))
    console.show(LabelledText(run.state, printable(run.outcome), label_style=_COLOURS[run.state]))
    console.show(LabelledText("journal", run.path))
    if _resumable(run):
        # The journal contains neither the workflow's or task's file nor the server.
        asked = None if run.asked_mode == "auto" else run.asked_mode
        given = {"--mode": asked, "--seed": run.seed, "--temperature": run.temperature, "--max-tokens": run.max_tokens}
        words = [word for name, value in given.items() if value is not None for word in (name, str(value))]
        way = "agent run TASK.toml --resume" if run.workflow == HEADLESS else "resume FILE.py:NAME"
        line = f"forge {way} {shlex.join((run.path, '--backend'))} BACKEND {shlex.join(words)}"
        console.show(LabelledText("resume", line.rstrip()))


# The commands demo, run and resume: run a workflow and show it.


def run_demo(options: argparse.Namespace) -> int:
    """Run the demo's workflow; returns the exit code."""
    order = options.order or random.choice([*demo.ORDERS])  # noqa: S311 - variety, not secrecy
    if order not in demo.ORDERS:
        known = ", ".join(demo.ORDERS)
        raise ForgeError(f"--order: there is no order {order!r}; there are: {known}.{did_you_mean(order, demo.ORDERS)}")
    return _begin(demo.workflow, options.message or demo.request(order), {}, options)


def run_workflow(options: argparse.Namespace) -> int:
    """Run a user's workflow; returns the exit code."""
    workflow = load(options.workflow, Workflow)
    return _begin(workflow, options.message, prompt_values(options.var), options)


def prompt_values(given: Sequence[str]) -> dict[str, str]:
    """The values of the system prompt's placeholders, from `--var`. ForgeError for one without a name."""
    pairs = [pair.partition("=") for pair in given]
    if wrong := [name for name, equals, _ in pairs if not equals]:
        raise ForgeError(f"--var {wrong[0]}: write it as NAME=VALUE")
    return {name: value for name, _, value in pairs}


def resume_workflow(options: argparse.Namespace) -> int:
    """Resume a run of a user's workflow or agent; returns the exit code."""
    workflow = load_definition(options.workflow)
    journal: Path = options.journal
    done = len(read_journal(journal).entries)

    def go_on(backend: Backend, watching: Watching) -> Coroutine[None, None, Result[Finished, Halted]]:
        return resume_journal(workflow, journal, backend=backend, **watching)

    title = Text.assemble((workflow.name, "bold"), f": resumes after {quantity(done, 'step')} of {journal}")
    return _shown(journal, options, title, go_on)


def _begin(workflow: Workflow, message: str, values: Mapping[str, str], options: argparse.Namespace) -> int:
    workflow.start(message, values)  # report wrong definitions before loading a model
    journal = options.journal or new_journal()
    refuse_taken(journal)  # before loading a model, which may take minutes
    hidden = redact_of(options)

    def begin(backend: Backend, watching: Watching) -> Coroutine[None, None, Result[Finished, Halted]]:
        recorded: Watching = {**watching, "journal": str(journal)}
        if hidden.kinds():
            recorded["redact"] = hidden
        return run(workflow, message, backend=backend, prompt_vars=values, **recorded)

    title = Text.assemble((workflow.name, "bold"), f": {printable(message)}")
    return _shown(journal, options, title, begin)
