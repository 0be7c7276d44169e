"""Facts about a server: what it reports and what the probes found, also in words."""

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from forge.backends.endpoints import ModelList
from forge.backends.questions import ServerAnswer
from forge.backends.recognition import About, ContextSize, ServerKind, context_of, kind_of
from forge.backends.template import Template
from stages.wire.faults import error_message
from stages.wire.wires import Constrain

# Questions, answers, findings and facts.

_Calls = Literal["native", "text", "unused", "ignored", "refused"]
"""What happens to `tools`: native calls, calls in text, no call, silently dropped, or an error."""


class Facts(Struct, frozen=True, kw_only=True):
    """What is known about a server and its model; None or empty means unknown.

    `fatal` says why the server cannot be used. `about` is what it reports about itself. `prompt_tokens` is the size of
    the weather question without tools. `enforced`: whether the server obeys a schema, by the way to request it.
    """

    fatal: str = ""
    about: About = About()
    kind: ServerKind = "openai-compatible"
    model: str = ""
    tokenizer: bool | Literal["messages"] | None = None
    logprobs: bool | None = None
    prompt_tokens: int | None = None
    thinks: bool = False
    calls: _Calls | None = None
    valid_arguments: bool | None = None
    required: bool | None = None
    named: bool | None = None
    enforced: Mapping[Constrain, bool | None] = {}
    alternating: bool | None = None

    @property
    def constrains(self) -> bool:
        """Whether the server obeys a schema in any form."""
        return True in self.enforced.values()

    @property
    def context(self) -> ContextSize:
        """The model's context, as far as the server reports it."""
        return context_of(self.about, self.model)


class ProbeRequest(Struct, frozen=True, kw_only=True):
    """A request: `path` is relative to `/v1`, or to the server's `root`. Without `body` it is a GET."""

    path: str
    root: bool = False
    body: bytes | None = None


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
    ask: Callable[[Facts], ProbeRequest | str]
    read: Callable[[Facts, ServerAnswer], tuple[Facts, Finding]]
    tokens: int = 0


def error_line(answer: ServerAnswer) -> str:
    """An answer for people: its status and error, on one line."""
    body = answer.body.decode(errors="replace")
    return f"status {answer.status}: {flattened(error_message(body) or body) or answer.unread or 'an empty body'}"


def flattened(text: str, size: int = 160) -> str:
    """The text on one line, cut to `size` characters."""
    flat = " ".join(text[: 4 * size].split())
    return flat if len(flat) <= size else f"{flat[:size]}…"


def is_page(answer: ServerAnswer) -> bool:
    """Whether the answer is a web page."""
    return "html" in answer.content_type or answer.body.lstrip()[:1] == b"<"


# The first probe, for every server: its models. It does not run the model.

WANTS_KEY = "it wants a key, or another one: name the environment variable that holds it with --api-key-env"


def _read_models(facts: Facts, answer: ServerAnswer) -> tuple[Facts, Finding]:
    fatal = ""
    if answer.status in {401, 403}:
        fatal = WANTS_KEY
    elif 300 <= answer.status < 400:
        fatal = f"it sends to another address ({answer.location or 'unnamed'}): give that one"
    elif answer.status == 503:
        fatal = "it is not ready: wait until its model is loaded (its log says when), then ask again"
    if fatal:
        return replace(facts, fatal=fatal), Finding(verdict="no", came=error_line(answer), means=fatal)
    found = answer.read(ModelList)
    if found is None:
        came = "a web page" if is_page(answer) else error_line(answer)
        means = "it lists no models; perhaps its API has another path, such as …/v1 or …/openai"
        return facts, Finding(verdict="no", came=came, means=means, does="asks for a reply anyway")
    names, wanted = tuple(m.id for m in found.data), facts.model
    about = replace(facts.about, models=found)
    known = replace(facts, about=about, model=wanted or (names[0] if names else ""))
    some = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    if not names:
        finding = Finding(verdict="no", came="an empty list", means="no model is loaded: load one first")
    elif wanted and wanted not in names:
        means = f"{wanted} is not among them; some servers serve their only model under any name"
        finding = Finding(verdict="unclear", came=some, means=means, does=f"asks for {wanted}")
    else:
        finding = Finding(verdict="yes", came=some, does=f"uses {known.model}")
    return known, finding


MODELS = Probe(topic="models", asks="GET /v1/models", ask=lambda _: ProbeRequest(path="/models"), read=_read_models)


# Findings that need no further question: the server's kind, context and template.

_ASKED = "what it says of itself, at the addresses that llama.cpp, vLLM, Ollama and LM Studio have for it"

SERVER_NAMES = {
    "openai": "OpenAI",
    "llama-server": "llama.cpp",
    "vllm": "vLLM",
    "ollama": "Ollama",
    "lm-studio": "LM Studio",
    "openai-compatible": "a server of the chat completions protocol, of no kind that forge knows",
}


def about(facts: Facts, seen: Template) -> Iterator[Finding]:
    """The findings about the server's identity; `seen` is what its template reveals."""
    said = facts.about
    known_by = "that is its address" if facts.kind == "openai" else kind_of(said, facts.model)[1]
    came = " ".join(filter(None, (SERVER_NAMES[facts.kind], said.build)))
    means = f"known because {known_by}" if known_by else "forge makes no assumptions about it"
    yield Finding(topic="server", asked=_ASKED, verdict="yes" if known_by else "unclear", came=came, means=means)
    if facts.context.tokens is None:
        means = "it does not say how much it takes"
        does = "counts on 4,096 tokens; forge run --context gives it the true number"
        yield Finding(topic="context", asked=_ASKED, verdict="unclear", came="no number", means=means, does=does)
    else:
        came, means = f"{facts.context.tokens:,} tokens", f"as {facts.context.source} says"
        yield Finding(topic="context", asked=_ASKED, verdict="yes", came=came, means=means)
    if said.slots is not None:
        means = "requests wait for one another" if said.slots == 1 else f"{said.slots} requests run at the same time"
        yield Finding(topic="slots", asked="GET /props", verdict="yes", came=str(said.slots), means=means)
    if said.template is not None:
        turns = ", wants roles in turn" if seen.alternating else ""
        came, means, does = f"has no place for tools{turns}", "`tools` would be ignored silently", ""
        if said.template_has_tools:
            written = f", and writes calls after {flattened(seen.markers.opening, 40)!r}" if seen.markers else ""
            came, means = f"has a place for tools{written}{turns}", ""
            does = "finds such calls in text too" if seen.markers else ""
        verdict: FindingVerdict = "yes" if said.template_has_tools else "no"
        yield Finding(topic="chat template", asked="GET /props", verdict=verdict, came=came, means=means, does=does)
