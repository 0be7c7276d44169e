"""`forge replay`: show a recorded run, or replay it state by state."""

import argparse
import glob
from collections.abc import Iterator
from pathlib import Path

from rich.text import Text

from forge.cli.console import Console, LabelledText, printable, readable
from forge.cli.lines import View
from forge.cli.rows import provenance, shortened
from forge.cli.run import load_definition
from forge.cli.timelines import page, recorded_timeline, save_page
from forge.errors import ForgeError
from forge.evals.results import rows_with
from forge.evals.row import Row
from forge.journal.records import Journal, read_journal
from forge.journal.replaying import DivergenceError, Step, states
from stages.effect import Ask, Execute, Send
from stages.message import Assistant, System, Tool, User
from stages.state import Awaiting, Ledger, State


def run_replay(options: argparse.Namespace) -> int:
    """Show a recorded run, or replay it with its workflow; 1 if the replay differs."""
    journal, console = read_journal(options.file), Console()
    if not options.workflow and (options.to is not None or options.html):
        raise ForgeError("--to and --html need states, which only a workflow can reproduce; add --workflow")
    if options.to is not None and options.html:
        raise ForgeError("--to is for the terminal; the page of --html has all states")
    workflow = load_definition(options.workflow) if options.workflow else None
    _header(console, journal)
    if workflow is None:
        for section in recorded_timeline(journal):
            console.say(section.title, "bold")
            for row in map(shortened, section.items):
                console.show(row, _WIDE)
        _show_verdict(console, options.file)
        return 0
    if workflow.name != journal.header.workflow:
        console.say(f"replayed as another workflow: {printable(workflow.name)}", "yellow")
    steps = states(journal, workflow)
    try:
        if options.html:
            save_page(options.html, page(journal, steps))
            console.say(f"written: {options.html}")
        else:
            _walk(console, steps, options.to)
            _show_verdict(console, options.file)
    except DivergenceError as error:
        console.say(f"at state {error.step.number}: {readable(str(error))}", "red")
        return 1
    return 0


def _walk(console: Console, steps: Iterator[Step], to: int | None) -> None:
    """Print the steps and their events; at `to`, the complete state. ForgeError at the end if there are fewer."""
    view = View(console, live=False)
    for step in steps:
        heading = Text.assemble((f"state {step.number}", "bold"), (f"  {printable(phase_of(step.state))}", "dim"))
        console.say(heading)
        for event in step.events:
            view(event)
        if step.number == to:
            break
    if to is not None:
        for row in _state_rows(step.state):
            console.show(row, _WIDEST)
        if step.number < to:
            raise ForgeError(f"--to {to}: the journal ends at state {step.number}")


def _header(console: Console, journal: Journal) -> None:
    header, setup = journal.header, journal.header.setup
    when = f", {printable(header.started)}" if header.started else ""
    facts = f"{printable(setup.model) or 'a model'}, {setup.mode}, {setup.context_tokens:,} tokens of context"
    title = Text.assemble((printable(header.workflow), "bold"), (f"  {facts}{when}", "dim"))
    console.say(title)


# A state: its phase, the non-default fields of its ledger, its messages.

_WIDE, _WIDEST = 14, 28
"""Widths of the column of labels for a recording, and for a state."""


def _state_rows(state: State) -> Iterator[LabelledText]:
    yield LabelledText("phase", printable(phase_of(state)))
    ledger, budget = state.ledger, state.ledger.budget
    spare = ((name, getattr(budget, name)) for name in budget.__struct_fields__ if name != "price")
    left = ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in spare if value is not None)
    yield LabelledText("budget", printable(left))
    fresh = Ledger(budget=budget)
    for name in ledger.__struct_fields__:
        value = getattr(ledger, name)
        if value != getattr(fresh, name):
            told = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
            yield LabelledText(name, printable(told))
    for index, message in enumerate(state.history):
        text = f"{message.name}: {message.text}" if isinstance(message, Tool) else message.text
        kind = message.kind if isinstance(message, User | Tool) else type(message).__name__.lower()
        label = kind if isinstance(message, System) else f"{kind}, turn {message.turn}"
        yield LabelledText(f"[{index}] {label}", printable(text))
        if isinstance(message, Assistant):
            for call in message.calls:
                yield LabelledText("", printable(f"calls {call.name} {call.arguments}{provenance(call)}"))


def phase_of(state: State) -> str:
    """The phase as text, with what it awaits."""
    phase = state.phase
    match phase:
        case Awaiting(effect=Send(turn=turn), summary=summary):
            return f"awaiting the model, turn {turn}{', for a summary' if summary else ''}"
        case Awaiting(effect=Execute(calls=calls)):
            return f"awaiting the tools {', '.join(call.name for call in calls)}"
        case Awaiting(effect=Ask(call=call)):
            return f"awaiting a person's decision on {call.name}"
        case _:
            return type(phase).__name__.lower()


# The verdict of an eval's run, from the results file beside its journals.


def recorded_row(journal: Path) -> Row | None:
    """The row of the journal's run; None if no results file beside its folder has it."""
    whole = journal.absolute()
    folder = next((one for one in whole.parents if one.name.endswith(".journals")), None)
    if folder is None:
        return None
    name = whole.relative_to(folder).as_posix()
    stem = folder.name.removesuffix(".journals")
    files = (one for one in folder.parent.glob(f"{glob.escape(stem)}*") if one.stem == stem and one.is_file())
    found = (row for file in files for row in rows_with(file, name))
    return next((row for row in found if any(one.partition("/")[2] == name for one in row.journals)), None)


def _show_verdict(console: Console, journal: str) -> None:
    """Show the scenario, end and verdict of the journal's run, if it is an eval's."""
    if row := recorded_row(Path(journal)):
        why = f": {printable(row.why)}" if row.why else ""
        console.say(f"scenario {printable(row.scenario)}, seed {row.seed}, {printable(row.configuration.name)}", "bold")
        console.show(LabelledText("ended", printable(row.end)), _WIDE)
        console.show(LabelledText("verdict", f"{row.verdict}{why}"), _WIDE)
