"""The HTML page of a recorded run, turn by turn, with times. `rows.py` has the texts of the rows."""

import itertools
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from forge.cli.console import LabelledText, readable
from forge.cli.rows import rows, run_row
from forge.errors import ForgeError, explain, quantity
from forge.journal.records import Journal, JournalEntry, SentPart
from forge.journal.replaying import Step, effect_name, ending_text
from stages import events
from stages.decoding import decode_or
from stages.effect import (
    Approved,
    Ask,
    Execute,
    Outcome,
    Replied,
    Results,
    Undelivered,
)
from stages.state import Done


class _Section(Struct, kw_only=True):
    """What happened in a turn. `tokens` is the size of its prompt, `room` that of the context; 0: none, or unknown."""

    title: str
    note: str = ""
    tokens: int = 0
    room: int = 0
    items: list[LabelledText] = []


# The timeline of a replayed run: what happened in each turn, durations, and the end.


def timeline(journal: Journal, steps: Iterable[Step]) -> tuple[list[_Section], Step | None]:
    """A section for each turn, and the last step."""
    sections, last, effects = [_Section(title="Before the first turn")], None, 0
    for last in steps:
        if last.number == 0:
            sections[0].items += (run_row(type(m).__name__.lower(), m.text) for m in last.state.history)
        if last.outcome is not None:
            if effects in journal.resumed:
                sections[-1].items.append(run_row("resumed", "the run was interrupted here and resumed later"))
            effects += 1
            sections[-1].items += _took_items(last.outcome)
        for event in (stamped.event for stamped in last.events):
            if isinstance(event, events.TurnStarted):
                tokens, left = event.prompt_tokens, quantity(event.calls_left, "model call")
                note = f"state {last.number}, prompt about {tokens:,} tokens, {left} left"
                title = f"Turn {event.turn}"
                sections.append(_Section(title=title, note=note, tokens=tokens, room=event.context_tokens))
            else:
                sections[-1].items += rows(event)
    return sections, last


def _end(journal: Journal, last: Step | None) -> LabelledText:
    if last is not None and last.halt is not None:
        return run_row("halted", explain(last.halt))
    if last is not None and isinstance(last.state.phase, Done):
        return run_row("done", ending_text(last.state.phase.outcome))
    pending = journal.pending
    return run_row("interrupted", f"started, never finished: {effect_name(pending)}" if pending else "nothing followed")


def _facts(journal: Journal) -> Iterator[str]:
    """The run's model and its time and tokens in total."""
    setup, outcomes = journal.header.setup, [entry.outcome for entry in journal.entries]
    yield from (setup.model, setup.mode, f"{setup.context_tokens:,} tokens of context", journal.header.started)
    yield f"model {_seconds(sum(one.seconds for one in outcomes if isinstance(one, Replied | Undelivered)))}"
    yield f"tools {_seconds(sum(one.seconds for one in outcomes if isinstance(one, Results)))}"
    used = [one.reply.usage for one in outcomes if isinstance(one, Replied) and one.reply.usage]
    if used:
        cached = sum(one.cached for one in used)
        yield f"{sum(one.prompt for one in used):,} prompt tokens{f' ({cached:,} of them cached)' if cached else ''}"
        yield f"{sum(one.completion for one in used):,} reply tokens"


def _seconds(number: float) -> str:
    if number < 0.001:
        return "under 1 ms"
    return f"{1000 * number:.0f} ms" if number < 1 else f"{number:,.1f} s"


def _took_items(outcome: Outcome) -> Iterator[LabelledText]:
    match outcome:
        case Replied(reply=reply, seconds=seconds):
            used = reply.usage
            tokens = f", {used.prompt:,} prompt and {used.completion:,} reply tokens" if used else ""
            yield run_row("model", f"{_seconds(seconds)}{tokens}")
        case Undelivered(fault=fault, seconds=seconds):
            yield run_row("failed", f"no answer after {_seconds(seconds)}: {fault.detail}")
        case Results(seconds=seconds):
            yield run_row("tools", _seconds(seconds))
        case _:
            pass


# A recorded run as one HTML page: its timeline, turn by turn, without scripts or network access.

_LONGEST = 20_000
"""Maximum characters of a text on the page."""

_FOLDED = 600
"""Texts with more characters, or at least `_LINES` lines, are folded."""
_LINES = 12
_HEAD = 160
"""Characters of a folded text that remain visible."""

