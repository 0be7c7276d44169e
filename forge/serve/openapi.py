"""The operations of the API, and the OpenAPI document generated from them. Pure."""

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import msgspec
from msgspec import Struct

from forge.durable.runs import How, Page, Run
from forge.serve import api
from forge.serve.problems import KINDS, ProblemKind


class Parameter(Struct, frozen=True, kw_only=True):
    """A query parameter or header; a string unless `schema` says otherwise."""

    name: str
    about: str
    place: Literal["query", "header"] = "query"
    schema: Mapping[str, object] = msgspec.field(default_factory=lambda: {"type": "string"})


class Operation(Struct, frozen=True, kw_only=True):
    """A method of a path.

    `scope` is the scope a key needs; None: no key needed. `body` is read as JSON. `answers`: the struct or media type
    of each success response, by status; None: no body. `problems`: errors specific to this operation.
    """

    id: str
    method: Literal["GET", "POST", "DELETE"]
    path: str
    about: str
    scope: api.KeyScope | None = None
    body: object = None
    parameters: tuple[Parameter, ...] = ()
    answers: Mapping[int, object]
    problems: tuple[ProblemKind, ...] = ()


_EVENTS = "text/event-stream"
_RUN = "/v1/runs/{run}"

_LAST_EVENT = (
    Parameter(name="Last-Event-ID", place="header", about="The id of the last event received, to continue after it."),
    Parameter(name="after", about="The same, for clients that cannot set headers."),
)

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        id="startRun",
        method="POST",
        path="/v1/runs",
        about="Start a run. Responds once the run has ended or waits for a person; with `background`, at once.",
        scope="run",
        body=api.StartRun,
        parameters=(
            Parameter(
                name="Idempotency-Key",
                place="header",
                about="Repeating a request with the same key starts no second run; a different request is refused.",
            ),
        ),
        answers={200: Run, 202: Run},
        problems=("unknown-workflow", "reused-key", "wrong-state"),
    ),
    Operation(
        id="listRuns",
        method="GET",
        path="/v1/runs",
        about="List runs, newest first.",
        scope="read",
        parameters=(
            Parameter(
                name="state",
                about="Only runs in this state; may be repeated.",
                schema={"type": "array", "items": {"enum": list(get_args(How))}},
            ),
            Parameter(name="workflow", about="Only runs of this workflow or agent."),
            Parameter(name="conversation", about="Only runs of this conversation."),
            Parameter(
                name="limit",
                about="Runs per page.",
                schema={"type": "integer", "minimum": 1, "maximum": api.PAGE_LIMIT, "default": 50},
            ),
            Parameter(name="cursor", about="The `cursor` of the previous page."),
        ),
        answers={200: Page},
    ),
    Operation(
        id="getRun",
        method="GET",
        path=_RUN,
        about="A run, with its question or outcome.",
        scope="read",
        answers={200: Run},
    ),
    Operation(
        id="readEvents",
        method="GET",
        path=f"{_RUN}/events",
        about="The run's events as they happen, until it ends. `data` is a RunEvent, for the event `state` a Run. "
        "204: no events are left.",
        scope="read",
        parameters=_LAST_EVENT,
        answers={200: _EVENTS, 204: None},
        problems=("workflow-changed", "unknown-workflow"),
    ),
    Operation(
        id="exportJournal",
        method="GET",
        path=f"{_RUN}/journal",
        about="The run so far as a journal, for `forge replay`, `bisect` and `ablate`.",
        scope="read",
        answers={200: "application/jsonl"},
        problems=("wrong-state",),
    ),
    Operation(
        id="answerRun",
        method="POST",
        path=f"{_RUN}/answers",
        about="Answer the run's question. The first answer counts.",
        scope="answer",
        body=api.AnswerBody,
        answers={201: Run, 202: Run},
        problems=("not-asked",),
    ),
    Operation(
        id="cancelRun",
        method="POST",
        path=f"{_RUN}/cancel",
        about="Cancel the run. Work in progress is stopped; every call gets a result. An ended run is unchanged.",
        scope="run",
        answers={202: Run},
    ),
    Operation(
        id="retryRun",
        method="POST",
        path=f"{_RUN}/retry",
        about=(
            "Resume a run from its last recorded step: one that failed, or that halted because its model's server gave "
            "no answer (reason backend_failed). Its events go on after those of the halt."
        ),
        scope="run",
        answers={202: Run},
        problems=("wrong-state",),
    ),
    Operation(
        id="steerRun",
        method="POST",
        path=f"{_RUN}/messages",
        about="Send a message to a run in progress: the model reads it with its next tool results.",
        scope="run",
        body=api.Steer,
        answers={202: api.Steering},
        problems=("wrong-state",),
    ),
    Operation(
        id="deleteRun",
        method="DELETE",
        path=_RUN,
        about="Delete a run that has ended.",
        scope="run",
        answers={204: None},
        problems=("wrong-state",),
    ),
    Operation(
        id="listWorkflows",
        method="GET",
        path="/v1/workflows",
        about="The workflows and agents that can be run.",
        scope="read",
        answers={200: api.WorkflowList},
    ),
    Operation(id="live", method="GET", path="/healthz", about="The process is alive.", answers={200: api.Health}),
    Operation(
        id="ready",
        method="GET",
        path="/readyz",
        about="The server accepts runs: its database responds, and it is not stopping.",
        answers={200: api.Health, 503: api.Health},
    ),
    Operation(
        id="metrics",
        method="GET",
        path="/metrics",
        about="Metrics in the Prometheus text format.",
        scope="metrics",
        answers={200: "text/plain"},
    ),
    Operation(
        id="openapi",
        method="GET",
        path="/openapi.json",
        about="This document.",
        answers={200: "application/json"},
    ),
)

