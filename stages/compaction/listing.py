"""Call list: a message with a line for each call of removed exchanges."""

from collections.abc import Iterable, Iterator

from stages.compaction.exchange import Span
from stages.compaction.measured_history import Measured
from stages.message import Assistant, History, Kind, Tool, User, size, turn_of
from stages.nudges import context
from stages.tokens import length

LIST_LIMIT = 4000
"""Maximum characters of a list, some sixty calls: a model makes little use of older ones."""


def with_call_list(old: Measured, spans: list[Span], limit: int, *, recall: bool) -> Measured:
    """Without these exchanges, the oldest ones, but with a list of their calls if that is shorter.

    The list takes at most `limit` characters. It continues an earlier list, so that the prompt stays the same up to its
    end; a full list keeps its newer part. It stands where the last of the calls stood, so that nothing comes before the
    user's request for it.
    """
    if not spans:
        return old
    lists = _lists(old.messages[: spans[0][0]])
    before = old.messages[lists[0][0]].text if lists else context.called_before(recall=recall, all_of_them=True)
    text = _text(before, _calls(old.messages, spans, recall=recall), limit, recall=recall)
    gone = [*lists, *spans]
    if not text:
        return old.without(gone)
    message = User(text=text, kind=Kind.SUMMARY, turn=turn_of(old.messages[spans[-1][1] - 1]))
    place = spans[-1][0] - sum(end - start for start, end in gone[:-1])
    shorter = old.without(gone).inserted(place, message, size(message))
    return shorter if shorter.size < old.size else old.without(spans)


def without_call_list(part: Measured) -> Measured:
    """Without a call list."""
    return part.without(_lists(part.messages))


def _lists(messages: History) -> list[Span]:
    return [(i, i + 1) for i, m in enumerate(messages) if type(m) is User and _is_list(m)]


def _is_list(message: User) -> bool:
    return message.kind is Kind.SUMMARY and message.text.startswith(context.CALLED)


def _text(before: str, newest_first: Iterator[str], limit: int, *, recall: bool) -> str:
    """The earlier list and these lines; if that is too long, the newer lines of both; else nothing."""
    whole = "\n".join((before, *_newest(newest_first, limit)))
    if length(whole) <= limit:
        return whole if "\n" in whole else ""
    head = context.called_before(recall=recall, all_of_them=False)
    newer = _newest(reversed(whole.split("\n")[1:]), min(limit * 3 // 4, limit - length(head)))
    return "\n".join((head, *newer)) if newer else ""


def _newest(newest_first: Iterable[str], limit: int) -> list[str]:
    """The newest lines within the limit together, in their order."""
    lines: list[str] = []
    for line in newest_first:
        limit -= length(line) + length("\n")
        if limit < 0:
            break
        lines.append(line)
    return lines[::-1]


def _calls(messages: History, spans: list[Span], *, recall: bool) -> Iterator[str]:
    """A line for each call, the newest first."""
    for start, end in reversed(spans):
        failed: dict[str, str] = {}
        for message in reversed(messages[start:end]):
            if isinstance(message, Tool):
                status = message.status if message.kind is Kind.TOOL_RESULT else "not_run"
                failed[message.call_id] = "" if status == "succeeded" else status.replace("_", " ")
            elif isinstance(message, Assistant):
                for call in reversed(message.calls):
                    yield context.called(call.id if recall else "", call.name, call.arguments, failed.get(call.id, ""))
