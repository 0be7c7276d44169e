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
## Eight lists that were scored before they were looked at

Calls exactly as meant with tools that read; texts without a call from which no tool that writes runs at once. The \
lists are in `tests/data/rescue`:

- `fresh`: 925 replies from the parsers and tests of vLLM and SGLang and from issues, 22 invented formats among them.
- `third`: 203 replies in what models of 2026 write, 12 invented formats, and texts that quote calls: patches, \
transcripts, exports, refusals, documentation in nine languages, tables, logs, fixtures, issues, escaped JSON.
- `fourth`: 281 replies as people pasted them into the issues of servers and agents this year, each with its source, \
10 invented formats among them.
- `fifth`: fourteen formats, each damaged in up to 45 ways.
- `sixth`: 71 odd replies from the same issues and 10 invented formats.
- `seventh`: 290 replies and texts from the tests and issues of this autumn, 10 invented formats among them.
- `eighth`: 179 replies and texts from the issues of servers and agents that are in none of the others, and from what \
LangChain, OpenHands, Cline, Roo, Continue, mlx-lm and LiteLLM read; 12 invented formats among them.
- `ninth`: 213 replies and texts from issues of this year that are in none of the others, 28 invented formats among \
them, written last.

Of `fresh` and `fourth` one half was tuned on before the other was looked at; nobody has looked at what is missed of \
the halves of `seventh`, `eighth` and `ninth` that are held back.

| right now | fresh, tuned | fresh, held back | third | fourth, tuned | fourth, held back | fifth | sixth | seventh, \
tuned | seventh, held back | eighth, tuned | eighth, held back | ninth, tuned | ninth, held back |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
"""
KINDS = {
    "clean": "replies with calls",
    "damage": "damaged ones",
    "negative": "texts without a call",
    "invented": "replies in invented formats",
}

BY_HAND = """
Before anything was changed for them, which says what to expect of replies that nobody here has seen:

| untouched | fresh, tuned | fresh, held back | third | fourth, tuned | fourth, held back | fifth | sixth | \
seventh, tuned | seventh, held back | eighth, tuned | eighth, held back | ninth, tuned | ninth, held back |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
| replies with calls | 94.1 % | 98.1 % | 51 of 56 | 26 of 32 | 37 of 41 | | 21 of 30 | 38 of 46 | 54 of 60 | 27 of \
27 | 23 of 27 | 23 of 25 | 26 of 26 |
| damaged ones | 80.6 % | 80.2 % | 32 of 34 | 38 of 50 | 33 of 48 | 420 of 470 | 23 of 41 | 38 of 42 | 32 of 37 | \
29 of 31 | 27 of 30 | 35 of 42 | 34 of 42 |
| texts without a call | 77.0 % | 77.6 % | 76 of 77 | 47 of 47 | 43 of 43 | | | 72 of 75 | | 26 of 26 | 25 of 26 | 25 \
of 25 | 25 of 25 |
| invented formats | 15 of 22 (both) | | 12 of 12 | 4 of 10 (both) | | | 8 of 10 | 18 of 18 | 6 of 12 | 3 of 6 | 5 \
of 6 | 9 of 14 | 8 of 14 |

With only the other half tuned on, the half of `fourth` that was held back stood at 38 of 41 calls, 37 of 48 \
damaged ones, all 43 texts, and 9 of its 12 replies in invented formats (6 before); then it was tuned on too. Of \
1,250 texts that show a call (25 formats in 25 kinds of text, `tests/stages/rescue/test_quoted.py`), 4 ran one, \
and now none does. So a format's usual form is nearly always read, a new one in eight of ten cases, and odd damage \
is a long tail.

Of `seventh`, the half that is held back stands at 54 of 60 calls and 33 of 37 damaged ones, as before but for \
one: what was widened for the other half read 14 more replies of the older lists instead. Its two invented formats \
that were not read are now, by way of other formats that were tried (attributes and Python in tags and brackets of \
any words); they are not proof, because the same hand wrote them. Of its 75 texts without a call, two are forms to \
fill in (`<recipient>`, `{{account}}`): they are read as calls, and the guard of placeholders refuses them.

