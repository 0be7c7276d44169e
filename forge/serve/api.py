"""The HTTP API: every request and answer as a struct. Pure; docs/served.md has the same as a table.

    POST   /v1/runs                   StartRun → RunView: 202 at once with `background`, else 200 when the run has ended
                                      or waits for a person; with `stream`, the events as below
    GET    /v1/runs                   ?state=&workflow=&conversation=&limit=&cursor= → RunPage, the latest first
    GET    /v1/runs/{id}              RunView
    GET    /v1/runs/{id}/events       text/event-stream of RunEvent; Last-Event-ID or ?after= goes on after that one
    GET    /v1/runs/{id}/journal      application/jsonl, for `forge replay`, `bisect` and `ablate`
    POST   /v1/runs/{id}/answers      Answer → 202 RunView; 201 RunView of the run that goes on, for an InputAnswer
    POST   /v1/runs/{id}/cancel       202 RunView
    POST   /v1/runs/{id}/retry        202 RunView
    POST   /v1/runs/{id}/messages     Steer → 202 Steering
    DELETE /v1/runs/{id}              204, of a run that has ended
    GET    /v1/workflows              WorkflowList
    GET    /healthz /readyz           Health; open to everyone
    GET    /metrics                   Prometheus text
    GET    /openapi.json              OpenAPI 3.1; open to everyone
    GET    / /page/…                  the page; open to everyone

Every error is a Problem, as application/problem+json. With a key file, a request needs `Authorization: Bearer KEY`; a
key has scopes (`read`, `run`, `answer`, `metrics`, `admin`) and sees only its owner's runs, unless it has `admin`.

In the stream each event is `event: TYPE`, `id: EFFECT.NUMBER` and one line `data: JSON`. What has no id is told to
those who listen now, and not again: deltas of a reply while it is written, a tool's progress, and `state`. A `state`
comes first, unless the run has ended, whenever the run's state changes, and last: the one of an ended run ends the
stream. Deltas come only from the process that performs the run; a
reader elsewhere sees whole messages. Where deltas were shown, `model_replied` has all of the text: it replaces them.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct

RunState = Literal["queued", "running", "waiting", "completed", "halted", "cancelled", "failed"]
"""`waiting`: for a person. `halted`: it ended without its goal. `failed`: by a mistake in a program."""

Scope = Literal["read", "run", "answer", "metrics", "admin"]

MOST = 200
"""Maximum runs of a page."""

_Text = Annotated[str, Meta(min_length=1)]


# Requests


class StartRun(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Start a run of a workflow, or of an agent.

    `variables` are those of the workflow's system prompt; a lower `priority` is taken first. With a `conversation`, a
    name of your own, the run goes on from the last one in it, which has to have ended, or begins it.
    """

    workflow: _Text
    message: _Text
    conversation: Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{0,100}$")] = ""
    variables: Mapping[str, str] = {}
    background: bool = False
    stream: bool = False
    priority: Annotated[int, Meta(ge=1, lt=2**31)] | None = None


class ApproveAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="approve"):
    """The call may run as it is."""

    digest: _Text


class EditAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="edit"):
    """The call may run with these arguments, JSON text of an object, which are checked like the model's own."""

    digest: _Text
    arguments: _Text


class RejectAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="reject"):
    """The call may not run."""

    digest: _Text
    reason: str = ""


class SettleAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="settle"):
    """Whether the call in `Question.in_doubt` took effect; `result`: what it returned, if that is known."""

    digest: _Text
    happened: bool
    result: str = ""


class InputAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="input"):
    """What the user says to a run that has ended: another one goes on from there.

    It answers the question that the run has ended with (a NeedsInputOutcome), or is the conversation's next message.
    """

    text: _Text


Answer = ApproveAnswer | EditAnswer | RejectAnswer | SettleAnswer | InputAnswer


