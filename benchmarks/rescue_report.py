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
        )
    )
    Path(__file__).with_name("RESCUE.md").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