_STYLE = """
:root{color-scheme:light dark;--text:#222;--back:#fff;--dim:#666;--line:#ccc;--bar:#eee;--fill:#4a7fb5;--full:#c0392b;
--warn:#9a5200;--good:#1b6e2f;--bad:#b00020;--run:#0b5e80;--aside:#7b2d8b;--unknown:#fff3d6}
@media(prefers-color-scheme:dark){:root{--text:#ddd;--back:#181818;--dim:#999;--line:#444;--bar:#333;--warn:#e0a04a;
--good:#6fce85;--bad:#ff7b8a;--run:#6fc1e0;--aside:#d08be0;--unknown:#4a3a10}}
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:var(--text);
background:var(--back)}
h1{font-size:1.4rem;margin:0;overflow-wrap:anywhere}p.facts{color:var(--dim);margin:.2rem 0 .6rem}
p.end{border-left:3px solid;padding:.3rem .8rem;margin:0 0 .6rem;white-space:pre-wrap;overflow-wrap:anywhere}
section{border-left:3px solid var(--line);padding:.2rem 0 .2rem 1rem;margin:1rem 0}
h2{font-size:1rem;margin:0 0 .4rem}h2 small{font-weight:normal;color:var(--dim)}
.bar{height:.5rem;background:var(--bar);margin:.2rem 0 .6rem}.bar div{height:100%;background:var(--fill)}
.bar .full{background:var(--full)}dl{display:grid;grid-template-columns:6rem minmax(0,1fr);gap:.15rem .8rem;margin:0}
dt{color:var(--dim);text-align:right}dd{margin:0;white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:isolate;
font:13px/1.5 ui-monospace,monospace}summary{cursor:pointer}summary i{color:var(--dim)}
.model,.tools,.note,.called,.offer,.prefix,.progress{color:var(--dim)}
.corrected,.warning,.failed,.mode,.retry{color:var(--warn)}.result,.done{color:var(--good)}
.halted{color:var(--bad)}.runs,.heard{color:var(--run)}.shortened,.summary,.approval{color:var(--aside)}
.thought{color:var(--dim);font-style:italic}.interrupted,.resumed,.unknown{color:var(--warn);font-weight:bold}
.unknown{background:var(--unknown)}dd.interrupted,dd.resumed{border-top:2px dashed}
@media(max-width:40rem){body{margin:1rem auto}section{padding-left:.6rem}dl{grid-template-columns:minmax(0,1fr);gap:0}
dt{text-align:left;margin-top:.4rem}}
"""

