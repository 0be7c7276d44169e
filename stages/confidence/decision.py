"""A decision that is being taken again: what was asked for it so far, kept in the state until it is settled."""

from typing import Literal

from msgspec import Struct

from stages.phase import Vetted


class Decision(Struct, frozen=True, kw_only=True, gc=False):
    """An unsure decision: at which step of `WhenUnsure.then` it is, and what came of it.

    `asks` is what the next request is for: the calls again, a `thought` before them, or the calls of the larger model.
    `votes` are the answers of a vote so far. `length` is that of the history when the decision was put off: once the
    history is another, this is no longer open.
    """

    step: int
    length: int
    asks: Literal["calls", "thought", "larger"] = "calls"
    thought: str = ""
    votes: tuple[Vetted, ...] = ()
