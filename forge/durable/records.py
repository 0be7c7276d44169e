"""Records of a durable run in the database: its segments, steps and end."""

import base64
import hashlib
import zlib
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Raw, Struct

from forge.connection import Setup
from forge.errors import ForgeError
from forge.journal.definition import Definition, definition_of
from forge.journal.records import Recorded
from stages.effect import Approved, Fault, Outcome, Rejected, Settled
from stages.events import Stamped
from stages.halt import Cancelled, Halt
from stages.saved import load, save
from stages.state import State

if TYPE_CHECKING:
    from forge.workflow.workflow import Workflow


class Segment(Struct, frozen=True, kw_only=True):
    """The input of a segment, a DBOS workflow in which the run continues from `state`.

    `definition`: digest of the workflow's definition when the run began. `within`: seconds to answer a question.
    `setup`: the first segment's, which the others keep. `heard`: how many messages to the run (`Runs.say`) its model
    has read. `priority`: lower numbers first. `traceparent`: the trace that started the run, or that of its first
    segment; `follows`: the span of the previous segment; both only with telemetry.
    """

    run: str
    number: int = 0
    workflow: str
    definition: str
    state: str
    within: float
    setup: Setup | None = None
    heard: int = 0
    priority: int | None = None
    traceparent: str = ""
    follows: str = ""


class Reached(Struct, frozen=True, kw_only=True, tag="prepared"):
    """The first step of a run: its backend, and the state in which it begins."""

    setup: Setup
    state: Raw
    definition: Definition


class Unreached(Struct, frozen=True, kw_only=True, tag="unreached"):
    """The first step of a run whose backend cannot be reached."""

    fault: Fault


class Performed(Struct, frozen=True, kw_only=True, tag="performed", omit_defaults=True):
    """A step: an effect, as in a journal, and its outcome. `told`: events of inner agents during the step."""

    effect: Recorded
    outcome: Outcome
    told: tuple[Stamped, ...] = ()


class StepCancelled(Struct, frozen=True, kw_only=True, tag="interrupted", omit_defaults=True):
    """A step during which the run was cancelled. `begun`: it may have taken effect. `told` as in `Performed`."""

    effect: Recorded
    begun: bool
    told: tuple[Stamped, ...] = ()


class Begun(Struct, frozen=True, kw_only=True, tag="begun"):
    """The first step of a write: the nonce of the execution that is about to perform it."""

    nonce: str
    effect: Recorded


class Next(Struct, frozen=True, kw_only=True, tag="next", omit_defaults=True):
    """The end of a segment: the run continues in the one with that number.

    `retried`: the run had halted here because its model's server or a person gave no answer, and asks again.
    """

    number: int
    retried: bool = False


class SegmentEnd(Struct, frozen=True, kw_only=True, tag="ended"):
    """The end of a run. Without `halt`, it reached its goal."""

    state: str
    halt: Halt | None = None


ANSWER: msgspec.json.Decoder[Approved | Rejected | Settled] = msgspec.json.Decoder(Approved | Rejected | Settled)
FIRST: msgspec.json.Decoder[Reached | Unreached] = msgspec.json.Decoder(Reached | Unreached)
STEP: msgspec.json.Decoder[Performed | StepCancelled] = msgspec.json.Decoder(Performed | StepCancelled)
BEGUN = msgspec.json.Decoder(Begun)
OUTPUT: msgspec.json.Decoder[Next | SegmentEnd] = msgspec.json.Decoder(Next | SegmentEnd)
SEGMENT = msgspec.json.Decoder(Segment)


def how_ended(halt: Halt | None) -> Literal["completed", "halted", "cancelled"]:
    """The state of a run that ended with this halt."""
    match halt:
        case None:
            return "completed"
        case Cancelled():
            return "cancelled"
        case _:
            return "halted"


def json_text(value: Struct) -> str:
    """The value as JSON text."""
    return msgspec.json.encode(value).decode()


def packed(state: State) -> str:
    """The saved state as compressed text."""
    return base64.b64encode(zlib.compress(save(state))).decode()


def unpacked(text: str) -> State:
    """The state. ForgeError if this version of forge cannot resume it."""
    try:
        return load(zlib.decompress(base64.b64decode(text)))
    except ValueError as error:
        raise ForgeError(str(error)) from None


def segment_id(run: str, number: int) -> str:
    """The segment's id in DBOS."""
    return f"{run}:{number}"


def queue_of(workflow: str) -> str:
    """The queue of that workflow's runs: only workers that have the workflow take from it."""
    return f"forge.{workflow}"


def definition_digest(workflow: "Workflow") -> str:
    """The digest of the workflow's definition."""
    return hashlib.sha256(msgspec.json.encode(definition_of(workflow), order="deterministic")).hexdigest()[:16]
