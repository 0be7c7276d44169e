"""The HTTP API: every request and response as a struct. `forge.serve.openapi` has the routes. Pure.

Every error is a Problem (application/problem+json). With a key file, requests need `Authorization: Bearer KEY`; a key
has scopes (`read`, `run`, `answer`, `metrics`, `admin`) and sees only its owner's runs, unless it has `admin`.

In the stream an event is `event: TYPE`, `id: EFFECT.NUMBER` and one line `data: JSON`: a RunEvent, or for the type
`state` a Run. Events without an id are sent to current readers only: deltas of the reply being written, a tool's
progress, `state`, and events of an agent within the run while its call is running (they are sent again, with an id,
once the call is over). A `state` comes first, unless the run has ended, whenever the run's state changes, and last: the
one of an ended run ends the stream. Deltas come only from the process that performs the run; readers elsewhere see
whole replies. `model_replied` has the whole text and replaces the deltas before it.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct

from stages.events import Stamped

KeyScope = Literal["read", "run", "answer", "metrics", "admin"]

PAGE_LIMIT = 200
"""Maximum runs per page."""

_Text = Annotated[str, Meta(min_length=1)]


# Requests


class StartRun(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Start a run of a workflow or an agent.

    `variables` fill the workflow's system prompt. Runs with a lower `priority` start first, after those without one.
    `conversation` is any name: the run continues from the last run of that conversation, which must have ended, or
    starts the conversation.
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
    """The call may run with these arguments (a JSON object as text), which are checked like the model's."""

    digest: _Text
    arguments: _Text


class RejectAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="reject"):
    """The call may not run. An unknown outcome stays unknown; if the run needs it, it halts, and a retry asks again."""

    digest: _Text
    reason: str = ""


class SettleAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="settle"):
    """Whether the call in `Question.in_doubt` took effect, and what it returned, if known.

    If it did not, `call` runs; if its tool needs approval, that is asked first, as another question.
    """

    digest: _Text
    happened: bool
    result: str = ""


class InputAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="input"):
    """The user's next message to a run that has ended; another run continues from there.

    It answers the question that the run ended with (`needs_input`), or is the conversation's next message.
    """

    text: _Text


AnswerBody = ApproveAnswer | EditAnswer | RejectAnswer | SettleAnswer | InputAnswer


class Steer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message to a run in progress: the model reads it with its next tool results."""

    text: _Text


class Steering(Struct, frozen=True, kw_only=True):
    """The message is stored; a `steered` event follows when the model reads it. `unread`: messages not read yet."""

    unread: int


# Workflows


class ToolView(Struct, frozen=True, kw_only=True):
    """A tool: its effect, whether it needs approval, and the JSON Schema of its arguments."""

    name: str
    description: str
    effect: Literal["read", "write", "terminal"]
    approval: bool
    required: bool
    parameters: Raw


class WorkflowView(Struct, frozen=True, kw_only=True):
    """A workflow or an `agent` that can be run.

    `variables`: required to start a run. `calls`: maximum model calls. An agent's runs are messages of a conversation.
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
    """`ok`; or `draining` or `unavailable`, with the problem, from /readyz with status 503."""

    status: Literal["ok", "draining", "unavailable"]
    problem: str = ""


# Errors


class FieldProblem(Struct, frozen=True, kw_only=True):
    """An invalid field of the request."""

    field: str
    detail: str


class ProblemDetails(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error (RFC 9457). `type` is `urn:forge:problem:KIND`; `field` names the invalid field, if there is one."""

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
    halted or changed its backend, or why tools are held back. `title` and `details` are what people are told of a
    notice (`stages.events.told`).
    """

    explanation: str = ""
    title: str = ""
    details: str = ""
