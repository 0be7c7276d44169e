"""Write the tables of benchmarks/RESCUE.md: the scores of rescue on canitoolcall's fixtures and on the lists.

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

KINDS = ("clean", "damage", "negative", "invented")
UNTOUCHED: dict[str, tuple[str, ...]] = {
    "tune": ("94.1 %", "80.6 %", "77.0 %", "15 of 22 in both"),
    "held": ("98.1 %", "80.2 %", "77.6 %", ""),
    "third": ("51 of 56", "32 of 34", "76 of 77", "12 of 12"),
    "fourth-tune": ("26 of 32", "38 of 50", "47 of 47", "4 of 10 in both"),
    "fourth-held": ("37 of 41", "33 of 48", "43 of 43", ""),
    "fifth": ("", "420 of 470", "", ""),
    "sixth": ("21 of 30", "23 of 41", "", "8 of 10"),
    "seventh-tune": ("38 of 46", "38 of 42", "72 of 75", "18 of 18"),
    "seventh-held": ("54 of 60", "32 of 37", "", "6 of 12"),
    "eighth-tune": ("27 of 27", "29 of 31", "26 of 26", "3 of 6"),
    "eighth-held": ("23 of 27", "27 of 30", "25 of 26", "5 of 6"),
    "ninth-tune": ("23 of 25", "35 of 42", "25 of 25", "9 of 14"),
    "ninth-held": ("26 of 26", "34 of 42", "25 of 25", "8 of 14"),
    "eleventh-tune": ("41 of 42", "61 of 68", "32 of 32", "15 of 15"),
    "eleventh-held": ("39 of 41", "63 of 67", "32 of 32", "14 of 15"),
    "twelfth-tune": ("45 of 45", "58 of 60", "32 of 32", "11 of 13"),
    "twelfth-held": ("45 of 45", "58 of 60", "33 of 33", "11 of 12"),
    "thirteenth-tune": ("49 of 51", "71 of 72", "33 of 33", "12 of 13"),
    "thirteenth-held": ("49 of 50", "66 of 72", "32 of 32", "11 of 12"),
    "fourteenth-tune": ("58 of 58", "87 of 93", "36 of 36", "12 of 14"),
    "fourteenth-held": ("56 of 58", "85 of 92", "35 of 35", "12 of 13"),
    "fifteenth-tune": ("60 of 61", "93 of 103", "37 of 37", "9 of 15"),
    "fifteenth-held": ("62 of 62", "96 of 103", "38 of 38", "12 of 16"),
    "sixteenth-tune": ("51 of 51", "85 of 88", "30 of 30", "12 of 12"),
    "sixteenth-held": ("53 of 53", "84 of 86", "30 of 30", "11 of 13"),
    "seventeenth-tune": ("52 of 52", "80 of 85", "38 of 38", "16 of 22"),
    "seventeenth-held": ("54 of 54", "82 of 85", "37 of 37", "16 of 21"),
    "eighteenth-tune": ("51 of 51", "93 of 104", "36 of 36", "13 of 22"),
    "eighteenth-held": ("48 of 50", "94 of 105", "35 of 35", "16 of 23"),
    "nineteenth-tune": ("30 of 30", "67 of 70", "39 of 39", "15 of 41"),
    "nineteenth-held": ("30 of 30", "67 of 70", "41 of 41", "11 of 39"),
    "twentieth-tune": ("44 of 44", "71 of 75", "36 of 36", "14 of 20"),
    "twentieth-held": ("45 of 46", "73 of 75", "34 of 34", "11 of 20"),
    "twentyfirst-tune": ("45 of 45", "55 of 55", "35 of 35", ""),
    "twentyfirst-held": ("44 of 45", "53 of 55", "35 of 35", ""),
    "twentysecond-tune": ("", "28 of 40", "20 of 20", "30 of 40"),
    "twentysecond-held": ("", "", "20 of 20", "66 of 80"),
    "twentythird-tune": ("", "", "20 of 20", "48 of 60"),
    "twentythird-held": ("", "", "20 of 20", "48 of 60"),
    "twentyfourth-tune": ("45 of 45", "52 of 55", "30 of 30", "18 of 20"),
    "twentyfourth-held": ("44 of 45", "51 of 55", "30 of 30", "18 of 20"),
}
"""How many cases of each kind were right before anything was changed for that half of a list."""


def _canitoolcall() -> Iterator[str]:
    """The scores by family, and the reason for each fixture that is not read as it expects."""
    total: Counter[str] = Counter()
    right: Counter[str] = Counter()
    exact: Counter[str] = Counter()
    for fixture in fixtures():
        verdict = judged(fixture)
        for row in (fixture.family, "all"):
            total[row] += 1
            right[row] += verdict != "wrong"
            exact[row] += verdict == "exact"
    yield f"| canitoolcall {version('canitoolcall')} | replies | calls right | exact |\n|---|---:|---:|---:|"
    for row in sorted(total, key=lambda row: (row == "all", row)):
        yield f"| {row} | {total[row]} | {right[row]} ({right[row] / total[row]:.1%}) | {exact[row]} |"
    yield ""
    for line in (FOLDER / "canitoolcall_failures.jsonl").read_text(encoding="utf-8").splitlines():
        failure = msgspec.json.decode(line, type=dict[str, str])
        yield f"- `{failure['id']}` ({failure['verdict']}): {failure['reason']}"


def _corpus() -> Iterator[str]:
    """The size of the project's own corpus."""
    quiet = sum(not case.calls and not case.damage for case in cases("recorded"))
    sizes = ", ".join(f"{len(cases(kind))} {kind}" for kind in ("clean", "damage", "torn", "negative", "recorded"))
    yield f"Replies: {sizes}. Of the recorded ones, {quiet} mean no call."


def _lists() -> Iterator[str]:
    """A row for each half of a list: how many cases of each kind were right untouched, and are now."""
    yield "| untouched → now | calls | damaged calls | texts without a call | invented formats |\n|---|---|---|---|---|"
    for half, before in UNTOUCHED.items():
        columns: list[str] = []
        for kind, untouched in zip(KINDS, before, strict=True):
            right = [is_right(case) for case in CASES if case.kind == kind and case.half.startswith(half)]
            columns.append(f"{untouched} → {sum(right)} of {len(right)}" if right else "")
        name = f"fresh-{half}" if half in ("tune", "held") else half
        yield f"| {name} | {' | '.join(columns)} |"


def main() -> None:
    """Score everything and write the tables."""
    page = Path(__file__).with_name("RESCUE.md")
    text = page.read_text(encoding="utf-8")
    for name, lines in (("canitoolcall", _canitoolcall()), ("corpus", _corpus()), ("lists", _lists())):
        opening, closing = f"<!-- {name}: written by benchmarks.rescue_report -->", f"<!-- end of {name} -->"
        before, rest = text.split(opening)
        text = "\n".join((before + opening, "", *lines, "", closing + rest.split(closing)[1]))
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
