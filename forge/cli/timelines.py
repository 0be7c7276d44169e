"""The timeline of a recorded run: what happened in each turn, how long it took, how it ended."""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from forge.cli.lines import provenance
from forge.cli.took import Took, seconds_of
from forge.errors import explain
from forge.journal.decisions import ending
from forge.journal.records import Journal
from forge.journal.replaying import Step, effect_name
from stages import events
from stages.effect import CallResult, Execute, InDoubt, Outcome, Paused, Replied, Reply, Results, Succeeded, Undelivered
from stages.execution import result_text
from stages.message import Kind
from stages.state import Done


class Item(Struct, frozen=True):
    """A line of the timeline: its label and its text."""

    label: str
    text: str


class Section(Struct, frozen=True, kw_only=True):
    """What happened in a turn. `tokens` is the size of its prompt, `room` that of the context; 0: none or unknown."""

    title: str
    note: str = ""
    tokens: int = 0
    room: int = 0
    items: tuple[Item, ...] = ()


class Timeline(Struct, frozen=True, kw_only=True):
    """A whole run: its end, calls with an unknown outcome, durations and tokens, and its turns."""

    end: Item
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
        self._items: list[Item] = []
        self._effects = 0
        self._took = Took()
        self._last: Step | None = None

    def add(self, step: Step) -> None:
        """Add the next state of the run."""
        self._last = step
        if step.number == 0:
            self._items += (Item(type(m).__name__.lower(), m.text) for m in step.state.history)
        if step.outcome is not None:
            if self._effects in self._journal.resumed:
                self._items.append(Item("resumed", "the run was interrupted here and resumed later"))
            self._effects += 1
            self._took = self._took.more(step.outcome)
            self._items += took_items(step.outcome)
        for event in step.events:
            if isinstance(event, events.TurnStarted):
                self._cut(event, step.number)
            else:
                self._items += _items(event)

    def whole(self) -> Timeline:
        """The complete timeline."""
        end, unknown = self._end(), self._unknown()
        if end.label == "interrupted":
            self._items += (end, *(Item("unknown", call) for call in unknown))
        self._close()
        return Timeline(end=end, unknown=unknown, facts=self._took.facts(), sections=tuple(self._sections))

    def _cut(self, event: events.TurnStarted, number: int) -> None:
        self._close()
        note = f"state {number}, prompt about {event.prompt_tokens:,} tokens, {event.calls_left} model calls left"
        title = f"Turn {event.turn}"
        self._next = Section(title=title, note=note, tokens=event.prompt_tokens, room=event.context_tokens)

    def _close(self) -> None:
        self._sections.append(replace(self._next, items=tuple(self._items)))
        self._items = []

    def _end(self) -> Item:
        last = self._last
        if last is not None and last.halt is not None:
            return Item("halted", explain(last.halt))
        if last is not None and isinstance(last.state.phase, Done):
            return Item("done", ending(last.state.phase.outcome))
        pending = self._journal.pending
        return Item(
            "interrupted", f"started, never finished: {effect_name(pending)}" if pending else "nothing followed"
        )

    def _unknown(self) -> tuple[str, ...]:
        """Calls with an unknown outcome: those of the last state, and a pending one at the end of the record."""
        known = self._last.state.ledger.in_doubt if self._last is not None else ()
        pending = self._journal.pending
        begun = pending.calls if isinstance(pending, Execute) and not pending.retriable else ()
        return tuple(dict.fromkeys(f"{call.name} {call.arguments}" for call in (*known, *begun)))


def took_items(outcome: Outcome) -> Iterator[Item]:
    """How long it took, of a model call or of tools."""
    match outcome:
        case Replied(reply=reply, seconds=seconds):
            used = reply.usage
            tokens = f", {used.prompt:,} prompt and {used.completion:,} reply tokens" if used else ""
            yield Item("model", f"{seconds_of(seconds)}{tokens}")
        case Undelivered(fault=fault, seconds=seconds):
            yield Item("failed", f"no answer after {seconds_of(seconds)}: {fault.detail}")
        case Results(seconds=seconds):
            yield Item("tools", seconds_of(seconds))
        case _:
            pass


def _items(event: events.Event) -> Iterator[Item]:
    match event:
        case events.ModelReplied(reply=reply):
            yield from reply_items(reply)
        case events.CallsAccepted(calls=calls):
            yield from (Item("runs", f"{call.name} {call.arguments}{provenance(call)}") for call in calls)
        case events.ToolsReturned(results=results):
            yield from map(result_item, results)
        case events.Nudged(text=text):
            yield Item("nudge", text)
        case events.Warned(kind=kind, text=text):
            yield Item("note" if kind is Kind.PROGRESS_NOTE else "warning", text)
        case events.ApprovalAsked(call=call):
            yield Item("approval", f"{call.name} {call.arguments}")
        case events.HistoryCompacted(compaction=cut):
            fewer = f"{cut.messages_before} → {cut.messages_after} messages"
            yield Item("compact", f"{cut.tokens_before:,} → {cut.tokens_after:,} tokens, {fewer}, phase {cut.phase}")
        case events.RunFinished(outcome=outcome):
            yield Item("done", ending(outcome))
        case events.RunHalted(halt=halt):
            yield Item("halted", explain(halt))
        case events.MessageAdded():
            pass  # replies, results and nudges are shown as they come
        case other:
            yield Item("event", msgspec.json.encode(other).decode())


def result_item(result: CallResult) -> Item:
    """What a tool returned, or how its call failed."""
    match result:
        case Succeeded():
            return Item("result", result_text(result))
        case InDoubt():
            return Item("unknown", result_text(result))
        case Paused(asks=asks):
            return Item("result", f"asks the user: {asks.question}")
        case _:
            return Item("failed", result_text(result))


def reply_items(reply: Reply) -> Iterator[Item]:
    """What the model said."""
    if reply.reasoning.strip():
        yield Item("thought", reply.reasoning)
    if reply.text.strip():
        yield Item("said", reply.text)
    yield from (Item("called", f"{call.name} {call.arguments}") for call in reply.calls)
