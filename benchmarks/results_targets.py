"""The targets of a turn and of the bare functions, and what a run says of each."""

from collections.abc import Iterable

from msgspec import Struct

from benchmarks.results_functions import Functions
from benchmarks.results_loop import BASE, TURNS, Loops


class Row(Struct, frozen=True, kw_only=True):
    """One target, and whether this run meets it."""

    what: str
    target: str
    found: str
    met: bool


def turn_rows(loops: Loops) -> list[Row]:
    """The targets of a turn."""
    stub, http = loops.stub["forge_new"], loops.http["forge_new"]
    ratios = {turns: cost / loops.http[BASE][turns] for turns, cost in http.items()}
    at = ", ".join(f"{turns:,}" for turns in TURNS)
    growth = stub[1000] / stub[50]
    other = loops.stub.get("forge_guardrails")
    beside = f"; {joined(times(cost / other[n]) for n, cost in stub.items())} of forge-guardrails" if other else ""
    return [
        Row(
            what=f"in process, CPU a turn at N = {at}",
            target="≤ 40 µs",
            found=f"{joined(f'{cost:.0f}' for cost in stub.values())} µs{beside}",
            met=max(stub.values()) <= 40,
        ),
        Row(what="in process, N = 1,000 against N = 50", target="≤ 1.5x", found=times(growth), met=growth <= 1.5),
        Row(
            what=f"over HTTP, against no framework at N = {at}",
            target="≤ 1.15x",
            found=joined(map(times, ratios.values())),
            met=max(ratios.values()) <= 1.15,
        ),
    ]


def function_rows(functions: Functions) -> list[Row]:
    """The targets of the bare functions."""
    at_10k = {case: speeds[10_000] for case, speeds in functions.compaction.items()}
    slower = max(speeds[10_000] / speeds[100_000] for speeds in functions.compaction.values())
    floor = functions.one_pass[10_000] / functions.one_pass[100_000]
    check = functions.check[10_000] / functions.check[10]
    spent = functions.imports["forge_new"]
    against = spent / functions.imports["raw_msgspec"]
    return [
        Row(
            what="compaction, million messages a second at 10,000",
            target="≥ 6",
            found="; ".join(f"{case}: {speed:.1f}" for case, speed in at_10k.items()),
            met=min(at_10k.values()) >= 6,
        ),
        Row(
            what="compaction, a message at 100,000 against 10,000",
            target="linear",
            found=f"{times(slower)} (the floor, one pass in Python: {times(floor)})",
            met=slower <= max(1.5, floor),
        ),
        Row(what="the check at 10,000 messages against 10", target="O(1)", found=times(check), met=check <= 1.5),
        Row(
            what="`import forge`, CPU over bare Python",
            target="≤ 100 ms",
            found=f"{spent:.0f} ms: {times(against)} of httpx and msgspec",
            met=spent <= 100,
        ),
    ]


def times(ratio: float) -> str:
    """A ratio with three digits."""
    return f"{ratio:.0f}x" if ratio >= 100 else f"{ratio:.1f}x" if ratio >= 10 else f"{ratio:.2f}x"


def joined(cells: Iterable[str]) -> str:
    return " / ".join(cells)
