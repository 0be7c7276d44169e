"""Write benchmarks/PREFIX.md: how many tokens a real llama.cpp evaluates again, by how the history is compacted.

python -m benchmarks.prefix_report
"""

import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from benchmarks.prefix_pages import TURNS
from benchmarks.prefix_runs import CONTEXT, DECIDING, REPLAYED, Row, decided, replayed
from forge.backends.servers.models import KNOWN
from stages.compaction import Compactor, ContextBudget, SlidingWindowCompact, TieredCompact

BUDGET = ContextBudget(tokens=CONTEXT)
STRATEGIES: dict[str, tuple[Compactor, float]] = {
    "(a) whole tiers, to the threshold": (TieredCompact(phase_thresholds=(BUDGET.threshold,) * 3), BUDGET.threshold),
    "(b) sliding window": (SlidingWindowCompact(), BUDGET.low),
    "(c) the default": (TieredCompact(), BUDGET.low),
    "(d) the default, to a half": (TieredCompact(), 0.5),
}
"""A compactor, and what it goes down to: `compact_to`."""


HEAD = """\
# Prefix, measured

Written by `python -m benchmarks.prefix_report` on {machine}, with llama.cpp as in xllamacpp {xllamacpp}.

A server keeps what it has evaluated of a prompt as long as the next prompt begins the same. These are a server's \
own timings (`prompt_n`, `cache_n`), not estimates: tokens, so the machine does not matter.

## The same {turns} turns

The workflow reads {pages} pages of 300 to 1,500 characters, one a turn, and writes a report; the replies come from a \
script, so that all strategies are asked the same. {model}, context {context:,} tokens; \
compaction begins at {threshold} of the part for the prompt; the default comes down to {low} of it, and leaves a list \
of the calls that went. (a) is how others have it: each tier whole, as long as the threshold is exceeded. \
*Again*: evaluated beyond the {new:,} tokens of the whole run, each of which is new once. *Off*: how far \
`stages.view.prefix_reuse` was from the server, where it told of a loss: tokens kept, on average.

| | compactions | tokens of all prompts | evaluated | of these again | ÷ (a) | off |
|---|---:|---:|---:|---:|---:|---:|
"""

VERDICT = """

The aim is a third of (a) at the most: {reached}. What a compaction costs is all that stands behind the first message \
that it changes; the newest turns always do. So what counts is how rare it is, and whether the same messages are cut \
again later: a result that is truncated first, emptied the next time and dropped at last costs three times. The \
default goes so deep that old calls become lines of a list at once, and a list only grows at its end. To a half, most \
of what old results took is kept, and paid for: the next compaction is near, and begins where the last one began to \
keep.
"""

DECIDED = """
## The model decides

{model} inspects ten places, each of which names the next, and reports the word that the last one gives \
(constrained, context {context:,} tokens, temperature 0).

| | outcome | turns | compactions | tokens of all prompts | evaluated |
|---|---|---:|---:|---:|---:|
"""


def page(rows: Sequence[Row], runs: Sequence[str]) -> str:
    base = rows[0].again
    lines = [
        f"| {r.name} | {r.compactions} | {r.prompts:,} | {r.evaluated:,} | {r.again:,} | {r.again / base:.2f} "
        f"| {r.off:.0f} |"
        for r in rows
    ]
    head = HEAD.format(
        machine=f"{platform.system()} {platform.machine()}",
        xllamacpp=version("xllamacpp"),
        turns=TURNS,
        pages=TURNS - 1,
        context=CONTEXT,
        model=KNOWN[REPLAYED].title,
        threshold=BUDGET.threshold,
        low=BUDGET.low,
        new=rows[0].new,
    )
    third = [r.name for r in rows[1:] if 3 * r.again <= base]
    verdict = VERDICT.format(reached=f"reached by {', '.join(third)}" if third else "no strategy reaches it")
    decided_head = DECIDED.format(model=KNOWN[DECIDING].title, context=CONTEXT // 2)
    return head + "\n".join(lines) + verdict + decided_head + "\n".join(runs) + "\n"


def main() -> None:
    """Run everything and write the page; some minutes, on a slow machine half an hour."""
    rows = [replayed(name, *strategy) for name, strategy in STRATEGIES.items()]
    runs = [decided(name, *strategy) for name, strategy in STRATEGIES.items()]
    Path(__file__).with_name("PREFIX.md").write_text(page(rows, runs), encoding="utf-8")


if __name__ == "__main__":
    main()
