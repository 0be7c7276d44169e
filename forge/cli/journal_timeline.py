"""The timeline of a journal as it is, without its workflow: what the model was sent and said, and what ran."""

from collections.abc import Iterator

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from forge.cli.lines import provenance
from forge.cli.timelines import Item, Section, reply_items, result_item, took_items
from forge.journal.records import Entry, Journal, SentPart
from forge.journal.replaying import effect_name
from stages.effect import Approved, Ask, Execute, Outcome, Replied, Results
from stages.repair.decoding import decode


class _Sent(Struct):
    """A message as a wire has it: `content` is a text or a list of parts, which differ by protocol."""

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
        items = tuple(_items(entry, results))
        sections[-1] = replace(sections[-1], items=sections[-1].items + items)
    if journal.pending is not None:
        unfinished = Item("unknown", f"started, never finished: {effect_name(journal.pending)}")
        sections.append(Section(title="The end", items=(unfinished,)))
    return tuple(sections)


def _items(entry: Entry, results: set[str]) -> Iterator[Item]:
    """What happened; `results` are the texts that are shown already as what a tool returned."""
    match entry.effect:
        case SentPart(messages=messages):
            told = (_sent(message) for message in messages)
            yield from (item for item in told if item.label != "assistant" and item.text not in results)
        case Execute(calls=calls):
            yield from (Item("runs", f"{call.name} {call.arguments}{provenance(call)}") for call in calls)
        case Ask(call=call):
            yield Item("approval", f"{call.name} {call.arguments}")
    for item in _outcome(entry.outcome):
        if item.label in {"result", "failed"}:
            results.add(item.text)
        yield item


def _outcome(outcome: Outcome) -> Iterator[Item]:
    yield from took_items(outcome)
    match outcome:
        case Replied(reply=reply):
            yield from reply_items(reply)
        case Results(results=results):
            yield from map(result_item, results)
        case Approved():
            yield Item("approval", "given")
        case _:
            pass


def _sent(message: Raw) -> Item:
    """The message; parts that are no text are shown as they were sent."""
    try:
        known = decode(_messages, bytes(message))
    except msgspec.DecodeError:
        return Item("sent", bytes(message).decode(errors="replace"))
    try:
        return Item(known.role, decode(_texts, bytes(known.content)))
    except msgspec.DecodeError:
        return Item(known.role, bytes(known.content).decode(errors="replace"))
