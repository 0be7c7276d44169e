"""Approval at a terminal, in runs and chats: how a call is shown, and what the typed answer means."""

import json
import re
from collections.abc import Iterator

import msgspec
from msgspec import Struct
from rich.cells import chop_cells

from forge.callbacks import Answer
from forge.cli.chat.faces import Face
from forge.cli.console import LabelledText, escaped
from stages.effect import Approved, Ask, Rejected, Settled, Unanswered
from stages.message import ToolCall

# Show every argument in full, so that nothing runs that the person could not read.

_UNSEEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Characters that are invisible, or change how others look."""


def question_lines(effect: Ask, width: int) -> Iterator[str]:
    """The lines of the question, with every argument in full, wrapped to `width` cells."""
    if unsure := effect.in_doubt:
        why = f" ({visible(unsure.why)})" if unsure.why else ""
        yield from chop_cells(f"This was started before, and its outcome is unknown{why}:", width)
        yield from _lines(unsure, width)
    if effect.problem:
        yield from chop_cells(f"These arguments are wrong: {visible(effect.problem)}", width)
    if unsure is None or unsure.arguments != effect.call.arguments:
        yield "This is about to run:" if unsure is None else "This is about to run now:"
        yield from _lines(effect.call, width)


def _lines(call: ToolCall, width: int) -> Iterator[str]:
    whole = msgspec.json.format(call.arguments, indent=2)
    for line in f"{visible(call.name)} {whole}".split("\n"):
        yield from chop_cells(visible(line), width)


def visible(text: str) -> str:
    """The text with invisible characters, and those that change how others look, escaped."""
    return "".join(c if c.isprintable() and not _UNSEEN.match(c) else escaped(c) for c in text)


# What the typed answer means.


class Decision(Struct, frozen=True):
    """A person's decision about a call; `always` also applies to later calls of the tool in this session."""

    answer: Answer
    always: bool = False


class EditWanted(Struct, frozen=True):
    """The person wants to edit the arguments; `text` is the initial text."""

    text: str


_YES = {"y", "yes"}
_NO = {"", "n", "no", "q"}
_LINE = 70
"""Maximum length of arguments to edit on one line."""


def choices(question: Ask) -> str:
    """The possible answers, in one line."""
    if question.in_doubt is not None:
        return "[h] it happened  [n] it did not happen  [y] run it anyway  [Enter] leave it open"
    return "[y] yes  [n] no, or type why not  [e] edit  [a] always in this session"


def decided(question: Ask, typed: str | None) -> Decision | EditWanted:
    """The meaning of the typed answer; anything but a yes is a no with that reason. None: nobody is there."""
    word, digest = (typed or "").strip().lower(), question.digest
    if typed is None:
        return Decision(Unanswered(digest=digest, reason="nobody answered in the terminal"))
    if word in _YES:
        return Decision(Approved(digest=digest))
    if question.in_doubt is not None:
        if word in {"h", "n"}:
            return Decision(Settled(digest=digest, happened=word == "h"))
        return Decision(Rejected(digest=digest, reason="the user left it open"))
    if word in {"a", "always"}:
        return Decision(Approved(digest=digest), always=True)
    if word in {"e", "edit"}:
        # Short arguments go on one line; non-ASCII characters are escaped.
        found = json.loads(question.call.arguments)
        line = json.dumps(found)
        return EditWanted(line if len(line) <= _LINE else json.dumps(found, indent=2))
    reason = "the user said no" if word in _NO else f"the user said no: {(typed or '').strip()}"
    return Decision(Rejected(digest=digest, reason=reason))


# Asking the question, a screen at a time.


class Approver:
    """An `ask` that asks the person at a face. `always` are tools approved for the session."""

    def __init__(self, face: Face) -> None:
        self._face = face
        self._typed = ""
        self.always = set[str]()

    async def __call__(self, question: Ask) -> Answer:
        """The person's decision about a call."""
        tool = question.call.name
        if tool in self.always and question.in_doubt is None:
            self._face.show(LabelledText("allowed", "always in this session", "", "green"))
            return Approved(digest=question.digest)
        width, height = self._face.size()
        lines = tuple(question_lines(question, width))
        found = decided(question, await self._answer(question, lines, height))
        if isinstance(found, EditWanted):
            prompt = "change the arguments; an empty line is a no"
            text = await self._face.answer((), prompt, self._typed if question.problem else found.text)
            self._typed = (text or "").strip()
            no = Rejected(digest=question.digest, reason="the user said no")
            found = Decision(Approved(digest=question.digest, edited=self._typed) if self._typed else no)
        if found.always:
            self.always.add(tool)
        return found.answer

    async def _answer(self, question: Ask, lines: tuple[str, ...], height: int) -> str | None:
        """The answer to the question, shown a screen at a time; empty if the person stops reading.

        Empty is a no, or leaves an unknown outcome open: it does not say whether the call took effect.
        """
        stop = "no" if question.in_doubt is None else "leave it open"
        while len(lines) > height:
            left = len(lines) - height
            typed = await self._face.answer(lines[:height], f"{left} more lines: [Enter] to continue, [n] {stop}")
            if typed is None or typed.strip():
                return typed and ""
            lines = lines[height:]
        return await self._face.answer(lines, choices(question))
