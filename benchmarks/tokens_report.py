"""Write benchmarks/TOKENS.md: by how much what forge says of a prompt is wrong, over recorded runs.

python -m benchmarks.tokens_report
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import mean, median
from timeit import Timer

from msgspec import Struct

from stages.state import Ledger
from stages.tokens import STARTING_RATE, WEIGHTS, length
from tests.token_runs import Kind, Reports, errors, kinds, reports, runs

TEXT = 'A result has a few numbers, 12 and 7, some {"json": true}, and words for the most part. ' * 600


class Error(Struct, frozen=True, kw_only=True):
    """How wrong the estimates of one run are, as fractions; `report` is whose run it is."""

    report: Reports
    guessed: list[float]
    asked: list[float]


def main() -> None:
    """Estimate each prompt of each run, and write the page."""
    recorded = runs()
    found = [
        Error(
            report=r,
            guessed=errors(recorded[r.run], r, Ledger()),
            asked=errors(recorded[r.run], r, Ledger(tokens_per_character=r.rate)),
        )
        for r in reports()
    ]
    page = PAGE.format(
        read=sum(len(error.report.usage) for error in found),
        prompts=sum(len(error.report.tokens) for error in found),
        models="\n".join(table(found, lambda report: f"{report.model} | {report.mode}")),
        runs="\n".join(table(found, lambda report: report.run)),
        kinds="\n".join(map(kind, kinds())),
        start=STARTING_RATE,
        short=microseconds(TEXT[:500]),
        long=microseconds(TEXT[:50_000]),
    )
    Path(__file__).with_name("TOKENS.md").write_text(page, encoding="utf-8")


def table(found: list[Error], name: Callable[[Reports], str]) -> Iterable[str]:
    """A line for each name that a run may go by, and one for all."""
    titles = dict.fromkeys(name(error.report) for error in found)
    for title in titles:
        yield line(title, [error for error in found if name(error.report) == title])
    yield line("**all**" + " |" * next(iter(titles)).count("|"), found)


def line(title: str, found: list[Error]) -> str:
    """The errors of some runs: first prompts, then both ways of beginning."""
    firsts = [error.guessed[0] for error in found]
    ways = [cells([e.guessed for e in found]), cells([e.asked for e in found])]
    return f"| {title} | {min(firsts):+.0%} … {max(firsts):+.0%} | {' | '.join(ways)} |"


def cells(found: list[list[float]]) -> str:
    """The median after three replies; the worst that is too low, of all but first prompts; the worst too high."""
    later = [error for run in found for error in run[3:]]
    lowest = min(min(0.0, *run[1:]) for run in found)
    return f"{median(map(abs, later)):.1%} | {lowest:.1%} | {max(later):+.0%}"


def kind(texts: Kind) -> str:
    """Tokens by 100 characters, as `length` counts them and as Python does."""
    taken = sum(count * WEIGHTS[byte] for byte, count in enumerate(texts.bytes))
    rates = [100 * tokens / taken for tokens in texts.tokens.values()]
    plain = [100 * tokens / texts.characters for tokens in texts.tokens.values()]
    low, high = f"{min(rates):.0f} … {max(rates):.0f}", f"{min(plain):.0f} … {max(plain):.0f}"
    return f"| {texts.kind} | {mean(rates):.1f} | {low} | {mean(plain):.1f} | {high} |"


def microseconds(text: str) -> str:
    """The least time that one measuring took."""
    timer = Timer(lambda: length(text))
    count, _ = timer.autorange()
    return f"{min(timer.repeat(7, count)) / count * 1e6:.2f}"


PAGE = """\
# Tokens, measured

Written by `python -m benchmarks.tokens_report` from `tests/data/tokens/`; `tests/stages/test_tokens.py` holds the \
limits. `python -m benchmarks.tokens_record NAME URL` asks another llama.cpp server.

Before each turn forge says how many tokens the prompt will take, and compares that with the context. What it says \
has three parts:

1. **Characters.** `stages.tokens.length` counts each byte of a text by its kind: a letter as 1, punctuation as 3, \
a digit as 6. Names, arguments, tool schemas, and what a chat template adds count as well. It is a sum, so each \
message is counted once, when it comes.
2. **The last report.** Up to the last prompt that the server has reported, its own number holds.
3. **A rate** of tokens a character for what came since, learnt from the differences between reports. It rises at \
once and falls slowly, so that it errs on the safe side; what compaction takes out counts as three quarters. A report \
that cannot be (none, absurd, only what was not cached) changes nothing.

A run begins with the rate {start}, or, on llama.cpp, with its tokenizer's word on a sample and with the exact count \
of its first prompt (`/apply-template`, `/tokenize`).

## The error against real servers

{prompts} prompts of eight runs, in each mode. What they take is what llama.cpp counts by the model's template and \
tokenizer; the model has read the first three prompts of each run, and `usage.prompt_tokens` was the same each time \
({read} of {read}). To have all of them read takes hours on a small machine.

*First*: the error of the first prompt, where nothing is known yet; a tokenizer makes it 0. Then, beginning by guess \
and by the tokenizer's sample: the *median* error after three replies; the worst that is too *low* after the first \
reply; the worst that is too *high* after three.

| model | mode | first | median | low | high | median | low | high |
|---|---|---:|---:|---:|---:|---:|---:|---:|
{models}

SmolLM2's own template shows neither tools nor calls, so its first native prompt is a fraction of what is sent.

| run | first | median | low | high | median | low | high |
|---|---:|---:|---:|---:|---:|---:|---:|
{runs}

## The weights

Tokens that 100 characters take, by `length` and by `len`: the mean of seven tokenizers (Qwen2.5, SmolLM2, DeepSeek, \
Claude 2, cl100k, Tekken, Mistral 3) and their range. The weights were fitted to these texts by least squares, \
under-counting weighed more, and rounded. If they were perfect, the first column would have one number in it.

| kind | `length` | range | `len` | range |
|---|---:|---:|---:|---:|
{kinds}

## What it costs

`length` takes {short} µs for 500 characters and {long} µs for 50,000 (one run, on a busy machine with two cores).

## What is not covered

Two models of llama.cpp's were asked, each with its own template; no vLLM, no Ollama. Images and audio are not \
counted. A script that a tokenizer does not know (Korean for SmolLM2: a token and a half a character) is \
under-counted until the first report that has some of it; only how much of the prompt is new limits that error. No \
run here adds more than about as much again as it had in one turn; one that adds ten times as much is as wrong as its \
kind of text is unusual.
"""

if __name__ == "__main__":
    main()