_DOCTYPE = b"<!doctype html>"

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title><style>{style}</style></head>
<body><h1>{title}</h1><p class="facts">{facts}</p>
{end}
{sections}
</body></html>
"""


def page(journal: Journal, steps: Iterable[Step]) -> str:
    """The page. Everything that models, tools and users said is plain text; local paths are removed."""
    sections, last = timeline(journal, steps)
    end, pending = _end(journal, last), journal.pending
    # Unknown outcomes: those of the last state, and a pending call at the end of the recording.
    known = last.state.ledger.in_doubt if last is not None else ()
    begun = pending.calls if isinstance(pending, Execute) and not pending.retriable else ()
    calls = dict.fromkeys(f"{call.name} {call.arguments}" for call in (*known, *begun))
    unknown = [run_row("unknown", call) for call in calls]
    if end.label == "interrupted":
        sections[-1].items += (end, *unknown)
    ends = [(end, f"{end.label}: {end.text}"), *((row, f"outcome unknown: {row.text}") for row in unknown)]
    return _PAGE.format(
        title=_text(journal.header.workflow),
        style=_STYLE,
        facts=_text(" · ".join(filter(None, _facts(journal)))),
        end="\n".join(f'<p class="end {item.label}">{_text(text)}</p>' for item, text in ends),
        sections="\n".join(map(_section, sections)),
    )


def save_page(path: Path, content: str) -> None:
    """Write a page that only its owner may read: like a journal, it holds everything that was said.

    ForgeError if that fails, or would replace a file that is not a page.
    """
    try:
        # Replace only pages, empty files, and devices such as /dev/null.
        if path.is_file() and path.read_bytes()[: len(_DOCTYPE)].lower() not in (b"", _DOCTYPE):
            raise ForgeError(f"{path} already exists and is not a page; choose another file")
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(content)
    except OSError as error:
        raise ForgeError(f"cannot write the page {path}: {error.strerror}") from None


def _section(section: _Section) -> str:
    rows = "".join(map(_row, section.items))
    share = min(100, 100 * section.tokens // section.room) if section.room else 0
    full = ' class="full"' if share >= 90 else ""
    bar = f'<div class="bar"><div{full} style="width:{share}%"></div></div>' if section.room else ""
    return f"<section><h2>{section.title} <small>{section.note}</small></h2>{bar}<dl>{rows}</dl></section>"


def _row(item: LabelledText) -> str:
    text = _text(item.text)
    if len(item.text) > _FOLDED or item.text.count("\n") >= _LINES:
        head = _text(" ".join(item.text[: 4 * _HEAD].split())[:_HEAD])
        text = f"<details><summary>{head}… <i>{len(item.text):,} characters</i></summary>{text}</details>"
    return f'<dt>{item.label}</dt><dd class="{item.label}">{text}</dd>'


def _text(text: str) -> str:
    """The text, escaped for HTML, shortened, with control characters made visible."""
    cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text) - _LONGEST} more characters)"
    return escape(readable(without_folders(cut)))


_HOMES = re.compile(
    r"(?:/home/[\w.-]{1,64}|/Users/[\w.-]{1,64}|/root|[A-Za-z]:\\{1,2}Users\\{1,2}[\w.-]{1,64})(?![\w.-])"
)
"""Home folders of any machine: pages are shared, and user names are private."""


def without_folders(text: str) -> str:
    """The text without the paths of home, working and temporary folders."""
    for folder, name in ((Path.cwd(), "."), (Path.home(), "~"), (Path(tempfile.gettempdir()), "…")):
        if len(folder.parts) > 1:
            text = re.sub(re.escape(str(folder)) + r"(?![\w.-])", name, text)
    return _HOMES.sub("~", text)


# The timeline of a journal without its workflow: requests, replies and tool calls.


class _Sent(Struct):
    """A message in any protocol: `content` is text or a list of parts."""

    role: str = ""
    content: Raw = Raw(b'""')


_messages = msgspec.json.Decoder(_Sent)
_texts = msgspec.json.Decoder(str)


def recorded_timeline(journal: Journal) -> list[_Section]:
    """A section for each model call, with the tools that ran after it."""
    sections: list[_Section] = []
    results: set[str] = set()
    calls = itertools.count(1)
    for entry in journal.entries:
        if isinstance(entry.effect, SentPart):
            sections.append(_Section(title=f"Model call {next(calls)}"))
        elif not sections:
            sections.append(_Section(title="Before the first model call"))
        sections[-1].items += _journal_items(entry, results)
    if journal.pending is not None:
        unfinished = run_row("unknown", f"started, never finished: {effect_name(journal.pending)}")
        sections.append(_Section(title="The end", items=[unfinished]))
    return sections


def _journal_items(entry: JournalEntry, results: set[str]) -> Iterator[LabelledText]:
    """What happened; `results` are texts already shown as tool results."""
    match entry.effect:
        case SentPart(messages=messages):
            told = (_sent(message) for message in messages)
            yield from (item for item in told if item.label != "assistant" and item.text not in results)
        case Execute(calls=calls):
            yield from rows(events.CallsAccepted(calls=calls))
        case Ask(call=call, in_doubt=in_doubt, problem=problem):
            yield from rows(events.ApprovalAsked(call=call, in_doubt=in_doubt, problem=problem))
    yield from _took_items(entry.outcome)
    match entry.outcome:
        case Replied(reply=reply):
            yield from rows(events.ModelReplied(turn=0, reply=reply))
        case Results(results=returned):
            items = [*rows(events.ToolsReturned(results=returned))]
            results.update(item.text for item in items)
            yield from items
        case Approved():
            yield run_row("approval", "given")
        case _:
            pass


def _sent(message: Raw) -> LabelledText:
    """The message; parts that are not text are shown as sent."""
    if (known := decode_or(_messages, bytes(message), None)) is None:
        return run_row("sent", bytes(message).decode(errors="replace"))
    content = bytes(known.content)
    return run_row(known.role, decode_or(_texts, content, content.decode(errors="replace")))
