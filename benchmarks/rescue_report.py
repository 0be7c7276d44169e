"""Write benchmarks/RESCUE.md: the score of rescue on canitoolcall's fixtures, by family.

python -m benchmarks.rescue_report
"""

from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import msgspec

from tests.canitoolcall_score import fixtures, judged
from tests.rescue_corpus import FOLDER, cases
from tests.stages.rescue.test_fresh import CASES, is_right

HEAD = """\
# Rescue, measured

Written by `python -m benchmarks.rescue_report`; `tests/stages/rescue/test_canitoolcall.py` holds the floor.

## canitoolcall {version}

Recorded raw replies, read without being told their family: reasoning split off, calls rescued, arguments \
checked and coerced by the tool's schema. *Calls*: names, arguments, types and order are exactly as expected, \
and nothing comes of a torn call. *Exact*: text and reasoning too.

| family | replies | calls right | exact |
|---|---:|---:|---:|
"""

LISTS = """
## Five lists that were scored before they were looked at

Calls exactly as meant with tools that read; texts without a call from which no tool that writes runs at once. \
`fresh.jsonl`: 925 replies from the parsers and tests of vLLM and SGLang and from issues, 22 invented formats among \
them, one half tuned on, one held back. `third.jsonl`: 203 replies in what models of 2026 write that was in no list, \
12 invented formats, and texts that quote calls: patches, transcripts, exports, refusals, documentation in nine \
languages, tables, logs, fixtures, issues, escaped JSON. `fourth.jsonl`: 281 replies as people pasted them into the \
issues of servers and agents this year (each names its source), 10 invented formats among them, one half tuned on. \
`fifth.jsonl`: fourteen formats, each damaged in up to 45 ways. In `tests/stages/rescue/test_quoted.py`, 25 formats \
are shown in 25 kinds of text. `sixth.jsonl`: 71 odd replies from the same issues and 10 invented formats, written last.

| right now | first, tuned on | first, held back | second | third, tuned on | third, held back | fourth | fifth |
|---|---:|---:|---:|---:|---:|---:|---:|
"""
KINDS = {
    "clean": "replies with calls",
    "damage": "damaged ones",
    "negative": "texts without a call",
    "invented": "replies in invented formats",
}

