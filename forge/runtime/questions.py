"""Questions: the user's `ask` function, with its answers checked against the question."""

import inspect

from msgspec.structs import replace

from forge.callbacks import ADVICE, Answer, Asker, placed_async
from forge.errors import CallbackError
from stages.effect import Approved, Ask, Rejected, Settled, Unanswered
from stages.repair.decoding import sound

_PLACE = "ask"


def asking(ask: Asker) -> Asker:
    """The function, raising CallbackError if it raises or its answer does not fit the question."""

    async def answered(question: Ask) -> object:
        answer: object = ask(question)
        if inspect.isawaitable(answer):
            return await answer
        sentence = "is no async function; define it with `async def`, so that the run can be cancelled while it waits"
        raise CallbackError(f"{_PLACE}, {_name(ask)}, {sentence}. {ADVICE}", _PLACE)

    answer = placed_async(answered, _PLACE, ask)

    async def asked(question: Ask) -> Answer:
        returned = await answer(question)
        if isinstance(returned, Approved | Rejected | Settled | Unanswered):
            wrong = _mistake(question, returned)
            if not wrong:
                # The answer with valid Unicode: a terminal may pass on halves of surrogate pairs.
                match returned:
                    case Rejected() | Unanswered():
                        return replace(returned, reason=sound(returned.reason))
                    case Settled():
                        return replace(returned, result=sound(returned.result))
                    case Approved():
                        return returned
        else:
            wrong = f"returned {repr(returned)[:200]}, which is no answer; return {_WAYS}"
        raise CallbackError(f"{_PLACE}, {_name(ask)}, {wrong}. {ADVICE}", _PLACE)

    return asked


_WAYS = (
    "Approved(digest=question.digest), Rejected(digest=question.digest, reason=…) or, if nobody can decide, "
    "Unanswered(digest=question.digest, reason=…)"
)


def _mistake(question: Ask, answer: Answer) -> str:
    """What is wrong with the answer; empty if it is fine."""
    kind = type(answer).__name__
    if answer.digest != question.digest:
        return (
            f"returned {kind} with the digest {str(answer.digest)[:80]!r}, which is that of another question than the "
            f"one about {question.call.name}; write digest=question.digest"
        )
    if isinstance(answer, Settled) and question.in_doubt is None:
        return f"returned Settled, but no call of {question.call.name} has an unknown outcome; return {_WAYS}"
    edited: object = answer.edited if isinstance(answer, Approved) else None
    if not isinstance(edited, str | None):
        return f"returned Approved with edited={repr(edited)[:80]}; it must be the arguments as JSON text, or None"
    words = getattr(answer, "result" if isinstance(answer, Settled) else "reason", "")
    if not isinstance(words, str):
        return f"returned {kind} with {repr(words)[:80]} as text; it must be a string"
    return ""


def _name(ask: object) -> str:
    return str(getattr(ask, "__qualname__", type(ask).__name__))
