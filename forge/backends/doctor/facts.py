"""What the doctor asks, what comes back, and what it then knows: questions, answers, findings, facts."""

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from forge.backends.questions import ServerAnswer, decoded
from forge.backends.recognition import About, ServerKind

Calls = Literal["native", "text", "unused", "ignored", "refused"]
"""What becomes of `tools`: calls in their own field, calls in the text, none, not even shown to the model, an error."""


class Facts(Struct, frozen=True, kw_only=True):
    """What is known of a server and its model; None and empty: not known (yet).

    `fatal` says why the server cannot be used. `about` is what it said of itself, and `kind` … `slots` follow from
    that: `known_by` says how its kind is known, `context_source` where the number of tokens comes from.
    `prompt_tokens` are those of the question about the weather, without tools. `call_format` is the grammar of calls
    in text. `thinks` is where reasoning comes: a field, or `text`.
    """

    fatal: str = ""
    about: About = About()
    kind: ServerKind = "openai-compatible"
    known_by: str = ""
    build: str = ""
    models: tuple[str, ...] = ()
    model: str = ""
    context_tokens: int | None = None
    context_source: str = ""
    template: str | None = None
    template_tools: bool | None = None
    slots: int | None = None
    tokenizer: bool | Literal["messages"] | None = None
    logprobs: bool | None = None
    answers: bool | None = None
    usage: bool | None = None
    prompt_tokens: int | None = None
    thinks: str = ""
    calls: Calls | None = None
    call_format: str = ""
    valid_arguments: bool | None = None
    required: bool | None = None
    named: bool | None = None
    none: bool | None = None
    parallel: bool | None = None
    streams: bool | None = None
    stream_arguments: bool | None = None
    stream_usage: bool | None = None
    schema: bool | None = None
    strict: bool | None = None
    object_schema: bool | None = None
    structured_outputs: bool | None = None
    guided_json: bool | None = None
    json_object: bool | None = None
    grammar: bool | None = None
    grammar_with_tools: bool | None = None
    says_cut: bool | None = None
    replays_damage: bool | None = None
    refuses_overflow: bool | None = None
    system: bool | None = None
    alternating: bool | None = None
    caches: bool | None = None


def constrains(facts: Facts) -> bool:
    """Whether some way of asking for a schema is obeyed."""
    return True in {facts.schema, facts.strict, facts.object_schema, facts.structured_outputs, facts.guided_json}


class Question(Struct, frozen=True, kw_only=True):
    """A request: `path` stands below `/v1`, or below the server's `root`. Without `body` it is a GET."""

    path: str
    root: bool = False
    body: bytes | None = None


class Silence(Struct, frozen=True, kw_only=True):
    """Nothing usable came over HTTP: `problem` says what happened, and what to do.

    `final`: nothing ever will. `broken`: the connection broke, which may be the end of one that was kept too long.
    """

    problem: str
    final: bool = False
    broken: bool = False


FindingVerdict = Literal["yes", "no", "unclear", "skipped"]


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that was found: what was asked, what came, what that means, and what forge does about it."""

    topic: str
    verdict: FindingVerdict
    asked: str = ""
    came: str
    means: str = ""
    does: str = ""


class Probe(Struct, frozen=True, kw_only=True):
    """One question to a server, and how its answer is read; both are pure.

    `ask` gives a string instead of a question where there is nothing to ask: the reason, empty if it goes without
    saying. `read` leaves `Finding.asked` to the doctor. `tokens` bounds the reply; 0: the model is not run.
    """

    topic: str
    asks: str
    ask: Callable[[Facts], Question | str]
    read: Callable[[Facts, ServerAnswer], tuple[Facts, Finding | None]]
    tokens: int = 0


class _Told(Struct):
    message: str = ""


class _Error(Struct):
    error: _Told | str = ""
    detail: str = ""
    message: str = ""


def told(answer: ServerAnswer) -> str:
    """What an answer says, for a person: its status and its error, on one line."""
    found = decoded(answer.body, _Error)
    if found is None:
        said = one_line(answer.body.decode(errors="replace")) or answer.unread or "an empty body"
        return f"status {answer.status}: {said}"
    error = found.error if isinstance(found.error, str) else found.error.message
    return f"status {answer.status}: {one_line(error or found.detail or found.message or 'no error message')}"


def one_line(text: str, size: int = 160) -> str:
    """A server's or a model's text on one line, cut to `size` characters."""
    flat = " ".join(text[: 4 * size].split())
    return flat if len(flat) <= size else f"{flat[:size]}…"


def is_page(answer: ServerAnswer) -> bool:
    """Whether the answer is a web page."""
    return "html" in answer.content_type or answer.body.lstrip()[:1] == b"<"