class Steer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something to say to a run under way: the model reads it with the results of its next tools."""

    text: _Text


# Runs


class CallView(Struct, frozen=True, kw_only=True):
    """A tool call. `arguments` is the JSON text of an object, so that no reader rounds a number in it.

    `origin`: where the call was found (`native`: the server's own field); `repairs` names what was repaired.
    """

    id: str
    name: str
    arguments: str
    origin: str = "native"
    repairs: tuple[str, ...] = ()


class Question(Struct, frozen=True, kw_only=True):
    """What a waiting run asks: may `call` run? An answer names the `digest`.

    `in_doubt`: an earlier call whose outcome is unknown; it is answered with a SettleAnswer. `problem`: what is wrong
    with the arguments that a person gave before. `until`: when the question closes.
    """

    digest: str
    call: CallView
    in_doubt: CallView | None = None
    problem: str = ""
    until: str = ""


class CompletedOutcome(Struct, frozen=True, kw_only=True, tag="completed"):
    """The terminal tool's return value."""

    tool: str
    value: Raw


class SaidOutcome(Struct, frozen=True, kw_only=True, tag="said"):
    """An answer in words."""

    text: str


class NeedsInputOutcome(Struct, frozen=True, kw_only=True, tag="needs_input"):
    """A question to the user, answered with an InputAnswer."""

    question: str
    suggestions: tuple[str, ...] = ()


class HandOffOutcome(Struct, frozen=True, kw_only=True, tag="hand_off"):
    """The work is handed over."""

    to: str
    payload: str = ""


Outcome = CompletedOutcome | SaidOutcome | NeedsInputOutcome | HandOffOutcome


class RunView(Struct, frozen=True, kw_only=True):
    """A run. Times are ISO 8601, UTC.

    `problem` says in a sentence why it halted or failed; `reason` is the kind of halt, such as `budget_spent`.
    `question`, `outcome` and `message` are not in lists. `follows` is the run of its `conversation` that it goes on
    from; `followed_by` the one that went on from it.
    """

    id: str
    workflow: str
    state: RunState
    begun: str
    updated: str
    owner: str = ""
    message: str = ""
    problem: str = ""
    reason: str = ""
    question: Question | None = None
    outcome: Outcome | None = None
    conversation: str = ""
    follows: str = ""
    followed_by: str = ""


class RunPage(Struct, frozen=True, kw_only=True):
    """Runs, the latest first; `cursor` is that of the next page, empty on the last. A filtered page may be short."""

    runs: tuple[RunView, ...]
    cursor: str = ""


class Steering(Struct, frozen=True, kw_only=True):
    """The message is kept; a `steered` event tells when the model is given it. `unread`: those that it has not been."""

    unread: int


# Workflows


class ToolView(Struct, frozen=True, kw_only=True):
    """A tool: what it does to the world, whether a person is asked, and the JSON Schema of its arguments."""

    name: str
    description: str
    effect: Literal["read", "write", "terminal"]
    approval: bool
    required: bool
    parameters: Raw


class WorkflowView(Struct, frozen=True, kw_only=True):
    """A workflow or an `agent` that runs can be started of.

    `variables`: those that a start must give; `calls`: most model calls. An agent is talked to, message by message.
    """

    name: str
    agent: bool
    variables: tuple[str, ...]
    tools: tuple[ToolView, ...]
    calls: int
    tokens: int | None = None


class WorkflowList(Struct, frozen=True, kw_only=True):
    """The workflows of this server."""

    workflows: tuple[WorkflowView, ...]


class Health(Struct, frozen=True, kw_only=True):
    """`ok`, or for /readyz with status 503 `draining` or `unavailable`, with the problem."""

    status: Literal["ok", "draining", "unavailable"]
    problem: str = ""


# Errors


class FieldProblem(Struct, frozen=True, kw_only=True):
    """What is wrong with a field of the request."""

    field: str
    detail: str


class Problem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error (RFC 9457). `type` is `urn:forge:problem:KIND`; `field` names the field that is wrong, if one is."""

    type: str
    title: str
    status: int
    detail: str
    field: str = ""
    run: str = ""
    errors: tuple[FieldProblem, ...] = ()


# Events: what a stream tells, one struct a type.


class Within(Struct, frozen=True, kw_only=True):
    """The agent within a run that an event is of: its own `run`, and the call of the run `parent` that asked for it."""

    agent: str
    run: str
    parent: str
    call_id: str


class StreamEvent(Struct, frozen=True, kw_only=True):
    """`id`: its place in the run, empty for what is not told again. `time`: Unix seconds, if it is known.

    `within` is set where it happened in an agent that is a tool of the run; None: in the run itself. While such a call
    is under way, what happens in it is told without an id; once it is over, it is told again, with one.
    """

    id: str = ""
    time: float | None = None
    turn: int = 0
    within: Within | None = None


class StateEvent(StreamEvent, frozen=True, kw_only=True, tag="state"):
    """The run as it is now: first in a stream (unless it has ended), whenever its state changes, and last."""

    run: RunView


class RunStartedEvent(StreamEvent, frozen=True, kw_only=True, tag="run_started"):
    """The work begins."""

    message: str


class ConnectedEvent(StreamEvent, frozen=True, kw_only=True, tag="connected"):
    """The model is reached. `mode`: how it is asked for calls; `context_tokens` 0: not known."""

    model: str
    mode: str
    context_tokens: int


class TurnStartedEvent(StreamEvent, frozen=True, kw_only=True, tag="turn_started"):
    """The model is asked. `prompt_tokens` is an estimate; `calls_left` what the budget still has of model calls."""

    prompt_tokens: int
    context_tokens: int
    calls_left: int
    target: str = "main"


class UsageView(Struct, frozen=True, kw_only=True):
    """Tokens as the server counted them; `cached` is part of `prompt`."""

    prompt: int
    completion: int
    cached: int


class ModelRepliedEvent(StreamEvent, frozen=True, kw_only=True, tag="model_replied"):
    """The model's whole reply, as it gave it: `calls` are unchecked, their arguments text."""

    text: str
    reasoning: str
    calls: tuple["RawCallView", ...] = ()
    finish: str = "stop"
    usage: UsageView | None = None
    seconds: float = 0.0
    attempts: int = 1
    summary: bool = False


class RawCallView(Struct, frozen=True, kw_only=True):
    """A call as the server gave it."""

    name: str
    arguments: str


class ModelFailedEvent(StreamEvent, frozen=True, kw_only=True, tag="model_failed"):
    """The model was asked, and no reply came."""

    problem: str
    attempts: int


class CallsAcceptedEvent(StreamEvent, frozen=True, kw_only=True, tag="calls_accepted"):
    """Calls passed every check and are about to run; `text` is what the model said beside them."""

    calls: tuple[CallView, ...]
    text: str = ""


class ApprovalAskedEvent(StreamEvent, frozen=True, kw_only=True, tag="approval_asked"):
    """A person is asked about a call; the digest to answer with is in `RunView.question` of a waiting run."""

    call: CallView
    in_doubt: CallView | None = None
    problem: str = ""


class ApprovalAnsweredEvent(StreamEvent, frozen=True, kw_only=True, tag="approval_answered"):
    """A person has answered, or nobody did in time."""

    call_id: str
    approved: bool
    arguments: str = ""


class ResultView(Struct, frozen=True, kw_only=True):
    """What came of a call. `text` is what the model is shown."""

    call_id: str
    status: Literal["succeeded", "unresolved", "failed", "not_run", "in_doubt", "refused", "paused"]
    text: str


class ToolsReturnedEvent(StreamEvent, frozen=True, kw_only=True, tag="tools_returned"):
    """Calls came back."""

    results: tuple[ResultView, ...]


class ToolProgressedEvent(StreamEvent, frozen=True, kw_only=True, tag="tool_progressed"):
    """A running tool has told something. Live only."""

    call_id: str
    name: str
    text: str


class NudgedEvent(StreamEvent, frozen=True, kw_only=True, tag="nudged"):
    """The model was corrected."""

    kind: str
    text: str


class WarnedEvent(StreamEvent, frozen=True, kw_only=True, tag="warned"):
    """The model was told of a limit that is near, or of steps that are left."""

    kind: str
    text: str


class SteeredEvent(StreamEvent, frozen=True, kw_only=True, tag="steered"):
    """The model is given what a user said while it worked."""

    text: str


class HeldBackEvent(StreamEvent, frozen=True, kw_only=True, tag="held_back"):
    """The reply is not offered these tools."""

    tools: tuple[str, ...]
    why: str


class SummaryAskedEvent(StreamEvent, frozen=True, kw_only=True, tag="summary_asked"):
    """The model is asked for a summary."""

    messages: int


class SummaryFailedEvent(StreamEvent, frozen=True, kw_only=True, tag="summary_failed"):
    """The summary could not be used."""

    problem: str


class FellBackEvent(StreamEvent, frozen=True, kw_only=True, tag="fell_back"):
    """The server refused tools: from now on they are in the prompt."""

    reason: str


class CompactedEvent(StreamEvent, frozen=True, kw_only=True, tag="compacted"):
    """The history was shortened."""

    tokens_before: int
    tokens_after: int
    messages_before: int
    messages_after: int


class PrefixLostEvent(StreamEvent, frozen=True, kw_only=True, tag="prefix_lost"):
    """The server has to evaluate so many tokens again."""

    kept_tokens: int
    lost_tokens: int
    cause: str


class BackendReplacedEvent(StreamEvent, frozen=True, kw_only=True, tag="backend_replaced"):
    """The run goes on with another backend."""

    problem: str


class FinishedEvent(StreamEvent, frozen=True, kw_only=True, tag="finished"):
    """The run reached its outcome."""

    outcome: Outcome


class HaltedEvent(StreamEvent, frozen=True, kw_only=True, tag="halted"):
    """The run ended without its goal."""

    reason: str
    problem: str


class FailedEvent(StreamEvent, frozen=True, kw_only=True, tag="failed"):
    """The run ended by a mistake in a program."""

    problem: str


class TextDeltaEvent(StreamEvent, frozen=True, kw_only=True, tag="text_delta"):
    """More of the reply's text. Live only, like all that follow."""

    text: str


class ReasoningDeltaEvent(StreamEvent, frozen=True, kw_only=True, tag="reasoning_delta"):
    """More of the reply's reasoning."""

    text: str


class ReclassifiedEvent(StreamEvent, frozen=True, kw_only=True, tag="reclassified"):
    """So many of the last characters shown as text were reasoning, or the reverse."""

    to_reasoning: int = 0
    to_text: int = 0


class CallStartedEvent(StreamEvent, frozen=True, kw_only=True, tag="call_started"):
    """The reply's call number `index` begins."""

    index: int
    name: str


class CallDeltaEvent(StreamEvent, frozen=True, kw_only=True, tag="call_delta"):
    """More of the arguments of call number `index`, as JSON text."""

    index: int
    arguments: str


class RetriedEvent(StreamEvent, frozen=True, kw_only=True, tag="retried"):
    """The attempt failed: forget the deltas of this reply; the next begins in `seconds`."""

    problem: str
    attempt: int
    seconds: float


RunEvent = (
    StateEvent
    | RunStartedEvent
    | ConnectedEvent
    | TurnStartedEvent
    | ModelRepliedEvent
    | ModelFailedEvent
    | CallsAcceptedEvent
    | ApprovalAskedEvent
    | ApprovalAnsweredEvent
    | ToolsReturnedEvent
    | ToolProgressedEvent
    | NudgedEvent
    | WarnedEvent
    | SteeredEvent
    | HeldBackEvent
    | SummaryAskedEvent
    | SummaryFailedEvent
    | FellBackEvent
    | CompactedEvent
    | PrefixLostEvent
    | BackendReplacedEvent
    | FinishedEvent
    | HaltedEvent
    | FailedEvent
    | TextDeltaEvent
    | ReasoningDeltaEvent
    | ReclassifiedEvent
    | CallStartedEvent
    | CallDeltaEvent
    | RetriedEvent
)
"""All of them, by `type`."""
