"""Problems: errors as RFC 9457 defines them, and decoding of bodies that names the invalid field. Pure."""

import re
from typing import Literal, TypeVar, get_args

import msgspec

from forge.errors import DefinitionError, ForgeError, RunError
from forge.serve.api import FieldProblem, ProblemDetails
from stages.decoding import decode
from stages.options import did_you_mean
from stages.wire.server.errors import RequestError, WireAnswer

_T = TypeVar("_T")

ProblemKind = Literal[
    "wrong-json",
    "unauthorized",
    "forbidden",
    "unknown-run",
    "not-found",
    "method-not-allowed",
    "not-asked",
    "wrong-state",
    "workflow-changed",
    "too-large",
    "wrong-media-type",
    "wrong-field",
    "unknown-workflow",
    "reused-key",
    "too-many",
    "internal",
    "unavailable",
]

KINDS: dict[ProblemKind, tuple[int, str]] = {
    "wrong-json": (400, "Invalid JSON body"),
    "unauthorized": (401, "API key required"),
    "forbidden": (403, "Forbidden"),
    "unknown-run": (404, "Run not found"),
    "not-found": (404, "Not found"),
    "method-not-allowed": (405, "Method not allowed"),
    "not-asked": (409, "The run does not ask this, or no longer does"),
    "wrong-state": (409, "Not possible in the run's current state"),
    "workflow-changed": (409, "The workflow has changed since the run started"),
    "too-large": (413, "Request too large"),
    "wrong-media-type": (415, "The body must be application/json"),
    "wrong-field": (422, "Invalid field"),
    "unknown-workflow": (422, "Unknown workflow"),
    "reused-key": (422, "Idempotency key already used for a different request"),
    "too-many": (429, "Too many requests"),
    "internal": (500, "Internal server error"),
    "unavailable": (503, "Service unavailable"),
}
"""Every kind of problem, with its status and title."""

_OF_RUNS: dict[str, ProblemKind] = {
    "unknown": "unknown-run",
    "reused-id": "reused-key",
    "wrong-state": "wrong-state",
    "not-asked": "not-asked",
    "changed": "workflow-changed",
    "wrong-cursor": "wrong-field",
}

_URN = "urn:forge:problem:"


class ProblemError(Exception):
    """A refused request, with the problem and headers of the response."""

    def __init__(self, kind: ProblemKind, detail: str, *, field: str = "", run: str = "", retry_after: int = 0) -> None:
        super().__init__(detail)
        self.problem = problem(kind, detail, field=field, run=run)
        self.headers = (("retry-after", str(retry_after)),) if retry_after else ()


def problem(
    kind: ProblemKind, detail: str, *, field: str = "", run: str = "", errors: tuple[FieldProblem, ...] = ()
) -> ProblemDetails:
    """The problem of that kind."""
    status, title = KINDS[kind]
    return ProblemDetails(
        type=_URN + kind, title=title, status=status, detail=detail, field=field, run=run, errors=errors
    )


def problem_answer(error: ProblemDetails, headers: tuple[tuple[str, str], ...] = ()) -> WireAnswer:
    """The response for the problem."""
    return WireAnswer(status=error.status, body=msgspec.json.encode(error), headers=headers)


def of_door(error: RequestError) -> ProblemDetails:
    """The problem for a request that the HTTP layer gave up: it failed, or the server is stopping."""
    return problem("unavailable" if error.status == 503 else "internal", error.message)


def of_forge(error: ForgeError, run: str = "") -> ProblemDetails:
    """The problem for a ForgeError: an unknown run, a wrong state, an invalid value."""
    match error:
        case RunError(kind=kind):
            field = {"wrong-cursor": "cursor", "not-asked": "digest", "reused-id": "Idempotency-Key"}.get(kind, "")
            return problem(_OF_RUNS[kind], str(error), field=field, run=run)
        case DefinitionError(problems=problems):
            errors = tuple(FieldProblem(field="variables", detail=one) for one in problems)
            return problem("wrong-field", "; ".join(problems), field="variables", errors=errors)
        case _:
            return problem("wrong-field", str(error), run=run)


_AT = re.compile(r" - at `\$\.?([^`]*)`$")
_NAMED = re.compile(r"field `([^`]+)`")


def decoded_body(decoder: msgspec.json.Decoder[_T], body: bytes) -> _T:
    """The decoded body. ProblemError for invalid JSON or an invalid field, which is named."""
    try:
        return decode(decoder, body)
    except msgspec.ValidationError as error:
        text = str(error)
        at, named = _AT.search(text), _NAMED.search(text)
        parent = at[1].removesuffix("[...]") if at else ""
        field = ".".join(part for part in (parent, named[1] if named else "") if part and part != "...")
        structs = [one for one in get_args(decoder.type) or (decoder.type,) if hasattr(one, "__struct_fields__")]
        meant = ""
        if named and not parent and "unknown field" in text:
            owners = [str(one.__struct_config__.tag) for one in structs if named[1] in one.__struct_fields__]
            known = [name for one in structs for name in one.__struct_fields__]
            meant = f"; it belongs to the type {' or '.join(owners)}" if owners else "." + did_you_mean(named[1], known)
        elif field == "type":
            meant = f"; use one of {', '.join(sorted(str(one.__struct_config__.tag) for one in structs))}"
        raise ProblemError("wrong-field", _AT.sub("", text) + meant, field=field) from None
    except msgspec.DecodeError as error:
        raise ProblemError("wrong-json", str(error)) from None
