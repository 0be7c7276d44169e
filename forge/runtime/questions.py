"""Questions: the user's `ask` function, with its answers checked against the question."""

import inspect
from datetime import date, time, timedelta
from decimal import Decimal
from uuid import UUID

import msgspec

from forge.callbacks import ADVICE, Answer, Asker, failed
from forge.errors import CallbackError
from stages.effect import Approved, Ask, Rejected, Settled, Unanswered

_PLACE = "ask"

_NO_TEXT = (bytes, bytearray, memoryview, date, time, timedelta, UUID, Decimal)
"""Values that would be written as text, and then pass for one. A datetime is a date."""

_WAYS = (
    "Approved(digest=question.digest), Rejected(digest=question.digest, reason=…) or, if nobody can decide, "
    "Unanswered(digest=question.digest, reason=…)"
)


def asking(ask: Asker) -> Asker:
    """The function, raising CallbackError if it raises or its answer does not fit the question."""

    async def asked(question: Ask) -> Answer:
        try:
            answer: object = ask(question)
            returned = await answer if inspect.isawaitable(answer) else None
        except CallbackError:
            raise
        except Exception as error:
            raise failed(ask, _PLACE, error) from error
        if not inspect.isawaitable(answer):
            wrong = "is no async function; define it with `async def`, so that the run can be cancelled while it waits"
        elif not isinstance(returned, Approved | Rejected | Settled | Unanswered):
            wrong = f"returned {repr(returned)[:200]}, which is no answer; return {_WAYS}"
        elif returned.digest != question.digest:
            wrong = (
                f"returned {type(returned).__name__} with the digest {str(returned.digest)[:80]!r}, which is that of "
                f"another question than the one about {question.call.name}; write digest=question.digest"
            )
        elif isinstance(returned, Settled) and question.in_doubt is None:
            wrong = f"returned Settled, but no call of {question.call.name} has an unknown outcome; return {_WAYS}"
        else:
            try:
                return msgspec.convert(msgspec.to_builtins(returned, builtin_types=_NO_TEXT), type(returned))
            except (TypeError, msgspec.ValidationError) as error:
                edited = "; edited must be the arguments as JSON text" if isinstance(returned, Approved) else ""
                wrong = f"returned {repr(returned)[:200]}: {error}{edited}"
        raise CallbackError(f"{_PLACE}, {getattr(ask, '__qualname__', type(ask).__name__)}, {wrong}. {ADVICE}", _PLACE)

    return asked
