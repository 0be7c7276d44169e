"""The HTML page of a recorded run, turn by turn, with times. `rows.py` has the texts of the rows."""

import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import Self

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from forge.cli.console import LabelledText, readable
from forge.cli.rows import rows, run_row
from forge.errors import ForgeError, explain, quantity
from forge.journal.records import Entry, Journal, SentPart
from forge.journal.replaying import Step, effect_name, ending
from stages import events
from stages.effect import (
    Approved,
    Ask,
    Execute,
    Outcome,
    Replied,
    Results,
    Undelivered,
    Usage,
)
from stages.repair.decoding import decode_or
from stages.state import Done

# Durations and tokens of a recorded run.


class Took(Struct, frozen=True, kw_only=True):
    """Time spent in seconds, and tokens as counted by the server."""

    model: float = 0.0
    tools: float = 0.0
    prompt: int = 0
    completion: int = 0
    cached: int = 0

    def more(self, outcome: Outcome) -> Self:
        """The sum with this outcome."""
        match outcome:
            case Replied(reply=reply, seconds=seconds):
                usage = reply.usage or Usage()
                return replace(
                    self,
                    model=self.model + seconds,
                    prompt=self.prompt + usage.prompt,
                    completion=self.completion + usage.completion,
                    cached=self.cached + usage.cached,
                )
            case Undelivered(seconds=seconds):
                return replace(self, model=self.model + seconds)
            case Results(seconds=seconds):
                return replace(self, tools=self.tools + seconds)
            case _:
                return self

    def facts(self) -> tuple[str, ...]:
        """The values as texts."""
        seconds = f"model {seconds_of(self.model)}", f"tools {seconds_of(self.tools)}"
        if not self.prompt and not self.completion:
            return seconds
        cached = f" ({self.cached:,} of them cached)" if self.cached else ""
        return (*seconds, f"{self.prompt:,} prompt tokens{cached}", f"{self.completion:,} reply tokens")


def seconds_of(number: float) -> str:
    """A duration as text."""
    if number < 0.001:
        return "under 1 ms"
    return f"{1000 * number:.0f} ms" if number < 1 else f"{number:,.1f} s"


# The timeline of a recorded run: what happened in each turn, durations, and the end.


class Section(Struct, frozen=True, kw_only=True):
    """A turn. `tokens` is the size of its prompt, `room` that of the context; 0 means none or unknown."""

    title: str
    note: str = ""
    tokens: int = 0
    room: int = 0
    items: tuple[LabelledText, ...] = ()


class Timeline(Struct, frozen=True, kw_only=True):
    """A run: its end, calls with an unknown outcome, durations and tokens, and its turns."""

    end: LabelledText
    unknown: tuple[str, ...]
    facts: tuple[str, ...]
    sections: tuple[Section, ...]


def timeline(journal: Journal, steps: Iterable[Step]) -> Timeline:
    """The timeline of a journal's run, from its replayed states."""
    made = _Turns(journal)
    for step in steps:
        made.add(step)
    return made.whole()


