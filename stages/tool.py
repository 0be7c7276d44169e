"""Tools as data: what a model is told about them, and what forge must know to run them safely."""

from typing import Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from stages.options import AtLeastOne, Options, Seconds

ToolEffect = Literal["read", "write", "terminal"]
"""What a call does: reads run concurrently, each write runs alone, a terminal call ends the run.

A terminal tool may change something too, so a rule about changes must ask for `!= "read"`.
"""

RESULT_LIMIT = 20_000
"""Default maximum characters of a result that the model is shown."""


class Prerequisite(Options, frozen=True, kw_only=True):
    """`tool` must have succeeded before, with the same value of the argument `match_arg`, if one is named."""

    tool: str
    match_arg: str | None = None


class Grounded(Struct, frozen=True, kw_only=True):
    """The argument's value must have been seen: in a message of the user or in an earlier result.

    With `sources`, only results of these tools count.
    """

    argument: str
    sources: tuple[str, ...] = ()


class Calculated(Struct, frozen=True, kw_only=True):
    """A number that the model must write as a calculation; the tool's function receives the result.

    `number` is the JSON Schema of the result: the argument's original schema.
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
    timeout: Seconds | None = None
    """Maximum seconds of a call; None: no maximum."""
    approval: bool = False
    """Ask a person before each call."""
    repeatable: bool = False
    """The same call may return something else the next time (a status, a queue), so repeating it is not a mistake."""
    idle_timeout: Seconds | None = None
    """Maximum seconds between two values that the tool yields."""
    max_parallel: AtLeastOne | None = None
    """Maximum concurrent calls of a reading tool; None: only the run's maximum applies."""
    result_limit: AtLeastOne = RESULT_LIMIT
    """Maximum characters of a result that the model is shown; the rest is replaced by a marker."""
    idempotent: bool = False
    """Safe to retry: a call whose outcome is unknown after a crash is repeated."""
    delegates: bool = False
    """It spends from the run's own budget, as an agent used as a tool does."""
    checked: Raw | UnsetType = UNSET
    """The schema to check arguments against, if it is not `parameters`, which is what the model sees."""
    grounded: tuple[Grounded, ...] = ()
    calculated: tuple[Calculated, ...] = ()

    @property
    def retriable(self) -> bool:
        """Whether a call whose outcome is unknown may be retried."""
        return self.effect == "read" or self.idempotent

    @property
    def properties(self) -> dict[str, Raw]:
        """The schema of each parameter, in the order of declaration. DecodeError for a schema without a valid form."""
        return _schema.decode(self.parameters).properties

    @property
    def required(self) -> tuple[str, ...]:
        """The names of the parameters that a call must have."""
        return msgspec.json.decode(_schema.decode(self.parameters).required, type=tuple[str, ...])

    @property
    def optional(self) -> frozenset[str]:
        """The names of the other parameters."""
        return frozenset(self.properties).difference(self.required)


class _Schema(Struct):
    properties: dict[str, Raw] = {}
    required: Raw = Raw(b"[]")


_schema = msgspec.json.Decoder(_Schema)


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
"""The tool that returns cut results (`stages.view.recall`). A workflow has recall if its rules have this tool."""

RESPOND = "respond"
"""The tool with which a model answers in words if plain text is not an answer (`Rules.on_text`)."""
