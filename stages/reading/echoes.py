"""Echoes: texts for the user that only repeat what forge has told the model.

A small model that is stuck repeats the last thing it was told, which may be a correction. The rules:

 1. A text that begins with a mark of forge's, such as `[ToolError]`, is an echo, unless somebody else wrote of that
    mark: the user who asks what it means, a log that a tool has read.
 2. So is a text that shares a run of words, 40 characters or longer, with a correction or a note.
 3. Words that somebody else said first do not count as forge's: corrections quote values, and the model's own words.
    Names of tools never count; the words of a user's own guard or check count as the user's.
"""

import re
from collections.abc import Collection, Iterator

from stages.message import NUDGES, WARNINGS, Assistant, History, Message, System, Tool, User, mark_of
from stages.state import State

_LONG = 40
"""Minimum characters of a run of words; shorter ones occur by chance."""

_USERS = "[Incomplete]"
"""The mark of corrections whose words are those of a user's own check."""

_WORD = re.compile(r"\w+")


def is_echo(text: str, state: State, tools: Collection[str]) -> bool:
    """Whether the text only repeats what forge has told the model. `tools` are the names of the tools.

    Takes time linear in the text and the corrections; the rest of the history is read only if they share something.
    """
    return _begins_with_a_mark(text, state.history) or _repeats(text, state, tools)


def _begins_with_a_mark(text: str, history: History) -> bool:
    mark = mark_of(text.lstrip())
    return bool(mark) and not any(mark in _of_others(m) for m in history if not isinstance(m, Assistant))


def _repeats(text: str, state: State, tools: Collection[str]) -> bool:
    names = {word for name in tools for word in _words(name, ())}
    runs = {*_runs(_words(text, names))}
    told = (*state.history, *state.asked.notes) if runs else ()
    for place, message in enumerate(told):
        said = _of_forge(message)
        if said and (shared := runs.intersection(_runs(_words(said, names)))):
            others = [" ".join(_words(_of_others(one), names)) for one in told[:place]]
            if not all(any(run in said for said in others) for run in shared):
                return True
    return False


def _words(text: str, dropped: Collection[str]) -> list[str]:
    return [word for word in _WORD.findall(text.casefold()) if word not in dropped]


def _runs(words: list[str]) -> Iterator[str]:
    """For each word, the shortest run of words from there on that is long enough."""
    end, size = 0, -1
    for start, word in enumerate(words):
        while end < len(words) and size < _LONG:
            size += 1 + len(words[end])
            end += 1
        if size < _LONG:
            return
        yield " ".join(words[start:end])
        size -= 1 + len(word)


def _of_forge(message: Message) -> str:
    """What forge says in the message, in its own words."""
    match message:
        case User(kind=kind, text=text) if kind in NUDGES or kind in WARNINGS:
            return text
        case Tool(kind=kind, text=text) if kind in NUDGES and mark_of(text) not in ("", _USERS):
            return text
        case _:
            return ""


def _of_others(message: Message) -> str:
    """What others say in the message."""
    match message:
        case System(text=text):
            return text
        case Assistant(text=text, calls=calls):
            return " ".join((text, *(call.arguments for call in calls)))
        case User(text=text):
            return "" if _of_forge(message) else text
        case Tool(text=text):
            return "" if _of_forge(message) else text.removeprefix(mark_of(text))
