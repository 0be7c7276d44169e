"""Valid histories for strict servers and templates: no damaged call, every call answered, roles alternating.

Both functions look at one exchange at a time (a reply, its answers, what follows), so the result for a part that begins
with a reply is the end of the result for the whole.
"""

import re
from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from stages.decoding import nested
from stages.effect import RawCall
from stages.message import Assistant, History, Message, System, Tool, ToolCall, User
from stages.repair.damaged_json import FoundJson
from stages.repair.json_text import json_at

TOOL_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Tool names that OpenAI-compatible servers accept."""

_object = msgspec.json.Decoder(dict[str, object])


def is_object(text: str) -> bool:
    """Whether the text is a JSON object that every server can read: numbers in range, no lone surrogates."""
    if nested(text):
        return False
    try:
        _object.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return False
    return True


def valid_history(history: History, names: re.Pattern[str] = TOOL_NAME) -> History:
    """The history with only calls that a server accepts, each answered immediately and in order.

    Damaged arguments are repaired. An exchange that cannot be repaired (arguments that are not a JSON object, an
    invalid name, an unanswered call) becomes text together with its answers; so does an answer without a call.
    """
    told: list[Message] = []
    position, whole = 0, len(history)
    while position < whole:
        message = history[position]
        position += 1
        if isinstance(message, Assistant) and message.calls:
            answers: list[Tool] = []
            while position < whole and isinstance(after := history[position], Tool):
                answers.append(after)
                position += 1
            told += _exchange(message, answers, names)
        else:
            told.append(_answer_as_text(message) if isinstance(message, Tool) else message)
    return tuple(told)


def _exchange(reply: Assistant, answers: Sequence[Tool], names: re.Pattern[str]) -> History:
    if _is_sound(reply.calls, answers, names):
        return (reply, *answers)
    reply, answers = _told_apart(reply, answers)
    calls = tuple(with_object_arguments(call) for call in reply.calls)
    sound = tuple(call for call in calls if call is not None and names.fullmatch(call.name))
    given = {answer.call_id: answer for answer in answers}
    ids = {call.id for call in sound}
    if len(sound) == len(calls) == len(ids) == len(answers) and given.keys() == ids:
        kept = reply if sound == reply.calls else replace(reply, calls=sound)
        # Answers get the names of their calls, because some wires match them by name alone.
        return (kept, *(replace(given[call.id], name=call.name) for call in sound))
    words = "\n".join(filter(None, (reply.text, *map(call_as_text, reply.calls))))
    return (replace(reply, text=words, calls=()), *map(_answer_as_text, answers))


def _told_apart(reply: Assistant, answers: Sequence[Tool]) -> tuple[Assistant, Sequence[Tool]]:
    """The exchange with distinct ids, if calls without ids, or with the same one, are answered in order."""
    ids = [call.id for call in reply.calls]
    if (len({*ids}) == len(ids) and "" not in ids) or ids != [answer.call_id for answer in answers]:
        return reply, answers
    made = [f"{given or 'call'}_{number}" for number, given in enumerate(ids)]
    calls = tuple(replace(call, id=one) for call, one in zip(reply.calls, made, strict=True))
    given = [replace(answer, call_id=one) for answer, one in zip(answers, made, strict=True)]
    return replace(reply, calls=calls), given


def _is_sound(calls: tuple[ToolCall, ...], answers: Sequence[Tool], names: re.Pattern[str]) -> bool:
    """Whether the exchange is valid already. Hot: checked for every exchange of every run."""
    if len(answers) != len(calls) or (len(calls) > 1 and len({call.id for call in calls}) != len(calls)):
        return False
    for call, answer in zip(calls, answers, strict=True):
        if not call.id or call.id != answer.call_id or call.name != answer.name:
            return False
        if not names.fullmatch(call.name) or not is_object(call.arguments):
            return False
    return True


def with_object_arguments(call: ToolCall) -> ToolCall | None:
    """The call with its arguments repaired to a JSON object; None if that is impossible."""
    if is_object(call.arguments):
        return call
    text = call.arguments.strip()
    found = json_at(text, 0) if text.startswith("{") else None
    if not isinstance(found, FoundJson) or text[found.end :].strip() or not is_object(found.text):
        return None
    return replace(call, arguments=found.text, repairs=call.repairs + found.repairs)


def call_as_text(call: ToolCall | RawCall) -> str:
    """The call as text, for a history that cannot contain the call itself."""
    return f"[called {call.name}: {call.arguments}]"


def _answer_as_text(answer: Tool) -> User:
    text = f"Result of {answer.name}:\n{answer.text}"
    return User(text=text, kind=answer.kind, turn=answer.turn, pinned=answer.pinned)


def system_first(history: History) -> History:
    """The history with later system messages turned into user messages.

    Many templates accept a system message only at the beginning. Clients add reminders later on; moving them to the top
    would change the prompt's prefix each time.
    """
    first = next((n for n, message in enumerate(history) if not isinstance(message, System)), len(history))
    later = (User(text=m.text) if isinstance(m, System) else m for m in history[first:])
    return (*history[:first], *later)


def alternating_history(history: History) -> History:
    """The valid history with adjacent messages of one role joined, for templates that require alternating roles.

    A user message right after a tool's result is joined to the result, because such templates refuse it there too. No
    text is lost or moved up, so the prompt's prefix stays the same. A part that begins with a reply is joined by
    itself, so no other reply may precede it in the whole.
    """
    turns: list[Message] = []
    for message in valid_history(history):
        joined = _joined(turns[-1], message) if turns else None
        if joined is None:
            turns.append(message)
        else:
            turns[-1] = joined
    return tuple(turns)


def _joined(before: Message, message: Message) -> Message | None:
    """The two as one message; None if they stay separate."""
    match before, message:
        case (System(), System()) | (User(), User()) | (Tool(), User()):
            return replace(before, text=paragraphs((before.text, message.text)))
        case Assistant(calls=()), Assistant():
            return replace(message, text=paragraphs((before.text, message.text)))
        case _:
            return None


def paragraphs(texts: Iterable[str]) -> str:
    """The texts that are not empty, with blank lines between them."""
    return "\n\n".join(filter(None, texts))
