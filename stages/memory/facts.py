"""Facts: what is remembered beyond a session, and how a model is shown it: as data, never as instructions."""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from stages.message import History, Kind, User, turn_of
from stages.nudges.context import remembered
from stages.nudges.quoting import as_data
from stages.state import State


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


def with_facts(state: State, facts: Iterable[Fact]) -> State:
    """The state with the message that shows the facts right before its last request, or at its end if that is past."""
    history = state.history
    last = history[-1] if history else None
    at = len(history) - (isinstance(last, User) and last.kind is Kind.USER_INPUT)
    message = facts_message(facts, history[:at])
    if message is None:
        return state
    return state.reshape((*history[:at], replace(message, turn=turn_of(last) if last else 0), *history[at:]))


def _line(fact: Fact) -> str:
    return f"- {as_data(fact.text)}"