Of `eighth`, the calls of the half that is held back went from 23 to 25 of 27, its damaged ones stayed at 27 of \
30; the one text of it that ran a call no longer does, by a rule (members with a structure beside the arguments) that \
was thought of when looking for what it might be, so that it proves nothing. One kind of its invented \
formats (a list of steps in an object of one key) is left: it is as often a plan.

Of `ninth`, the half that is held back went from 8 to 11 of 14 invented formats; its damaged ones stayed at 34 of 42. \
The family `any_markup`, which took the place of two others, read 14 more of the older lists.

A reviewer then tried some 150 texts that call nothing, each in 13 fences and 5 contexts, with tools that write. What \
ran a call was made a guess or left alone: elements in fences of results (`log`, `console`) and of pages (`jsx`, \
`html`), JSON without a key for arguments in fences of other languages (an MCP server table in `toml`), log lines such \
as `[INFO] deploy({…})`, and descriptions of functions (`Function: bash`, `Parameters:`). They are tests \
(`tests/stages/rescue/test_quoted.py`).

Most of the widening was done by a generator, not by the lists: 17 skeletons (elements, keys and values, own tags, \
markers, JSON with any keys, Python, labels, YAML and TOML), random prefixes, words, brackets and fences, random \
values, and 46 kinds of damage, one at a time. Of 4,000 replies with a seed that nobody had looked at (another one \
on 26 November: 95.2 % before `any_markup`, 98.4 % now; 99.0 % and 100 % of the undamaged ones; an opening tag without \
`<` 30 and 78 of 81, blanks in tags 31 and 81 of 87):

| generated replies, calls exact | before (c71639db) | now |
|---|---:|---:|
| all | 76.2 % | 95.3 % |
| undamaged | 93.3 % | 99.4 % |
| elements, usual words | 343 of 469 | 455 of 469 |
| elements, any words | 254 of 459 | 414 of 459 |
| keys and values, usual words / any | 201 of 223 / 117 of 256 | 211 of 223 / 213 of 256 |
| a tag with the tool's name | 143 of 196 | 176 of 196 |
| the name in an element | 224 of 279 | 251 of 279 |
| a marker, a name, JSON | 308 of 323 | 323 of 323 |
| JSON with usual keys / any | 308 of 318 / 175 of 322 | 317 of 318 / 313 of 322 |
| JSON in markers | 371 of 392 | 385 of 392 |
| a name before JSON | 168 of 250 | 246 of 250 |
| labels (ReAct) | 190 of 223 | 220 of 223 |
| YAML and TOML | 24 of 59 | 59 of 59 |
| a value's closing tag missing, or of another name | 47 of 209 | 194 of 209 |
| a bracket of the opening tag lost | 25 of 151 | 76 of 151 |
| blanks in closing tags | 37 of 98 | 44 of 98 |
| generated texts that show a call, of which one ran (4,837, tools that write) | 48 | 10 |

The 10 that run have a whole sentence of a thought right before labels (`Error: I should look this up first.`, \
then `Action: f`): so does a model that means it. Not read of the generated: a tool's name glued to an opening tag \
without `>`, nested `{"arguments": …}` under keys of any name.

What is not read in the half that was looked at, and what else was tried and left: a name in brackets and nothing \
else (`TOOL[f]()`); keys and values without the name of a tool; Python that a server cut off, or with values that \
are no literals; Python behind words after the first 160 characters; an object behind one that only names the \
tool; a list of a name and an object; a name whose closing quotation mark is missing; inner quotes with commas \
between. Most of these do not say where the call ends, or of which tool it is.

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
10 of 11 and 10 of 12 with "To run it now, reply with the call". So it does not tell the two apart, and the \
question is worded for safety. The 1.5B model was not asked.

