"""Write benchmarks/RESCUE.md: the score of rescue on canitoolcall's fixtures, by family.

python -m benchmarks.rescue_report
"""

from collections import Counter
from importlib.metadata import version
from pathlib import Path

import msgspec

from tests.canitoolcall_score import fixtures, judged
from tests.rescue_corpus import FOLDER, cases

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

BY_HAND = """
## Measured once

A second list (`tests/data/rescue/fresh.jsonl`: 925 replies from the parsers and tests of vLLM and SGLang and from \
issues, 22 invented formats among them) was written before its results were seen, and split in two: calls exactly as \
meant with tools that read, texts without a call from which no tool that writes runs at once.

| | before: tune, held | after: tune, held |
|---|---:|---:|
| 400 replies with calls | 94.1 %, 98.1 % | 98.9 %, 100 % |
| 219 damaged ones | 80.6 %, 80.2 % | 93.2 %, 94.0 % |
| 240 texts without a call | 77.0 %, 77.6 % | 99.2 %, 99.1 % |
| 22 invented formats, all three replies right | 15 | 19 |

The held half of the damaged ones stood at 81.9 % when only the other half had been tuned; then it was tuned too.

In the loop (`on_text="accept"`, tools that write), of the 331 negatives of the project's own corpus:

| the model, asked whether the call is meant | run at f985d5e | run now |
|---|---:|---:|
| is not asked (calls that run at once) | 0 | 0 |
| says no | 0 | 0 |
| sends the reply again | 0 | 178 |

A real 0.5B model (Qwen2.5-Coder, temperature 0), given such a reply as its own, confirms what it is told to do. \
Confirmed of calls that it had only shown, and of those that it had meant: 1 of 29 and 2 of 6 as the question is \
worded now; 2 of 30 and 2 of 7 with 'If not, reply "no"'; 8 of 12 and 5 of 12 with "Otherwise, answer in words"; \
10 of 11 and 10 of 12 with "To run it now, reply with the call". So it does not tell the two apart; the question is \
worded for safety. The 1.5B model was not asked.

Time is linear for well-formed calls of the shapes and for runs of single signs (100 kB against 10 kB: 8 to 13 \
times). \
The aim of 1 ms for 20 kB of anything is not met: 10 kB of calls took 4 to 18 ms and 10 kB of `<` 10 ms, on a machine \
with other work.
"""


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
            BY_HAND.rstrip(),
        )
    )
    Path(__file__).with_name("RESCUE.md").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