BY_HAND = """
Before they were tuned on: 94.1 % and 98.1 % of the calls of the first list (tuned on, held back), 80.6 % and 80.2 % \
of the damaged ones, 77.0 % and 77.6 % of the texts, 15 of 22 invented formats. Its held half of the damaged ones \
stood at 81.9 % when only the other had been tuned; then it was tuned too. Of the second list, before anything was \
changed for it: 51 of 56 calls, 32 of 34 damaged ones, 12 of 12 invented formats, and 76 of 77 texts. Of the third, \
before anything was changed for it (tuned on, held back): 26 of 32 and 37 of 41 calls, 38 of 50 and 33 of 48 damaged \
ones, 47 of 47 and 43 of 43 texts, 4 of 10 invented formats. When only its first half had been tuned on, the other \
stood at 38 of 41 calls, 37 of 48 damaged ones, 43 of 43 texts, and 9 of its 12 replies in invented formats (6 \
before); then it was tuned too. Of the fourth, before anything was changed for it: 205 of 228 damaged ones (tuned on) \
and 215 of 242; of the 1,250 texts that show a call, 4 ran one. Of the fifth, with all that the others had taught: 21 \
of 30 calls, 23 of 41 damaged ones, 8 of 10 invented formats; its misses were looked at then. This is what to expect \
of odd replies that nobody has seen; of those in a format's usual form, what the first lists say.

## Measured once

In the loop (`on_text="accept"`, tools that write), of the 331 negatives of the project's own corpus:

| the model, asked whether the call is meant | run at f985d5e | run now |
|---|---:|---:|
| is not asked (calls that run at once) | 0 | 0 |
| says no | 0 | 0 |
| sends the reply again | 0 | 178 |

A real 0.5B model (Qwen2.5-Coder, temperature 0), given such a reply as its own, confirms what it is told to do. \
Confirmed of calls that it had only shown, and of those that it had meant: 1 of 29 and 2 of 6 as the question is \
worded now; 2 of 30 and 2 of 7 with 'If not, reply "no"'; 8 of 12 and 5 of 12 with "Otherwise, answer in words"; \
10 of 11 and 10 of 12 with "To run it now, reply with the call". So it does not tell the two apart, and the question \
is worded for safety. The 1.5B model was not asked.

Processor time of `rescue` in µs, the least of many runs, on a machine with much other work (some 2.5 times as slow \
as a quiet one). *Before* is 25086bc3, *now* is the night of 25 November; *peer* is the parser of forge-guardrails \
0.10.0. All three are timed in turns in one process; the tools' names are prepared, as a reader of replies has them. \
The texts are those of `benchmarks/test_rescue.py`; the peer's last figure is from an earlier run.

| text | before | now | peer | now / peer |
|---|---:|---:|---:|---:|
| a call in a fence | 27 | 18 | 10 | 1.76 |
| a call, nothing else | 25 | 19 | 10 | 1.94 |
| Hermes | 40 | 23 | 12 | 1.91 |
| Hermes after 0.8 kB of thought | 83 | 30 | 22 | 1.38 |
| Qwen3-Coder | 80 | 47 | 27 | 1.74 |
| Mistral | 29 | 22 | 20 | 1.10 |
| 20 kB of thought and a call | 212 | 66 | 256 | 0.26 |
| 20 kB of prose | 306 | 339 | 3,250 | 0.10 |
| 20 kB of code | 1,081 | 1,091 | 4,890 | 0.22 |
| 20 kB of a log with an object in each line | 6,293 | 3,899 | 3,807 | 1.02 |
| 20 kB of HTML | 2,021 | 1,333 | 2,521 | 0.53 |
| 20 kB of lines of JSON with names that call nothing | 11,916 | 7,468 | 3,295 | 2.27 |
| 20 kB of calls, Hermes, in lines | 6,634 | 2,969 | 2,323 | 1.28 |
| 20 kB of calls, Hermes, on one line | 5,824 | 2,938 | 2,318 | 1.27 |
| 20 kB of calls, Qwen3-Coder | 11,608 | 6,129 | 3,818 | 1.61 |
| 20 kB of calls, JSON, in lines | 5,276 | 3,958 | 2,699 | 1.47 |
| 20 kB of `<` | 8,960 | 3,319 | 2,347 | 1.41 |
| 20 kB of `<a>` | 7,239 | 4,162 | 2,870 | 1.45 |
| 4 kB of `{` | 192 | 194 | 685,684 | 0.0003 |

So a clean call, after a thought too, takes at most twice what the peer takes. 20 kB of prose, code, HTML or a \
thought take less than 1 ms on a quiet machine; calls, tags, `<` and JSON take 1.2 to 3 ms by that measure, so this \
aim is not met for them. Where it goes is spread evenly. A Hermes call among others takes 16 µs: 1 to find the place, \
2 to ask the families there, 2 to find the end of the JSON, 3 to tell the shape of a call, 3 for the markup around \
it, 3 for the loop that keeps the budget, 2 to gather it. An element takes 41 µs, 8 of them for each parameter. An \
object that calls nothing but has a name in it takes 23 µs: nearly all questions of what may be a call are asked of \
it. Of the time that angle brackets take, three quarters are the search for openers.

Time is linear for repeated calls of every format and damage in the lists, on one line and on many \
(`tests/soak/test_rescue_cost.py`), and for runs of single signs.
"""


def _list_rows() -> Iterator[str]:
    """A row for each kind of case in the two lists: how many of each part are right."""
    for kind, label in KINDS.items():
        columns: list[str] = []
        for half in ("tune", "held", "third", "fourth-tune", "fourth-held", "fifth", "sixth"):
            right = [is_right(case) for case in CASES if case.kind == kind and case.half.startswith(half)]
            columns.append(f"{sum(right)} of {len(right)}" if right else "")
        yield f"| {label} | {' | '.join(columns)} |"


def main() -> None:
    """Score all fixtures and write the page."""
    total: Counter[str] = Counter()
    right: Counter[str] = Counter()
    exact: Counter[str] = Counter()
    for fixture in fixtures():
        verdict = judged(fixture)
        for row in (fixture.family, "all"):
            total[row] += 1
            right[row] += verdict != "wrong"
            exact[row] += verdict == "exact"
    rows = [
        f"| {row} | {total[row]} | {right[row]} ({right[row] / total[row]:.1%}) | {exact[row]} |"
        for row in sorted(total, key=lambda row: (row == "all", row))
    ]
    lines = (FOLDER / "canitoolcall_failures.jsonl").read_text(encoding="utf-8").splitlines()
    failures = [msgspec.json.decode(line, type=dict[str, str]) for line in lines]
    reasons = [f"- `{failure['id']}` ({failure['verdict']}): {failure['reason']}" for failure in failures]
    kinds = ("clean", "damage", "torn", "negative", "recorded")
    corpus = [f"- {kind}: {len(cases(kind))}" for kind in kinds]
    quiet = sum(not case.calls and not case.damage for case in cases("recorded"))
    text = "\n".join(
        (
            HEAD.format(version=version("canitoolcall")) + "\n".join(rows),
            "\n## What is not read, and why\n",
            *reasons,
            "\n## Own corpus (`tests/data/rescue/`), all of it right in every test run\n",
            *corpus,
            f"\nOf the recorded replies, {quiet} mean no call.",
            LISTS + "\n".join(_list_rows()),
            BY_HAND.rstrip(),
        )
    )
    Path(__file__).with_name("RESCUE.md").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