class _Turns:
    """The timeline so far, divided at the model calls."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._sections: list[Section] = []
        self._next = Section(title="Before the first turn")
        self._items: list[LabelledText] = []
        self._effects = 0
        self._took = Took()
        self._last: Step | None = None

    def add(self, step: Step) -> None:
        """Add the next state of the run."""
        self._last = step
        if step.number == 0:
            self._items += (run_row(type(m).__name__.lower(), m.text) for m in step.state.history)
        if step.outcome is not None:
            if self._effects in self._journal.resumed:
                self._items.append(run_row("resumed", "the run was interrupted here and resumed later"))
            self._effects += 1
            self._took = self._took.more(step.outcome)
            self._items += _took_items(step.outcome)
        for event in (stamped.event for stamped in step.events):
            if isinstance(event, events.TurnStarted):
                self._close()
                tokens, left = event.prompt_tokens, event.calls_left
                note = f"state {step.number}, prompt about {tokens:,} tokens, {quantity(left, 'model call')} left"
                title = f"Turn {event.turn}"
                self._next = Section(title=title, note=note, tokens=tokens, room=event.context_tokens)
            else:
                self._items += rows(event)

    def whole(self) -> Timeline:
        """The complete timeline."""
        end, pending = self._end(), self._journal.pending
        # Unknown outcomes: those of the last state, and a pending call at the end of the recording.
        known = self._last.state.ledger.in_doubt if self._last is not None else ()
        begun = pending.calls if isinstance(pending, Execute) and not pending.retriable else ()
        unknown = tuple(dict.fromkeys(f"{call.name} {call.arguments}" for call in (*known, *begun)))
        if end.label == "interrupted":
            self._items += (end, *(run_row("unknown", call) for call in unknown))
        self._close()
        return Timeline(end=end, unknown=unknown, facts=self._took.facts(), sections=tuple(self._sections))

    def _close(self) -> None:
        self._sections.append(replace(self._next, items=tuple(self._items)))
        self._items = []

    def _end(self) -> LabelledText:
        last = self._last
        if last is not None and last.halt is not None:
            return run_row("halted", explain(last.halt))
        if last is not None and isinstance(last.state.phase, Done):
            return run_row("done", ending(last.state.phase.outcome))
        pending = self._journal.pending
        return run_row(
            "interrupted", f"started, never finished: {effect_name(pending)}" if pending else "nothing followed"
        )


def _took_items(outcome: Outcome) -> Iterator[LabelledText]:
    """The duration of a model call or of tools."""
    match outcome:
        case Replied(reply=reply, seconds=seconds):
            used = reply.usage
            tokens = f", {used.prompt:,} prompt and {used.completion:,} reply tokens" if used else ""
            yield run_row("model", f"{seconds_of(seconds)}{tokens}")
        case Undelivered(fault=fault, seconds=seconds):
            yield run_row("failed", f"no answer after {seconds_of(seconds)}: {fault.detail}")
        case Results(seconds=seconds):
            yield run_row("tools", seconds_of(seconds))
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
    made, header = timeline(journal, steps), journal.header
    setup = header.setup
    facts = (setup.model, setup.mode, f"{setup.context_tokens:,} tokens of context", header.started, *made.facts)
    ends = [(made.end, f"{made.end.label}: {made.end.text}")]
    ends += [(run_row("unknown", call), f"outcome unknown: {call}") for call in made.unknown]
    return _PAGE.format(
        title=_text(header.workflow),
        style=_STYLE,
        facts=_text(" · ".join(filter(None, facts))),
        end="\n".join(f'<p class="end {_class(item)}">{_text(text)}</p>' for item, text in ends),
        sections="\n".join(map(_section, made.sections)),
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


def _class(item: LabelledText) -> str:
    """The first word of the label, which is forge's own."""
    return item.label.partition(" ")[0]


def _section(section: Section) -> str:
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
    return f'<dt>{item.label}</dt><dd class="{_class(item)}">{text}</dd>'


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


def recorded_timeline(journal: Journal) -> tuple[Section, ...]:
    """A section for each model call, with the tools that ran after it."""
    sections: list[Section] = []
    results: set[str] = set()
    for entry in journal.entries:
        if isinstance(entry.effect, SentPart):
            sections.append(Section(title=f"Model call {len(sections) + 1}"))
        elif not sections:
            sections.append(Section(title="Before the first model call"))
        items = tuple(_journal_items(entry, results))
        sections[-1] = replace(sections[-1], items=sections[-1].items + items)
    if journal.pending is not None:
        unfinished = run_row("unknown", f"started, never finished: {effect_name(journal.pending)}")
        sections.append(Section(title="The end", items=(unfinished,)))
    return tuple(sections)


def _journal_items(entry: Entry, results: set[str]) -> Iterator[LabelledText]:
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
