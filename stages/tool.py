"""Tools as data: what a model is told of them and what forge must know to run them safely."""

from typing import Literal

from msgspec import Raw, Struct

ToolEffect = Literal["read", "write", "terminal"]
"""What a call does to the world (D9, D12): reads run together, each write alone, a terminal call ends the run."""


class Prerequisite(Struct, frozen=True, kw_only=True):
    """`tool` must have succeeded before; with `match_arg`, with the same value of that argument (seed)."""

    tool: str
    match_arg: str | None = None


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
    """Ask a person before each call (D15)."""
    repeatable: bool = False
    """The same call may be answered differently the next time: a state, a queue. Repeating it is no mistake (D6)."""
