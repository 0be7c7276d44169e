"""Facts about a server: what it reports and what the probes found, also in words."""

from collections.abc import Callable, Iterator
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from forge.backends.endpoints import ModelList, OllamaModel, Props, ServerVersion, StudioModelList
from forge.backends.questions import ServerAnswer, decoded
from forge.backends.recognition import About, ServerKind, context_of, kind_of
from forge.backends.template import Template

# Questions, answers, findings and facts.

Calls = Literal["native", "text", "unused", "ignored", "refused"]
"""What happens to `tools`: native calls, calls in text, no call, silently dropped, or an error."""


class Facts(Struct, frozen=True, kw_only=True):
    """What is known about a server and its model; None or empty means unknown.

    `fatal` says why the server cannot be used. `about` is what it reports about itself; `kind` … `slots` follow from
    that: `known_by` says how the kind was recognised, `context_source` where the context size comes from.
    `prompt_tokens` is the size of the weather question without tools. `thinks` is where reasoning arrives: a field, or
    `text`.
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
    prompt_tokens: int | None = None
    thinks: str = ""
    calls: Calls | None = None
    valid_arguments: bool | None = None
    required: bool | None = None
    named: bool | None = None
    schema: bool | None = None
    strict: bool | None = None
    object_schema: bool | None = None
    structured_outputs: bool | None = None
    guided_json: bool | None = None
    alternating: bool | None = None


def constrains(facts: Facts) -> bool:
    """Whether the server obeys a schema in any form."""
    return True in {facts.schema, facts.strict, facts.object_schema, facts.structured_outputs, facts.guided_json}


class Question(Struct, frozen=True, kw_only=True):
    """A request: `path` is relative to `/v1`, or to the server's `root`. Without `body` it is a GET."""

    path: str
    root: bool = False
    body: bytes | None = None


class Silence(Struct, frozen=True, kw_only=True):
    """No usable HTTP answer: `problem` says what happened and what to do.

    `final`: retrying is pointless. `broken`: the connection broke, perhaps because it was kept open too long.
    """

    problem: str
    final: bool = False
    broken: bool = False


FindingVerdict = Literal["yes", "no", "unclear", "skipped"]


class Finding(Struct, frozen=True, kw_only=True):
    """A finding: what was asked, what came back, what it means, and what forge does about it."""

    topic: str = ""
    verdict: FindingVerdict
    asked: str = ""
    came: str
    means: str = ""
    does: str = ""


