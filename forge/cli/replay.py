"""`forge replay`: show a recorded run, or replay it state by state."""

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct
from rich.text import Text

from forge.cli.console import Console, LabelledText, print_json, printable, readable
from forge.cli.eval_journals import journal_workflow, judged_run
from forge.cli.lines import COLUMN, View, phase_of, state_rows
from forge.cli.timelines import page, recorded_timeline, save_page
from forge.errors import ForgeError
from forge.journal.records import Journal, read_journal
from forge.journal.replaying import DivergenceError, Step, states
from stages.events import Stamped
from stages.halt import Halt
from stages.state import State


def run_replay(options: argparse.Namespace) -> int:
    """Show a recorded run, or replay it with its workflow; 1 if the replay differs."""
    journal = read_journal(options.file)
    console = Console()
    if not options.workflow:
        if options.to is not None or options.json or options.html:
            needs = "--to, --json and --html need states, which only a workflow can reproduce"
            raise ForgeError(f"{needs}; add --workflow")
        _header(console, journal)
        _print(console, recorded(journal))
        _print(console, judged_run(Path(options.file)))
        return 0
    workflow = journal_workflow(options.workflow, Path(options.file))
    if not options.json:
        _header(console, journal)
        if workflow.name != journal.header.workflow:
            console.say(f"replayed as another workflow: {printable(workflow.name)}", "yellow")
    steps = states(journal, workflow)
    try:
        if options.html:
            if options.to is not None:
                raise ForgeError("--to is for the terminal and --json; the page of --html has all states")
            save_page(options.html, page(journal, steps))
            console.say(f"written: {options.html}")
            return 0
        if options.json:
            for step, last in _with_last(steps, options.to):
                line = _Line(
                    step=step.number,
                    phase=phase_of(step.state),
                    turn=step.state.ledger.turn,
                    events=step.events,
                    halt=step.halt,
                    state=step.state if last else None,
                )
                print_json(line)
            return 0
        _walk(console, steps, options.to)
    except DivergenceError as error:
        console.say(f"at state {error.step.number}: {readable(str(error))}", "red")
        return 1
    _print(console, judged_run(Path(options.file)))
    return 0


def _print(console: Console, parts: Iterable[LabelledText | Text]) -> None:
    for part in parts:
        if isinstance(part, LabelledText):
            console.show(part, 14)
        else:
            console.say(part)


class _Line(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of `forge replay --json`: a state's number and phase, and its events; the last includes the state.

    `phase` is a readable text; `halt` is why the run ended here.
    """

    step: int
    phase: str
    turn: int = 0
    events: tuple[Stamped, ...] = ()
    halt: Halt | None = None
    state: State | None = None


def _with_last(steps: Iterator[Step], to: int | None) -> Iterator[tuple[Step, bool]]:
    """The steps up to `to`, each with whether it is the last; a ForgeError after that if there are fewer."""
    step = next(steps)
    while step.number != to:
        following = next(steps, None)
        if following is None:
            break
        yield step, False
        step = following
    yield step, True
    if to is not None and step.number < to:
        raise ForgeError(f"--to {to}: the journal ends at state {step.number}")


def _walk(console: Console, steps: Iterator[Step], to: int | None) -> None:
    """Print the steps and their events; at the last, on request, the complete state."""
    view = View(console, live=False)
    for step, last in _with_last(steps, to):
        heading = Text.assemble((f"state {step.number}", "bold"), (f"  {printable(phase_of(step.state))}", "dim"))
        console.say(heading)
        for event in step.events:
            view(event)
        if last and to is not None:
            for row in state_rows(step.state):
                console.show(row, COLUMN)


def _header(console: Console, journal: Journal) -> None:
    header = journal.header
    setup = header.setup
    when = f", {printable(header.started)}" if header.started else ""
    facts = f"{printable(setup.model) or 'a model'}, {setup.mode}, {setup.context_tokens:,} tokens of context"
    title = Text.assemble((printable(header.workflow), "bold"), (f"  {facts}{when}", "dim"))
    console.say(title)


def recorded(journal: Journal) -> Iterator[Text | LabelledText]:
    """The recording without a workflow: each model call with the tools that ran after it."""
    for section in recorded_timeline(journal):
        yield Text(section.title, style="bold")
        yield from (LabelledText(row.label, printable(row.text)) for row in section.items)
