"""What the rows of a durable run hold: its segments, its steps, its end."""

import base64
import hashlib
import zlib
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Raw, Struct

from forge.connection import Setup
from forge.errors import ForgeError
from forge.journal.records import Recorded
from forge.journal.workflow_changes import Definition, definition_of
from stages.effect import Approved, Fault, Outcome, Rejected, Settled
from stages.events import Stamped
from stages.halt import Cancelled, Halt
from stages.saved import load, save
from stages.state import State

if TYPE_CHECKING:
    from forge.workflow.workflow import Workflow


class Segment(Struct, frozen=True, kw_only=True):
    """What a segment of a run is enqueued with: the run goes on from `state`, in a workflow of DBOS of its own.

    `definition` is the digest of what the workflow said when the run began. `within`: seconds that a person has to
    answer a question. `setup` is the first segment's, which all others keep. `heard`: how many of the messages to the
    run (`Runs.say`) its model was given. `traceparent` is the trace of who started the run, or of its first segment,
    and `follows` the span of the segment before; both only where telemetry is switched on.
    """

    run: str
    number: int = 0
    workflow: str
    definition: str
    state: str
    within: float
    setup: Setup | None = None
    heard: int = 0
    traceparent: str = ""
    follows: str = ""


class Prepared(Struct, frozen=True, kw_only=True, tag="prepared"):
    """The first step of a run: the backend that it has, and the state that it begins in."""

    setup: Setup
    state: Raw
    definition: Definition


class Unreached(Struct, frozen=True, kw_only=True, tag="unreached"):
    """The first step of a run whose backend cannot be reached."""

    fault: Fault


class Performed(Struct, frozen=True, kw_only=True, tag="performed", omit_defaults=True):
    """A step: an effect, as in a journal, and its outcome. `told`: what happened meanwhile in agents within the run."""

    effect: Recorded
    outcome: Outcome
    told: tuple[Stamped, ...] = ()


class Interrupted(Struct, frozen=True, kw_only=True, tag="interrupted", omit_defaults=True):
    """A step during which the run was cancelled; `begun`: it may have taken effect. `told` as in `Performed`."""

    effect: Recorded
    begun: bool
    told: tuple[Stamped, ...] = ()


class Begun(Struct, frozen=True, kw_only=True, tag="begun"):
    """The first step of a write: the execution of the segment, by its nonce, that is about to perform it."""

    nonce: str
    effect: Recorded


class Next(Struct, frozen=True, kw_only=True, tag="next"):
    """The end of a segment: the run goes on in the one with that number."""

    number: int


class RunEnd(Struct, frozen=True, kw_only=True, tag="ended"):
    """The end of a run: without `halt`, its goal."""

    state: str
    halt: Halt | None = None


ANSWER: msgspec.json.Decoder[Approved | Rejected | Settled] = msgspec.json.Decoder(Approved | Rejected | Settled)
FIRST: msgspec.json.Decoder[Prepared | Unreached] = msgspec.json.Decoder(Prepared | Unreached)
STEP: msgspec.json.Decoder[Performed | Interrupted] = msgspec.json.Decoder(Performed | Interrupted)
BEGUN = msgspec.json.Decoder(Begun)
OUTPUT: msgspec.json.Decoder[Next | RunEnd] = msgspec.json.Decoder(Next | RunEnd)
SEGMENT = msgspec.json.Decoder(Segment)


def how_ended(halt: Halt | None) -> Literal["completed", "halted", "cancelled"]:
    """The state of a run that ended with that."""
    match halt:
        case None:
            return "completed"
        case Cancelled():
            return "cancelled"
        case _:
            return "halted"


def written(value: Struct) -> str:
    """The value as JSON text."""
    return msgspec.json.encode(value).decode()


def packed(state: State) -> str:
    """The saved state as a short text."""
    return base64.b64encode(zlib.compress(save(state))).decode()


def unpacked(text: str) -> State:
    """The state. ForgeError for one that this forge cannot go on from."""
    try:
        return load(zlib.decompress(base64.b64decode(text)))
    except ValueError as error:
        raise ForgeError(str(error)) from None


def segment_id(run: str, number: int) -> str:
    """The id that DBOS knows the segment by."""
    return f"{run}:{number}"


def queue_of(workflow: str) -> str:
    """The queue of that workflow's runs: only workers that have the workflow take from it."""
    return f"forge.{workflow}"


def definition_digest(workflow: "Workflow") -> str:
    """The digest of what the workflow says."""
    return hashlib.sha256(msgspec.json.encode(definition_of(workflow), order="deterministic")).hexdigest()[:16]
