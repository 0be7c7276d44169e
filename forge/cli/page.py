"""A recorded run as one page of HTML: its timeline, turn by turn, without scripts and without the network."""

from collections.abc import Iterable, Iterator
from html import escape

import msgspec
from msgspec import Struct

from forge.cli.lines import provenance
from forge.decision import ending
from forge.errors import explain
from forge.interpreters.recorded import Header
from forge.replay import Step
from stages import events
from stages.batch import shown
from stages.effect import Reply, Succeeded
from stages.message import Kind

LONGEST = 20_000
"""Characters of one text that the page has."""

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
h1{font-size:1.4rem;margin:0}p.facts{color:#666;margin:.2rem 0 1.5rem}
section{border-left:3px solid #ccc;padding:.2rem 0 .2rem 1rem;margin:1rem 0}
h2{font-size:1rem;margin:0 0 .4rem}h2 small{font-weight:normal;color:#666}
.bar{height:.5rem;background:#eee;margin:.2rem 0 .6rem}.bar div{height:100%;background:#4a7fb5}
.bar .full{background:#c0392b}dl{display:grid;grid-template-columns:7rem 1fr;gap:.15rem .8rem;margin:0}
dt{color:#666;text-align:right}dd{margin:0;white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:isolate;
font:13px/1.5 ui-monospace,monospace}
.nudge,.warning,.failed{color:#a05a00}.result,.done{color:#1e7b34}.halted{color:#b00020}.runs{color:#0b5e80}
.compact,.summary,.approval{color:#7b2d8b}.thought{color:#666;font-style:italic}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}.bar{background:#333}section{border-color:#444}
.nudge,.warning,.failed{color:#e0a04a}.result,.done{color:#6fce85}.runs{color:#6fc1e0}.halted{color:#ff7b8a}
.compact,.summary,.approval{color:#d08be0}}
"""

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title><style>{style}</style></head>
<body><h1>{title}</h1><p class="facts">{facts}</p>
{sections}
</body></html>
"""


class Item(Struct, frozen=True):
    """A line of the timeline: what it is, and what was said."""

    label: str
    text: str


class Section(Struct, frozen=True, kw_only=True):
    """What happened in a turn. `tokens` are those of its prompt, of a context of `room`; 0: no prompt, or unknown."""

    title: str
    note: str = ""
    tokens: int = 0
    room: int = 0
    items: tuple[Item, ...] = ()


def page(header: Header, steps: Iterable[Step]) -> str:
    """The page. What models, tools and users said is on it as text, whatever it is."""
    setup = header.setup
    facts = (setup.model, setup.mode, f"{setup.context_tokens:,} tokens of context", header.started)
    sections = "\n".join(map(_section, _turns(steps)))
    return PAGE.format(
        title=_text(header.workflow), style=STYLE, facts=_text(" · ".join(filter(None, facts))), sections=sections
    )


def _turns(steps: Iterable[Step]) -> Iterator[Section]:
    """The timeline cut where the model is asked."""
    title, note, tokens, room = "Before the first turn", "", 0, 0
    items: list[Item] = []
    for step in steps:
        if step.number == 0:
            items.extend(Item(type(m).__name__.lower(), m.text) for m in step.state.history)
        for event in step.events:
            if isinstance(event, events.TurnStarted):
                yield Section(title=title, note=note, tokens=tokens, room=room, items=tuple(items))
                title, items, tokens, room = f"Turn {event.turn}", [], event.prompt_tokens, event.context_tokens
                note = f"state {step.number}, prompt about {tokens:,} tokens, {event.calls_left} model calls left"
            else:
                items.extend(_items(event))
    yield Section(title=title, note=note, tokens=tokens, room=room, items=tuple(items))


def _items(event: events.Event) -> Iterator[Item]:
    match event:
        case events.ModelReplied(reply=reply):
            yield from _said(reply)
        case events.CallsAccepted(calls=calls):
            yield from (Item("runs", f"{call.name} {call.arguments}{provenance(call)}") for call in calls)
        case events.ToolsReturned(results=results):
            yield from (Item("result" if isinstance(r, Succeeded) else "failed", shown(r)) for r in results)
        case events.Nudged(text=text):
            yield Item("nudge", text)
        case events.Warned(kind=kind, text=text):
            yield Item("note" if kind is Kind.PROGRESS_NOTE else "warning", text)
        case events.ApprovalAsked(call=call):
            yield Item("approval", f"{call.name} {call.arguments}")
        case events.Compacted(compaction=cut):
            fewer = f"{cut.messages_before} → {cut.messages_after} messages"
            yield Item("compact", f"{cut.tokens_before:,} → {cut.tokens_after:,} tokens, {fewer}, phase {cut.phase}")
        case events.Finished(outcome=outcome):
            yield Item("done", ending(outcome))
        case events.Halted(halt=halt):
            yield Item("halted", explain(halt))
        case events.MessageAdded():
            pass  # replies, results and nudges are shown as they come
        case other:
            yield Item("event", msgspec.json.encode(other).decode())


def _said(reply: Reply) -> Iterator[Item]:
    if reply.reasoning.strip():
        yield Item("thought", reply.reasoning)
    if reply.text.strip():
        yield Item("said", reply.text)
    yield from (Item("called", f"{call.name} {call.arguments}") for call in reply.calls)
    if reply.usage:
        yield Item("tokens", f"{reply.usage.prompt:,} prompt, {reply.usage.completion:,} reply, as the server counts")


def _section(section: Section) -> str:
    rows = "".join(f'<dt>{item.label}</dt><dd class="{item.label}">{_text(item.text)}</dd>' for item in section.items)
    share = min(100, 100 * section.tokens // section.room) if section.room else 0
    full = ' class="full"' if share >= 90 else ""
    bar = f'<div class="bar"><div{full} style="width:{share}%"></div></div>' if section.room else ""
    return f"<section><h2>{section.title} <small>{section.note}</small></h2>{bar}<dl>{rows}</dl></section>"


def _text(text: str) -> str:
    """The text as HTML shows it, cut to size, control characters made visible."""
    cut = text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text) - LONGEST} characters more)"
    return escape("".join(c if c.isprintable() or c in "\n\t" else "�" for c in cut))
