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

Processor time of `rescue` in µs, the least of 12 to 3,000 runs in turns with the peer, on 26 November, on a machine \
with much other work. *Before* is 96b93aff, *now* is with what a long text \
names looked up once (`Names.within`); *peer* is the parser of forge-guardrails 0.10.0, *ratio* is now to peer in \
the same run, because the runs differ by a fifth. The tools' names are prepared, as a reader of replies has them. \
The texts are those of `benchmarks/test_rescue.py`, and four of tools that do not exist.

| text | before | now | peer | ratio | before |
|---|---:|---:|---:|---:|---:|
| a call in a fence | 22 | 29 | 15 | 1.90 | 1.85 |
| a call, nothing else | 20 | 24 | 13 | 1.87 | 1.81 |
| Hermes | 26 | 32 | 16 | 2.07 | 1.93 |
| Hermes after 0.8 kB of thought | 35 | 43 | 26 | 1.66 | 1.44 |
| Hermes after 20 kB of thought | 64 | 93 | 254 | 0.37 | 0.26 |
| Qwen3-Coder | 62 | 65 | 31 | 2.07 | 2.10 |
| Mistral | 30 | 30 | 22 | 1.36 | 1.35 |
| 20 kB of prose | 543 | 592 | 2,966 | 0.20 | 0.19 |
| 20 kB of code | 1,882 | 2,031 | 4,028 | 0.50 | 0.53 |
| 64 kB of code | 6,642 | 5,544 | 11,949 | 0.46 | 0.52 |
| 20 kB of a log with an object in each line | 4,491 | 2,051 | 3,497 | 0.59 | 1.32 |
| 20 kB of HTML | 2,240 | 1,822 | 2,883 | 0.63 | 0.81 |
| 20 kB of lines of JSON with names that call nothing | 6,076 | 2,343 | 3,578 | 0.65 | 1.59 |
| 20 kB of calls, Hermes, in lines | 2,801 | 3,045 | 2,451 | 1.24 | 1.17 |
| 20 kB of calls, Qwen3-Coder | 7,242 | 7,459 | 4,282 | 1.74 | 1.69 |
| 20 kB of calls, JSON, in lines | 3,485 | 3,627 | 2,638 | 1.37 | 1.26 |
| 20 kB of `<` | 5,790 | 5,457 | 2,850 | 1.91 | 2.30 |
| 20 kB of `<a>` | 5,089 | 4,487 | 2,523 | 1.78 | 2.17 |
| 20 kB of Python dicts that call an unknown tool | 66,284 | 28,178 | 4,378 | 6.44 | 15.30 |
| 20 kB of JSON that calls an unknown tool | 19,730 | 14,193 | 3,768 | 3.77 | 5.51 |
| 20 kB of Hermes calls of an unknown tool | 47,847 | 14,071 | 3,789 | 3.71 | 13.27 |
| 20 kB of markup that names no tool | 14,313 | 7,019 | 4,327 | 1.62 | 5.52 |

So a clean call, after a thought too, takes about twice what the peer takes, at the limit of what was aimed at. A \
text that names no tool is not mended, and its JSON is not asked what it may be. Not met is the aim of 1 ms for 20 \
kB of calls of tools that do not exist (each is reported), of damaged calls (25 ms for 206 of them) and of pages \
that have the name of a tool in them, which are mended (9 ms).

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
