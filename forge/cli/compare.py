"""`forge bisect` and `forge ablate`: a recorded run with another workflow, and without each guardrail."""

import argparse

from rich.table import Table
from rich.text import Text

from forge.cli.console import Console, printable, readable
from forge.cli.replay import phase_of
from forge.cli.run import load_definition
from forge.errors import ForgeError, explain, quantity
from forge.journal.ablation import ablate
from forge.journal.bisection import Parting, bisect
from forge.journal.records import Journal, read_journal
from forge.journal.replaying import DivergenceError, as_lines, states
from forge.workflow.workflow import Workflow
from stages.state import State


def run_bisect(options: argparse.Namespace) -> int:
    """Show where two workflows differ on a recorded run; 1 if they do."""
    journal = read_journal(options.file)
    console = Console()
    workflows = [load_definition(reference) for reference in options.workflow]
    if len(workflows) > 2:
        raise ForgeError("give --workflow once (compared with the recording) or twice (compared with each other)")
    if len(workflows) == 1:
        return _against_record(console, journal, workflows[0])
    parting = bisect(journal, workflows[0], workflows[1])
    if parting is None:
        console.say(f"no difference: {len(journal.entries)} recorded effects and all states between them match")
        return 0
    console.say(readable(_parting_lines(parting, (options.workflow[0], options.workflow[1]))))
    return 1


def _against_record(console: Console, journal: Journal, workflow: Workflow) -> int:
    """Compare a workflow with the recording, which only holds effects."""
    try:
        count = sum(1 for _ in states(journal, workflow))
    except DivergenceError as error:
        hint = "\nPass the workflow of the recorded run as a first --workflow to see which stage causes the difference."
        console.say(readable(f"after {error.step.number} states, {error}{hint}"))
        return 1
    console.say(f"same as recorded: {len(journal.entries)} effects, {count} states")
    return 0


def _parting_lines(parting: Parting, names: tuple[str, str]) -> str:
    same = "1 state is" if parting.step == 1 else f"{parting.step} states are"
    calls = quantity(parting.turn, "model call")
    head = f"{same} the same; then, after {calls}, the stage {parting.stage} causes the difference:"
    if parting.found:
        return f"{head}\n{as_lines(parting.found, names)}"
    lines = [head]
    for name, end in zip(names, (parting.first, parting.second), strict=True):
        went = f"continues, {phase_of(end)}" if isinstance(end, State) else f"halts: {explain(end)}"
        lines.append(f"  {name}: {went}")
    return "\n".join(lines)


def run_ablate(options: argparse.Namespace) -> int:
    """Show what each guardrail changed in a recorded run."""
    rows = ablate(read_journal(options.file), load_definition(options.workflow))
    console = Console()
    table = Table(
        "guardrail", "what it does", "acted in turns", "would have ended without it", box=None, pad_edge=False
    )
    for row in rows:
        turns = ", ".join(str(acted.turn) for acted in row.acted)
        over = ", ".join(f"turn {acted.turn}" for acted in row.acted if acted.ends)
        if row.acted and console.is_terminal:
            table.add_row(*map(Text, (row.guardrail, row.does, turns, over or "-")))
        elif row.acted:
            ended = f"; would have ended without it: {over}" if over else ""
            console.say(f"{row.guardrail}: {row.does}; acted in turns {turns}{ended}")
    if table.row_count:
        console.print(table)
    if idle := ", ".join(row.guardrail for row in rows if not row.acted):
        console.say(f"Without effect in this run: {idle}")
    for row in rows:
        for acted in row.acted:
            console.say(f"turn {acted.turn}, {row.guardrail}", "bold")
            console.say(f"      with  {printable(str(acted.did))}")
            console.say(f"   without  {printable(str(acted.without))}")
    known = "Each decision is repeated from the recorded state; later effects of the change are unknown."
    console.say(known, "dim")
    return 0
