"""Caller: what a tool is told of the run that calls it, where it makes model calls of its own."""

from collections.abc import Callable

from msgspec import Struct

from forge.interpreters import Asker
from stages.effect import Budget, Paused, Spending


class Caller(Struct, frozen=True, kw_only=True):
    """The type of a parameter that forge fills in, unseen by the model: the run that calls the tool, and its call.

    The tool may spend `budget` and reports what it took by `spend`. To ask the user something, it returns a `Paused`;
    with the answer it is called again, and `continued` is that. `ask` decides on calls that need approval, `journal`
    is the journal of the run; both None: there is none.
    """

    call_id: str
    budget: Budget
    spend: Callable[[Spending], None]
    continued: Paused | None = None
    ask: Asker | None = None
    journal: str | None = None