class Probe(Struct, frozen=True, kw_only=True):
    """A question to a server and how to read the answer; both are pure.

    `ask` returns a string instead of a question if there is nothing to ask: the reason, or empty if it is obvious.
    `read` leaves `Finding.asked` to the doctor. `tokens` is the maximum of the reply; 0 means that the model is not
    run.
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
    """An answer for people: its status and error, on one line."""
    found = decoded(answer.body, _Error)
    if found is None:
        said = one_line(answer.body.decode(errors="replace")) or answer.unread or "an empty body"
        return f"status {answer.status}: {said}"
    error = found.error if isinstance(found.error, str) else found.error.message
    return f"status {answer.status}: {one_line(error or found.detail or found.message or 'no error message')}"


def one_line(text: str, size: int = 160) -> str:
    """The text on one line, cut to `size` characters."""
    flat = " ".join(text[: 4 * size].split())
    return flat if len(flat) <= size else f"{flat[:size]}…"


def is_page(answer: ServerAnswer) -> bool:
    """Whether the answer is a web page."""
    return "html" in answer.content_type or answer.body.lstrip()[:1] == b"<"


# Probes for the server's kind, models and context. None of them runs the model.


def _learnt(facts: Facts, about: About) -> Facts:
    """The facts with everything that follows from what the server reports."""
    kind, known_by = (facts.kind, facts.known_by) if facts.kind == "openai" else kind_of(about, facts.model)
    context = context_of(about, facts.model)
    return replace(
        facts,
        about=about,
        kind=kind,
        known_by=known_by,
        build=about.build,
        slots=about.props.total_slots if about.props else None,
        template=about.props.chat_template if about.props else None,
        template_tools=about.template_has_tools,
        context_tokens=context.tokens,
        context_source=context.source,
    )


def _read_models(facts: Facts, answer: ServerAnswer) -> tuple[Facts, Finding]:
    fatal = ""
    if answer.status in {401, 403}:
        fatal = "it wants a key, or another one: name the environment variable that holds it with --api-key-env"
    elif 300 <= answer.status < 400:
        fatal = f"it sends to another address ({answer.location or 'unnamed'}): give that one"
    elif answer.status == 503:
        fatal = "it is not ready: wait until its model is loaded (its log says when), then ask again"
    if fatal:
        return replace(facts, fatal=fatal), Finding(verdict="no", came=told(answer), means=fatal)
    found = answer.read(ModelList)
    if found is None:
        came = "a web page" if is_page(answer) else told(answer)
        means = "it lists no models; perhaps its API has another path, such as …/v1 or …/openai"
        return facts, Finding(verdict="no", came=came, means=means, does="asks for a reply anyway")
    names, wanted = tuple(m.id for m in found.data), facts.model
    known = replace(facts, models=names, model=wanted or (names[0] if names else ""))
    some = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    if not names:
        finding = Finding(verdict="no", came="an empty list", means="no model is loaded: load one first")
    elif wanted and wanted not in names:
        means = f"{wanted} is not among them; some servers serve their only model under any name"
        finding = Finding(verdict="unclear", came=some, means=means, does=f"asks for {wanted}")
    else:
        finding = Finding(verdict="yes", came=some, does=f"uses {known.model}")
    return _learnt(known, replace(facts.about, models=found)), finding


def _asking(
    topic: str, path: str, asked: Callable[[Facts], bool], learn: Callable[[About, ServerAnswer], About]
) -> Probe:
    """A probe that fetches a path, without a finding of its own."""
    return Probe(
        topic=topic,
        asks=f"GET {path}",
        ask=lambda facts: Question(path=path, root=True) if asked(facts) else "",
        read=lambda facts, answer: (_learnt(facts, learn(facts.about, answer)), None),
    )


def _unknown(facts: Facts) -> bool:
    return facts.kind == "openai-compatible"


IDENTIFY = (
    Probe(topic="models", asks="GET /v1/models", ask=lambda _: Question(path="/models"), read=_read_models),
    _asking(
        "llama.cpp",
        "/props",
        lambda facts: facts.kind == "llama-server" or (_unknown(facts) and not facts.about.may_be_ollama),
        lambda about, answer: replace(about, props=answer.read(Props)),
    ),
    _asking(
        "vLLM",
        "/version",
        lambda facts: facts.kind == "vllm",
        lambda about, answer: replace(about, vllm=answer.read(ServerVersion)),
    ),
    _asking(
        "Ollama", "/api/version", _unknown, lambda about, answer: replace(about, ollama=answer.read(ServerVersion))
    ),
    _asking(
        "LM Studio",
        "/api/v0/models",
        _unknown,
        lambda about, answer: replace(about, studio=answer.read(StudioModelList)),
    ),
    Probe(
        topic="Ollama's model",
        asks="POST /api/show",
        ask=lambda facts: (
            Question(path="/api/show", root=True, body=msgspec.json.encode({"model": facts.model}))
            if facts.kind == "ollama"
            else ""
        ),
        read=lambda facts, answer: (_learnt(facts, replace(facts.about, shown=answer.read(OllamaModel))), None),
    ),
)
"""The first probes, for every server."""


# Findings that need no further question: the server's kind, context and template.

_ASKED = "what it says of itself, at the addresses that llama.cpp, vLLM, Ollama and LM Studio have for it"

NAMES = {
    "openai": "OpenAI",
    "llama-server": "llama.cpp",
    "vllm": "vLLM",
    "ollama": "Ollama",
    "lm-studio": "LM Studio",
    "openai-compatible": "a server of the chat completions protocol, of no kind that forge knows",
}


def about(facts: Facts, seen: Template) -> Iterator[Finding]:
    """The findings about the server's identity; `seen` is what its template reveals."""
    came = " ".join(filter(None, (NAMES[facts.kind], facts.build)))
    means = f"known because {facts.known_by}" if facts.known_by else "nothing about it is taken for granted"
    yield Finding(topic="server", asked=_ASKED, verdict="yes" if facts.known_by else "unclear", came=came, means=means)
    if facts.context_tokens is None:
        means = "it does not say how much it takes"
        does = "counts on 4,096 tokens; forge run --context gives it the true number"
        yield Finding(topic="context", asked=_ASKED, verdict="unclear", came="no number", means=means, does=does)
    else:
        came, means = f"{facts.context_tokens:,} tokens", f"as {facts.context_source} says"
        yield Finding(topic="context", asked=_ASKED, verdict="yes", came=came, means=means)
    if facts.slots is not None:
        means = "requests wait for one another" if facts.slots == 1 else f"{facts.slots} requests run at the same time"
        yield Finding(topic="slots", asked="GET /props", verdict="yes", came=str(facts.slots), means=means)
    if facts.template is not None:
        turns = ", wants roles in turn" if seen.alternating else ""
        came, means, does = f"has no place for tools{turns}", "`tools` would be ignored silently", ""
        if facts.template_tools:
            written = f", and writes calls after {one_line(seen.markers.opening, 40)!r}" if seen.markers else ""
            came, means = f"has a place for tools{written}{turns}", ""
            does = "finds such calls in text too" if seen.markers else ""
        verdict: FindingVerdict = "yes" if facts.template_tools else "no"
        yield Finding(topic="chat template", asked="GET /props", verdict=verdict, came=came, means=means, does=does)
