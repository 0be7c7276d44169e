"""Tools as data: what a model is told of them and what forge must know to run them safely."""

from typing import Literal

from msgspec import Raw, Struct

ToolEffect = Literal["read", "write", "terminal"]
"""What a call does to the world: reads run together, each write alone, a terminal call ends the run."""

RESULT_LIMIT = 20_000
"""Characters of one result that the model is shown, where the tool does not say otherwise."""


class Prerequisite(Struct, frozen=True, kw_only=True):
    """`tool` must have succeeded before; with `match_arg`, with the same value of that argument."""

    tool: str
    match_arg: str | None = None


class Grounded(Struct, frozen=True, kw_only=True):
    """The argument's value must have been seen: in what the user said or in an earlier result.

    With `sources`, in a result of one of those tools, and nowhere else.
    """

    argument: str
    sources: tuple[str, ...] = ()


class Calculated(Struct, frozen=True, kw_only=True):
    """The model writes the argument, a number, as a calculation; the function is given the result.

    `number` is the JSON Schema that the result must fit: what the argument's own was.
    """

    argument: str
    number: Raw = Raw(b'{"type":"number"}')


class ToolSpec(Struct, frozen=True, kw_only=True):
    """A tool without its function. `parameters` is a JSON Schema of type object, as JSON text."""

    name: str
    description: str
    parameters: Raw
    effect: ToolEffect = "write"
    prerequisites: tuple[Prerequisite, ...] = ()
    timeout: float | None = None
    """Seconds that one call may take; None: as long as it takes."""
    approval: bool = False
    """Ask a person before each call."""
    repeatable: bool = False
    """The same call may be answered differently the next time: a state, a queue. Repeating it is no mistake."""
    idle_timeout: float | None = None
    """Seconds that may pass without a sign of life; a tool gives one by each value that it yields."""
    max_parallel: int | None = None
    """So many calls of a reading tool run at the same time, at most; None: as many as of all together."""
    result_limit: int = RESULT_LIMIT
    """Characters of one result that the model is shown; the rest is cut with a marker."""
    idempotent: bool = False
    """Doing it twice is doing it once: a call that a crash left in doubt is simply made again."""
    grounded: tuple[Grounded, ...] = ()
    calculated: tuple[Calculated, ...] = ()

    @property
    def retriable(self) -> bool:
        """Whether a call may be made again where nobody knows if it was made."""
        return self.effect == "read" or self.idempotent
