"""The commands demo, run and resume: run a workflow and show it."""

import argparse
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.text import Text

from forge.backends import Backend
from forge.cli import demo
from forge.cli.approval import ask_person
from forge.cli.load import load_workflow
from forge.cli.options import redact_of
from forge.cli.plain import printable
from forge.cli.running import Shown
from forge.cli.runs import new_journal
from forge.cli.signals import RunInProgress
from forge.errors import ForgeError, quantity
from forge.interpreters import Asker, nobody
from forge.journal.file import refuse_taken
from forge.journal.records import read_journal
from forge.runtime.recovery import resume_journal
from forge.runtime.runs import run
from forge.runtime.watching import Watching
from forge.workflow.suggestions import did_you_mean
from forge.workflow.workflow import Workflow


def run_demo(options: argparse.Namespace) -> int:
    """Run the demo's workflow; the exit code."""
    order = options.order or random.choice([*demo.ORDERS])  # noqa: S311 - variety, not secrecy
    if order not in demo.ORDERS:
        known = ", ".join(demo.ORDERS)
        raise ForgeError(f"--order: there is no order {order!r}; there are: {known}.{did_you_mean(order, demo.ORDERS)}")
    return _begin(demo.workflow, options.message or demo.request(order), {}, options)


def run_workflow(options: argparse.Namespace) -> int:
    """Run a user's workflow; the exit code."""
    workflow = load_workflow(options.workflow)
    return _begin(workflow, options.message, prompt_values(options.var), options)


def prompt_values(given: Sequence[str]) -> dict[str, str]:
    """The values of the system prompt's placeholders, from `--var`. ForgeError for one without a name."""
    pairs = [pair.partition("=") for pair in given]
    if wrong := [name for name, equals, _ in pairs if not equals]:
        raise ForgeError(f"--var {wrong[0]}: write it as NAME=VALUE")
    return {name: value for name, _, value in pairs}


def resume_workflow(options: argparse.Namespace) -> int:
    """Resume a run of a user's workflow; the exit code."""
    workflow = load_workflow(options.workflow)
    journal: Path = options.journal
    done = len(read_journal(journal).entries)

    def go_on(backend: Backend, watching: Watching) -> RunInProgress:
        return resume_journal(workflow, journal, backend=backend, **watching)

    title = Text.assemble((workflow.name, "bold"), f": resumes after {quantity(done, 'step')} of {journal}")
    return Shown(workflow, journal, options).run(title, go_on, _asker())


def _begin(workflow: Workflow, message: str, values: Mapping[str, str], options: argparse.Namespace) -> int:
    workflow.start(message, values)  # report wrong definitions before loading a model
    journal = options.journal or new_journal()
    refuse_taken(journal)  # before loading a model, which may take minutes
    hidden = redact_of(options)

    def begin(backend: Backend, watching: Watching) -> RunInProgress:
        recorded: Watching = {**watching, "journal": str(journal)}
        if hidden.kinds():
            recorded["redact"] = hidden
        return run(workflow, message, backend=backend, prompt_vars=values, **recorded)

    title = Text.assemble((workflow.name, "bold"), f": {printable(message)}")
    return Shown(workflow, journal, options).run(title, begin, _asker())


def _asker() -> Asker:
    return ask_person if sys.stdin.isatty() else nobody
