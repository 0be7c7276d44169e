"""Facts: what is remembered beyond a session, and how a model is shown it: as data, never as instructions."""

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from stages.message import History, Kind, User
from stages.nudges.context import remembered


class Fact(Struct, frozen=True, kw_only=True):
    """A remembered fact. `id` tells it from all others of its store, `at` is when it was kept, in Unix seconds."""

    id: int
    text: str
    at: float = 0.0


def facts_message(facts: Iterable[Fact], history: History) -> User | None:
    """The message that shows the model the facts that the history does not show yet; None: there is none.

    It belongs right before the user's next message: what was sent before it stays as it is, so a server's prefix cache
    holds. Each fact is a JSON string on a line of its own in which `<` and `>` are escaped, so no text can end the
    marking or add a line to it.
    """
    shown = {line for m in history if isinstance(m, User) and m.kind is Kind.REMEMBERED for line in m.text.split("\n")}
    lines = list(dict.fromkeys(_line(fact) for fact in facts))
    new = [line for line in lines if line not in shown]
    return User(text=remembered(new), kind=Kind.REMEMBERED) if new else None


def _line(fact: Fact) -> str:
    return "- " + msgspec.json.encode(fact.text).decode().replace("<", "\\u003c").replace(">", "\\u003e")
