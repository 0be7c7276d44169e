"""RELIABILITY.md: how many runs were right, of which peer, and what the difference is worth."""

from math import comb, sqrt
from pathlib import Path
from statistics import mean

from benchmarks.reliability.forge_runs import ABLATED
from benchmarks.reliability.runs import MODELS, PEERS, Run, recorded
from benchmarks.reliability.tasks import TASKS

PAGE = Path(__file__).parent.with_name("RELIABILITY.md")
OURS = "forge auto"

HEAD = """\
# Reliability, measured

Written by `python -m benchmarks.reliability` (`--help`): it runs what is not yet in \
`benchmarks/reliability/runs.jsonl`, on real models in llama.cpp, and writes this page. The tasks and what a user \
says of them are in `benchmarks/reliability/tasks.py`; a seed chooses a task's data and its sampling.

Each peer gets the same tools, the same words, temperature 0.7 and at most 256 tokens a reply: a gate before the \
server sees to that, and counts model calls. Models use their own chat templates. Peers are told what they can be \
told: required steps and prerequisites all but the plain loop, grounding, which \
numbers are calculated, and how often a tool is needed forge only.

*Right*: the terminal tool was called with the right values, and nothing was done that nobody asked for. *Wrong*: it \
was called with others, or harm was done. *Unfinished*: it was not called. The interval is Wilson's, at 95 %. \
*Against auto*: on how many of the same seeds only `forge auto` was right (+), on how many only the other (-), and the \
probability of a split at least as uneven between equals (McNemar's exact test).

"""
FOOT = """
## What this shows, and what not

Two models of one family, of 0.5 and 1.5 billion parameters, quantised to four bits, on five tasks that are ours. \
It says nothing about larger models or other families. Where a row has fewer runs than others, they were not run yet. \
A run is kept, whatever changed in forge since: delete its line to have it run again.
"""


def write() -> None:
    """The page, from all runs that are recorded."""
    runs = recorded()
    sections = [section(model, [run for run in runs if run.model == model]) for model in MODELS]
    PAGE.write_text(HEAD + "\n".join(sections) + FOOT, encoding="utf-8")


def section(model: str, runs: list[Run]) -> str:
    """One model: a table a task, then what each guardrail adds."""
    tables = [table(task, [run for run in runs if run.task == task]) for task in TASKS]
    return f"## {model}\n\n" + "\n".join(filter(None, [*tables, ablation(runs)]))


def table(task: str, runs: list[Run]) -> str:
    """The peers on one task."""
    rows = [row(peer, [run for run in runs if run.peer == peer], runs) for peer in PEERS]
    if not any(rows):
        return ""
    about = " ".join((TASKS[task].__doc__ or "").split())
    head = "| | right | 95 % | wrong | unfinished | model calls | against auto |\n|---|---:|---|---:|---:|---:|---|\n"
    return f"### {task}\n\n{about}\n\n{head}" + "".join(rows)


def row(peer: str, mine: list[Run], runs: list[Run]) -> str:
    """One peer: counts, the interval of the share that is right, calls a run, and the paired test."""
    if not mine:
        return ""
    right = sum(run.verdict == "right" for run in mine)
    wrong = sum(run.verdict == "wrong" for run in mine)
    low, high = wilson(right, len(mine))
    cells = (
        f"{right} of {len(mine)}",
        f"{low:.0%} … {high:.0%}",
        f"{wrong}",
        f"{len(mine) - right - wrong}",
        f"{mean(run.calls for run in mine):.1f}",
        "" if peer == OURS else paired(mine, [run for run in runs if run.peer == OURS]),
    )
    return f"| {peer} | {' | '.join(cells)} |\n"


def ablation(runs: list[Run]) -> str:
    """Auto without one guardrail at a time, over all tasks that were run so."""
    lines = []
    for what in ABLATED:
        without = [run for run in runs if run.peer == f"{OURS} without {what}"]
        same = [run for run in runs if run.peer == OURS and (run.task, run.seed) in {(w.task, w.seed) for w in without}]
        if without and same:
            kept, lost = (sum(run.verdict == "right" for run in group) for group in (same, without))
            wrong, worse = (sum(run.verdict == "wrong" for run in group) for group in (same, without))
            lines.append(
                f"| {what} | {kept} of {len(same)} ({wrong} wrong) | {lost} of {len(without)} ({worse} wrong) "
                f"| {paired(without, same)} |\n"
            )
    head = "### What each guardrail adds\n\n| without | auto | auto without it | difference |\n|---|---|---|---|\n"
    return head + "".join(lines) if lines else ""


def paired(one: list[Run], ours: list[Run]) -> str:
    """McNemar's exact test on the same tasks and seeds: how often only one of the two was right."""
    other = {(run.task, run.seed): run.verdict == "right" for run in ours}
    pairs = [(run.verdict == "right", other[run.task, run.seed]) for run in one if (run.task, run.seed) in other]
    if not pairs:
        return ""
    only_one = sum(a and not b for a, b in pairs)
    only_ours = sum(b and not a for a, b in pairs)
    return f"+{only_ours} -{only_one}, p = {mcnemar(only_one, only_ours):.2g}"


def mcnemar(one: int, other: int) -> float:
    """The probability of a split at least as uneven as this, if both were equally good (two-sided, exact)."""
    n = one + other
    tail: float = sum(comb(n, k) for k in range(min(one, other) + 1)) / 2**n
    return min(1.0, 2.0 * tail)


def wilson(right: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson, 1927)."""
    z = 1.96
    middle, spread = right / n + z * z / (2 * n), z * sqrt(right / n * (1 - right / n) / n + z * z / (4 * n * n))
    return max(0.0, (middle - spread) / (1 + z * z / n)), min(1.0, (middle + spread) / (1 + z * z / n))