_OF_EVERY_BODY: tuple[ProblemKind, ...] = ("wrong-json", "too-large", "wrong-media-type", "wrong-field")


def document(version: str) -> bytes:
    """The OpenAPI document, as JSON."""
    bodies = [operation.body for operation in OPERATIONS if operation.body is not None]
    answers = [one for operation in OPERATIONS for one in operation.answers.values() if isinstance(one, type)]
    types = [*dict.fromkeys((*bodies, *answers)), api.ProblemDetails, api.RunEvent]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    of = dict(zip(types, schemas, strict=True))
    components |= {"Answer": of[api.AnswerBody]}
    paths: dict[str, dict[str, object]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation, of)
    made = {
        "openapi": "3.1.0",
        "info": {"title": "forge serve", "version": version, "description": api.__doc__},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }
    return msgspec.json.encode(made)


def _described(operation: Operation, of: Mapping[object, Mapping[str, object]]) -> Mapping[str, object]:
    run = {"name": "run", "in": "path", "required": True, "schema": {"type": "string"}}
    path = [run] if "{" in operation.path else []
    told = [
        {"name": one.name, "in": one.place, "description": one.about, "schema": one.schema}
        for one in operation.parameters
    ]
    found: dict[str, object] = {
        "operationId": operation.id,
        "summary": operation.about,
        "parameters": [*path, *told],
        "responses": {
            **{str(status): _answer(what, of) for status, what in operation.answers.items()},
            **_refusals(operation, of),
        },
    }
    if operation.scope is not None:
        found["security"] = [{}, {"key": [operation.scope]}]  # without a key file, no key is needed
    if operation.body is not None:
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": of[operation.body]}}}
    return found


def _answer(what: object, of: Mapping[object, Mapping[str, object]]) -> Mapping[str, object]:
    if what is None:
        return {"description": "Done."}
    if isinstance(what, str):
        schema = {"oneOf": [of[api.RunEvent], of[Run]]} if what == _EVENTS else {}
        return {"description": what, "content": {what: {"schema": schema}}}
    return {"description": getattr(what, "__name__", ""), "content": {"application/json": {"schema": of[what]}}}


def _refusals(operation: Operation, of: Mapping[object, Mapping[str, object]]) -> Mapping[str, object]:
    kinds: Sequence[ProblemKind] = (
        *(("unauthorized", "forbidden", "too-many") if operation.scope else ()),
        *(("unknown-run",) if "{" in operation.path else ()),
        *(_OF_EVERY_BODY if operation.body is not None else ()),
        *operation.problems,
    )
    by_status: dict[str, list[str]] = {}
    for kind in kinds:
        by_status.setdefault(str(KINDS[kind][0]), []).append(f"{kind}: {KINDS[kind][1].lower()}")
    content = {"application/problem+json": {"schema": of[api.ProblemDetails]}}
    return {status: {"description": "; ".join(said), "content": content} for status, said in by_status.items()}
