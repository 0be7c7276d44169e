"""Approval in a chat: what a typed answer means, and the tools that may run for the rest of the session."""

import json

from msgspec import Struct

from forge.interpreters import Answer
from stages.effect import Approved, Ask, Rejected, Settled, Unanswered


class Decision(Struct, frozen=True):
    """A person's decision about a call; `always`: also about the tool's later ones in this session."""

    answer: Answer
    always: bool = False


class EditWanted(Struct, frozen=True):
    """The person wants to change the arguments; `text` is what they begin with."""

    text: str


_YES = {"y", "yes"}
_NO = {"", "n", "no", "q"}


def choices(question: Ask) -> str:
    """What may be answered, in a line."""
    if question.in_doubt is not None:
        return "[h] it happened  [n] it did not happen  [y] run it anyway  [Enter] leave it"
    return "[y] yes  [n] no, or type why not  [e] edit  [a] always in this session"


def decided(question: Ask, typed: str | None) -> Decision | EditWanted:
    """What the typed answer means; anything but a yes is a no, and its words are the reason. None: nobody is there."""
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
        return EditWanted(_to_edit(question.call.arguments))
    reason = "the user said no" if word in _NO else f"the user said no: {(typed or '').strip()}"
    return Decision(Rejected(digest=digest, reason=reason))


def _to_edit(arguments: str) -> str:
    """The arguments on one line, if it is a short one; every character that is not ASCII as an escape."""
    found = json.loads(arguments)
    line = json.dumps(found)
    return line if len(line) <= _LINE else json.dumps(found, indent=2)


_LINE = 70


def edited(question: Ask, text: str | None) -> Decision:
    """The decision after an edit: the call with those arguments; a no if nothing is left."""
    if text is None or not text.strip():
        return Decision(Rejected(digest=question.digest, reason="the user said no"))
    return Decision(Approved(digest=question.digest, edited=text.strip()))
