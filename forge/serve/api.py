"""The HTTP API: every request and answer as a struct. Pure; docs/served.md has the same as a table.

    POST   /v1/runs                   StartRun → RunView: 202 at once with `background`, else 200 when the run has ended
                                      or waits for a person; with `stream`, the events as below
    GET    /v1/runs                   ?state=&workflow=&conversation=&limit=&cursor= → RunPage, the latest first
    GET    /v1/runs/{id}              RunView
    GET    /v1/runs/{id}/events       text/event-stream, see below; Last-Event-ID or ?after= continues after that one
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

In the stream an event is `event: TYPE`, `id: EFFECT.NUMBER` and one line `data: JSON`: a RunEvent, or for the type
`state` a RunView. Events without an id are sent to current readers only: deltas of the reply being written, a tool's
progress, `state`, and events of an agent within the run while its call is running (they are sent again, with an id,
once the call is over). A `state` comes first, unless the run has ended, whenever the run's state changes, and last: the
one of an ended run ends the stream. Deltas come only from the process that performs the run; readers elsewhere see
whole replies. `model_replied` has the whole text and replaces the deltas before it.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct

from stages.events import Stamped
from stages.message import ToolCall
from stages.state import Ending

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

    It answers the question that the run has ended with (`needs_input`), or is the conversation's next message.
    """

    text: _Text


Answer = ApproveAnswer | EditAnswer | RejectAnswer | SettleAnswer | InputAnswer


class Steer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something to say to a run under way: the model reads it with the results of its next tools."""

    text: _Text


# Runs


class Question(Struct, frozen=True, kw_only=True):
    """What a waiting run asks: may `call` run? An answer names the `digest`.

    `in_doubt`: an earlier call whose outcome is unknown; it is answered with a SettleAnswer. `problem`: what is wrong
    with the arguments that a person gave before. `until`: when the question closes.
    """

    digest: str
    call: ToolCall
    in_doubt: ToolCall | None = None
    problem: str = ""
    until: str = ""


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
    outcome: Ending | None = None
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


# Events


class RunEvent(Stamped, frozen=True, kw_only=True):
    """An event of a run or of an agent within it, or a delta of a reply, as `forge runs events` prints it too.

    Some fields are always empty here: see `forge.serve.views.event_view`. `explanation` says in a sentence why the run
    halted or changed its backend, or why tools are held back.
    """

    explanation: str = ""
