"""The report: what was measured, as Markdown, ratios first."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from benchmarks.peers import recorded
from benchmarks.results_functions import Functions
from benchmarks.results_loop import BASE, TURNS, Costs, Loops
from benchmarks.results_targets import Row, function_rows, times, turn_rows

NAMES = {
    BASE: "no framework (httpx, msgspec)",
    "forge_new": "**forge**",
    "forge_threads": "forge, plain functions as tools (threads)",
    "forge_guardrails": "forge-guardrails",
}


class Machine(Struct, frozen=True, kw_only=True):
    """What it was measured on; `load` is the load average at the end."""

    cpu: str
    cores: int
    system: str
    python: str
    date: str
    load: float
    packages: Mapping[str, str]


METHOD = (
    "All numbers are CPU time, user and system, medians. The peers take turns in each round, each in a process of its "
    "own. A busy machine makes everything slower: read ratios. How it is measured, and how to run the bench that has "
    "more peers: [peers/README.md](peers/README.md)."
)
OVER_HTTP = (
    "The same scripted server for all: N replies, N - 1 of them tool calls. In brackets: as a multiple of the loop "
    "without a framework. What is marked as recorded was measured beside the same loop on another machine."
)
IN_PROCESS = (
    "No server: forge and the loop without a framework read replies that lie ready as bytes, forge-guardrails is given "
    "its own objects. What forge does once a run (it sets up its pipeline) is in all of these, and shows at N = 10."
)
COMPACTION = (
    "Million messages a second. The floor is one pass over the history in Python: the sum of all lengths. The phase is "
    "how far the compactor had to go; 4 is the last resort, beyond the three usual ones."
)
IMPORT = "CPU over bare Python, bytecode written; as a multiple of asyncio and msgspec, which forge stands on."


def report(machine: Machine, loops: Loops, functions: Functions) -> str:
    """RESULTS.md."""
    at_ten = functions.check[10]
    parts = (
        "# Results",
        provenance(machine),
        METHOD,
        "## Against the targets",
        summary([*turn_rows(loops), *function_rows(functions)]),
        "![What a turn costs, against the length of the run](cost.svg)",
        "## A turn, over HTTP",
        OVER_HTTP,
        costs(loops.http, otherwise(loops.http, recorded.GUARDRAILS_HTTP) | recorded.HTTP),
        "## A turn, in process",
        IN_PROCESS,
        costs(loops.stub, otherwise(loops.stub, recorded.GUARDRAILS_STUB)),
        "## Compaction",
        COMPACTION,
        compaction(functions),
        "## The check when nothing is due",
        f"The stage `compact` in each turn, as a multiple of its cost at 10 messages ({at_ten:.1f} µs).",
        table(
            ["messages", *(f"{messages:,}" for messages in functions.check)],
            [["cost", *(times(cost / at_ten) for cost in functions.check.values())]],
        ),
        "## Import",
        IMPORT,
        imports(functions),
    )
    return "\n\n".join(parts) + "\n"


def provenance(machine: Machine) -> str:
    """Who wrote this, when, on what."""
    packages = ", ".join(f"{name} {number}" for name, number in machine.packages.items())
    return (
        "Written by `make bench` (`python -m benchmarks.results`); not to be edited. "
        f"{machine.date}, {machine.python} on {machine.cpu} ({machine.cores} cores, {machine.system}), "
        f"load average {machine.load:.1f} at the end; {packages}."
    )


def summary(rows: Sequence[Row]) -> str:
    """The targets of the project, and what this run says."""
    cells = [[row.what, row.target, row.found, "yes" if row.met else "**no**"] for row in rows]
    return table(["what", "target", "this run", "met"], cells)


def otherwise(measured: Costs, numbers: recorded.Ratios) -> dict[str, recorded.Ratios]:
    """The recorded numbers of forge-guardrails, where it could not be measured."""
    return {} if "forge_guardrails" in measured else {"forge-guardrails": numbers}


def costs(measured: Costs, others: Mapping[str, recorded.Ratios]) -> str:
    """What was measured, in microseconds and as ratios; what was recorded elsewhere, as ratios alone."""
    base = measured[BASE]
    rows = [
        [NAMES[peer], *(f"{us:,.0f} µs ({times(us / base[turns])})" for turns, us in cost.items())]
        for peer, cost in measured.items()
    ]
    rows += [
        [f"{peer} (recorded)", *(f"({times(ratios[n])})" if n in ratios else "-" for n in TURNS)]
        for peer, ratios in others.items()
    ]
    return table(["CPU a turn", *(f"N = {turns:,}" for turns in TURNS)], rows)


def compaction(functions: Functions) -> str:
    """Throughput by case and size, with the floor."""
    speeds = {"floor: one pass": functions.one_pass, **functions.compaction}
    rows = [[case, *(f"{speed:.1f}" for speed in by_size.values())] for case, by_size in speeds.items()]
    return table(["messages", *(f"{n:,}" for n in functions.one_pass)], rows)


def imports(functions: Functions) -> str:
    """Each peer's import."""
    spent = functions.imports
    names = {
        "floor": "asyncio, msgspec",
        "raw_msgspec": "httpx, msgspec",
        "forge_new": "**forge**",
        "forge_http": "forge and its HTTP client",
        "forge_guardrails": "forge-guardrails",
    }
    rows = [[names[peer], f"{ms:.0f} ms", times(ms / spent["floor"])] for peer, ms in spent.items()]
    if "forge_guardrails" not in spent:
        ratio = recorded.GUARDRAILS_IMPORT * spent["raw_msgspec"] / spent["floor"]
        rows.append(["forge-guardrails (recorded)", "-", times(ratio)])
    return table(["import", "CPU", "ratio"], rows)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, numbers to the right."""
    marks = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, marks, *rows))
