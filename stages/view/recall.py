"""Recall: results that compaction cut, read again by the model. Answered by the core, without an effect."""

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from stages import nudges
from stages.context_budget import ContextBudget, estimate
from stages.effect import CallResult, Succeeded, Unresolved
from stages.execution import unanswered_calls
from stages.message import History, Kind, Tool, ToolCall, messages_with_calls, size
from stages.nudges import quote
from stages.state import Batch, Cleared, Compaction, State
from stages.tokens import characters_of, fitting_length, length
from stages.tool import RECALL

_LIMIT = 20_000
"""Maximum characters of one answer if the size of the context is unknown."""

_SMALLEST = 200
"""Minimum characters of a partial answer; with less room, none is given."""


class _Arguments(Struct, frozen=True):
    call_id: str
    offset: int = 0


def with_compaction(state: State, history: History, budget: ContextBudget, phase: int, tokens_before: int) -> State:
    """The state with the shorter history, the cut results in `cleared`, and the compaction in the ledger."""
    event = Compaction(
        turn=state.ledger.turn,
        phase=phase,
        tokens_before=tokens_before,
        tokens_after=estimate(history, budget),
        budget_tokens=budget.tokens,
        messages_before=len(state.history),
        messages_after=len(history),
    )
    kept = budget.recall or budget.record
    record = with_cut_results(state.cleared, state.history, history) if kept else state.cleared
    shorter = replace(state.reshape(history), cleared=record)
    return shorter.note(compactions=(*state.ledger.compactions, event), seen=b"")


def with_cut_results(record: tuple[Cleared, ...], before: History, after: History) -> tuple[Cleared, ...]:
    """The record, extended by the results that a compaction removed or shortened.

    Results that are already in the record stay as they are: the history may have only a shortened text left.
    """
    known = {entry.call_id for entry in record}
    left = {m.call_id: m.text for m in after if isinstance(m, Tool)}
    return record + tuple(
        Cleared(
            call_id=m.call_id,
            name=m.name,
            arguments=call.arguments if call else "{}",
            text=m.text,
            status=m.status,
        )
        for m, call in messages_with_calls(before)
        if isinstance(m, Tool)
        and m.kind is Kind.TOOL_RESULT
        and m.call_id not in known
        and left.get(m.call_id) != m.text
    )


def answer_recalls(state: State, batch: Batch) -> Batch:
    """The batch with its recalls answered; together, the answers take at most half of the remaining context."""
    calls = [call for call in unanswered_calls(batch) if call.name == RECALL.name]
    if not calls:
        return batch
    each = _room(state, batch) // (2 * len(calls))  # the other half is for the reply and what follows it
    return batch.with_results(*(_answer(call, state, each) for call in calls))


def _room(state: State, batch: Batch) -> int:
    """Characters that the next prompt may have on top of the last one and the reply to it."""
    ledger = state.ledger
    if not ledger.context_tokens:
        return 2 * _LIMIT
    whole = characters_of(ledger.context_tokens, ledger.tokens_per_character, ledger.report)
    return max(0, whole - ledger.prompt_size - size(batch.said))


def _answer(call: ToolCall, state: State, limit: int) -> CallResult:
    asked = msgspec.json.decode(call.arguments, type=_Arguments)
    entry = next((e for e in reversed(state.cleared) if e.call_id == asked.call_id), None)
    if entry is None:
        still = any(isinstance(m, Tool) and m.call_id == asked.call_id for m in state.history)
        known = [f"{e.call_id} ({e.name} {quote(e.arguments, 60)})" for e in state.cleared[-10:]]
        return Unresolved(call_id=call.id, message=nudges.not_cleared(asked.call_id, known, still=still))
    text = _part(entry, asked.offset, limit)
    if not text:
        return Unresolved(call_id=call.id, message=nudges.no_room(asked.call_id))
    return Succeeded(call_id=call.id, text=text, value=Raw(msgspec.json.encode(text)))


def _part(entry: Cleared, start: int, limit: int) -> str:
    """The text from `start` on, cut to `limit` characters with a marker that says how to continue.

    Empty if there is room for hardly more than the marker.
    """
    text = entry.text[start:]
    if length(text) <= limit:
        return text or nudges.recall_ended(entry.call_id, len(entry.text))
    # The marker takes room, too; its length hardly changes with the numbers in it.
    marker = nudges.recall_more(entry.call_id, start, len(entry.text), len(entry.text))
    if limit < length(marker) + _SMALLEST:
        return ""
    end = start + fitting_length(text, limit - length(marker))
    return entry.text[start:end] + nudges.recall_more(entry.call_id, start, end, len(entry.text))
