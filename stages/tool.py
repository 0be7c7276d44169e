"""Tools as data: what a model is told of them, and what forge must know to run them safely."""

from typing import Literal

from msgspec import UNSET, Raw, Struct, UnsetType

ToolEffect = Literal["read", "write", "terminal"]
"""What a call does to the world: reads run concurrently, each write alone, a terminal call ends the run."""

RESULT_LIMIT = 20_000
"""Characters of one result that the model is shown, unless the tool says otherwise."""


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
    """Maximum seconds of one call; None: no maximum."""
    approval: bool = False
    """Ask a person before each call."""
    repeatable: bool = False
    """The same call may return something else the next time (a state, a queue): repeating it is no mistake."""
    idle_timeout: float | None = None
    """Maximum seconds without a sign of life; a tool gives one with each value that it yields."""
    max_parallel: int | None = None
    """Maximum number of concurrent calls of a reading tool; None: only the run's own maximum."""
    result_limit: int = RESULT_LIMIT
    """Characters of one result that the model is shown; the rest is cut with a marker."""
    idempotent: bool = False
    """Safe to retry: a call whose outcome is unknown after a crash is simply made again."""
    delegates: bool = False
    """It spends of the run's own budget, as an agent does that is a tool."""
    checked: Raw | UnsetType = UNSET
    """The schema that arguments are checked against where `parameters` cannot be; left out: `parameters`."""
    grounded: tuple[Grounded, ...] = ()
    calculated: tuple[Calculated, ...] = ()

    @property
    def retriable(self) -> bool:
        """Whether a call whose outcome is unknown may be retried."""
        return self.effect == "read" or self.idempotent


RECALL = ToolSpec(
    name="recall",
    description="Read again a result that was truncated or removed to save context.",
    parameters=Raw(
        b'{"type":"object","properties":{"call_id":{"type":"string","description":"The id that stands where the result '
        b'was cut, like call_000000001."},"offset":{"type":"integer","minimum":0,"default":0,"description":"Where to '
        b'begin, in characters."}},"required":["call_id"],"additionalProperties":false}'
    ),
    effect="read",
)
"""A workflow has recall when this very tool is among its rules' tools."""