Processor time of `rescue` in µs, the least of many runs, on a machine with other work (some 2.5 times as slow as \
a quiet one). *Before* is 25086bc3, *now* is the night of 25 November, for prose and the log 26 November (a name \
before an object is looked for since then; the other rows have not changed); *peer* is the parser of \
forge-guardrails 0.10.0. All three are timed in turns in one process; the tools' names are prepared, as a reader \
of replies has them. The texts are those of `benchmarks/test_rescue.py`; the peer's last figure is from an earlier \
run.

| text | before | now | peer | now / peer |
|---|---:|---:|---:|---:|
| a call in a fence | 26 | 19 | 11 | 1.81 |
| a call, nothing else | 24 | 18 | 10 | 1.79 |
| Hermes | 38 | 22 | 12 | 1.90 |
| Hermes after 0.8 kB of thought | 80 | 30 | 22 | 1.39 |
| Qwen3-Coder | 79 | 53 | 27 | 1.95 |
| Mistral | 28 | 22 | 20 | 1.10 |
| 20 kB of thought and a call | 195 | 61 | 249 | 0.25 |
| 20 kB of prose | 280 | 315 | 2,614 | 0.12 |
| 20 kB of code | 1,028 | 1,115 | 4,132 | 0.27 |
| 20 kB of a log with an object in each line | 5,753 | 5,190 | 3,428 | 1.51 |
| 20 kB of HTML | 2,008 | 1,732 | 2,583 | 0.67 |
| 20 kB of lines of JSON with names that call nothing | 11,210 | 6,945 | 3,375 | 2.06 |
| 20 kB of calls, Hermes, in lines | 5,938 | 2,749 | 2,318 | 1.19 |
| 20 kB of calls, Hermes, on one line | 5,483 | 2,737 | 2,291 | 1.19 |
| 20 kB of calls, Qwen3-Coder | 10,737 | 6,695 | 3,954 | 1.69 |
| 20 kB of calls, JSON, in lines | 4,760 | 3,530 | 2,569 | 1.37 |
| 20 kB of `<` | 9,756 | 4,802 | 2,394 | 2.01 |
| 20 kB of `<a>` | 10,166 | 6,600 | 3,432 | 1.92 |
| 4 kB of `{` | 192 | 194 | 685,684 | 0.0003 |

So a clean call, after a thought too, takes at most twice what the peer takes. Of 20 kB, prose, code and a thought \
take less than 1 ms on a quiet machine; calls, tags, HTML, `<` and JSON take 1 to 3 ms by that measure, so this \
aim is not met for them. Where it goes is spread evenly. A Hermes call among others takes 16 µs: 1 to find the \
place, 2 to ask the families there, 2 to find the end of the JSON, 3 to tell the shape of a call, 3 for the markup \
around it, 3 for the loop that keeps the budget, 2 to gather it. An element takes 41 µs, 8 of them for each \
parameter. An object that calls nothing but has a name in it takes 23 µs: nearly all questions of what may be a \
call are asked of it. Of the time that angle brackets take, three quarters are the search for openers.

Against c71639db in turns on 26 November, the rows above are within 4 % of what they were, but for code (2 to 10 % \
slower: a brace before a key without JSON's quotation marks is looked at now), the log (4 to 16 % quicker) and \
lines of JSON (0 to 10 % slower). Not in the table, and slower: 20 kB of Python dicts and of \
broken JSON, up to 11 ms, and 48 ms where each object has a name, because each was repaired. Now one is repaired \
only if a tool, or a key like those of arguments, is in it or near it: dicts take a seventh of the time, broken JSON \
less than half; `<a>` takes half; a reply of words 15 µs more. The rest of the table has not been measured anew.

Time is linear for repeated calls of every format and damage in the lists, on one line and on many \
(`tests/soak/test_rescue_cost.py`), and for runs of single signs.
"""


def _list_rows() -> Iterator[str]:
    """A row for each kind of case in the lists: how many of each part are right."""
    for kind, label in KINDS.items():
        columns: list[str] = []
        for half in (
            "tune",
            "held",
            "third",
            "fourth-tune",
            "fourth-held",
            "fifth",
            "sixth",
            "seventh-tune",
            "seventh-held",
            "eighth-tune",
            "eighth-held",
            "ninth-tune",
            "ninth-held",
        ):
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
