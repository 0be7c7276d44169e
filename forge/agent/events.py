"""Events of an agent: what a user is shown of its work, each with its run, turn, sequence and time."""

from typing import Literal

from msgspec import Struct

from stages.effect import Usage
from stages.halt import Halt
from stages.message import Kind, Status
from stages.state import Compaction, Ending
from stages.wire.deltas import Delta


class Stamped(Struct, frozen=True, kw_only=True):
    """What every event has.

    `run` tells the messages apart; `turn` counts the model calls of the conversation, `sequence` the agent's events,
    from 1; `time` is in Unix seconds.
    """

    run: str = ""
    turn: int = 0
    sequence: int = 0
    time: float = 0.0


class TurnStartEvent(Stamped, frozen=True, kw_only=True, tag="turn_start"):
    """The agent begins to work on the message; empty: it continues with one that was interrupted."""

    message: str


class ModelCallStartEvent(Stamped, frozen=True, kw_only=True, tag="model_call_start"):
    """The model is asked. `prompt_tokens` is an estimate; `context_tokens` 0: not known; both 0 for a summary."""

    purpose: Literal["turn", "summary"] = "turn"
    prompt_tokens: int = 0
    context_tokens: int = 0
    calls_left: int = 0


class DeltaEvent(Stamped, frozen=True, kw_only=True, tag="delta"):
    """The reply grew (`stages.wire.deltas`). What it adds up to follows as events of its own."""

    delta: Delta


class ModelCallEndEvent(Stamped, frozen=True, kw_only=True, tag="model_call_end"):
    """The model's reply is there; with an empty `finish`, none came, or none that a turn goes on with."""

    finish: str = ""
    usage: Usage | None = None


class ThinkingEvent(Stamped, frozen=True, kw_only=True, tag="thinking"):
    """What the model thought before it replied."""

    text: str


class RemarkEvent(Stamped, frozen=True, kw_only=True, tag="remark"):
    """What the model said beside its calls."""

    text: str


class ToolCallEvent(Stamped, frozen=True, kw_only=True, tag="tool_call"):
    """A call passed every check. A ToolResultEvent with the same id follows, whatever happens."""

    call_id: str
    name: str
    arguments: str


class ApprovalStartEvent(Stamped, frozen=True, kw_only=True, tag="approval_start"):
    """A person is asked about the call. `problem`: what is wrong with the arguments that the person gave."""

    call_id: str
    problem: str = ""


class ApprovalEndEvent(Stamped, frozen=True, kw_only=True, tag="approval_end"):
    """The person has answered, or was not there. `arguments` are those that the call runs with."""

    call_id: str
    approved: bool
    arguments: str = ""


class ToolProgressEvent(Stamped, frozen=True, kw_only=True, tag="tool_progress"):
    """A running tool has yielded something."""

    call_id: str
    text: str


class ToolResultEvent(Stamped, frozen=True, kw_only=True, tag="tool_result"):
    """What came of a call, as the model is told."""

    call_id: str
    name: str
    status: Status
    text: str


class CorrectionEvent(Stamped, frozen=True, kw_only=True, tag="correction"):
    """The model was corrected."""

    kind: Kind
    text: str


class WarningEvent(Stamped, frozen=True, kw_only=True, tag="warning"):
    """The model is told of a limit that is near."""

    kind: Kind
    text: str


class SteeredEvent(Stamped, frozen=True, kw_only=True, tag="steered"):
    """The model is given what the user said while it worked."""

    text: str


class CompactionEvent(Stamped, frozen=True, kw_only=True, tag="compaction"):
    """The history was shortened."""

    compaction: Compaction


class ChildEvent(Stamped, frozen=True, kw_only=True, tag="child"):
    """Something happened in the work of another agent, of the name `agent`, that the call asked (`agent_tool`).

    `event` is numbered and timed as that agent's own; it may be a ChildEvent itself.
    """

    agent: str
    call_id: str
    event: "AgentEvent"


class MessageEvent(Stamped, frozen=True, kw_only=True, tag="message"):
    """The agent's answer to the user: its words, its result or its question, whichever way it was given."""

    text: str
    suggestions: tuple[str, ...] = ()


class ErrorEvent(Stamped, frozen=True, kw_only=True, tag="error"):
    """Why there is no answer, as a sentence."""

    text: str


class TurnCompleteEvent(Stamped, frozen=True, kw_only=True, tag="turn_complete"):
    """The work on the message is over: an outcome, or a halt; neither, if a function of the program's own failed."""

    outcome: Ending | None = None
    halt: Halt | None = None


AgentEvent = (
    TurnStartEvent
    | ModelCallStartEvent
    | DeltaEvent
    | ModelCallEndEvent
    | ThinkingEvent
    | RemarkEvent
    | ToolCallEvent
    | ApprovalStartEvent
    | ApprovalEndEvent
    | ToolProgressEvent
    | ToolResultEvent
    | CorrectionEvent
    | WarningEvent
    | SteeredEvent
    | CompactionEvent
    | ChildEvent
    | MessageEvent
    | ErrorEvent
    | TurnCompleteEvent
)
