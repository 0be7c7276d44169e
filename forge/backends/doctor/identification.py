"""Probes that ask a server what it is: its kind, its models, its context. None of them runs the model."""

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from forge.backends.doctor.facts import Facts, Finding, Probe, Question, is_page, told
from forge.backends.endpoints import ModelList, OllamaModel, Props, ServerVersion, StudioModelList
from forge.backends.questions import ServerAnswer
from forge.backends.recognition import About, context_of, kind_of

_Read = tuple[Facts, Finding | None]


def _learnt(facts: Facts, about: About) -> Facts:
    """The facts with all that follows from what the server said of itself."""
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


def _read_models(facts: Facts, answer: ServerAnswer) -> _Read:
    if fatal := _turned_away(answer):
        return replace(facts, fatal=fatal), Finding(topic="models", verdict="no", came=told(answer), means=fatal)
    found = answer.read(ModelList)
    if found is None:
        return facts, _no_list(answer)
    names = tuple(m.id for m in found.data)
    known = replace(facts, models=names, model=facts.model or (names[0] if names else ""))
    return _learnt(known, replace(facts.about, models=found)), _listed(names, facts.model)


def _turned_away(answer: ServerAnswer) -> str:
    """Why nothing more can be asked there, empty if something can."""
    if answer.status in {401, 403}:
        return "it wants a key, or another one: name the environment variable that holds it with --api-key-env"
    if 300 <= answer.status < 400:
        return f"it sends to another address ({answer.location or 'unnamed'}): give that one"
    if answer.status == 503:
        return "it is not ready: wait until its model is loaded (its log says when), then ask again"
    return ""


def _no_list(answer: ServerAnswer) -> Finding:
    return Finding(
        topic="models",
        verdict="no",
        came="a web page" if is_page(answer) else told(answer),
        means="it lists no models; perhaps its API has another path, such as …/v1 or …/openai",
        does="asks for a reply all the same",
    )


def _listed(names: tuple[str, ...], wanted: str) -> Finding:
    if not names:
        return Finding(topic="models", verdict="no", came="an empty list", means="no model is loaded: load one first")
    some = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    if wanted and wanted not in names:
        means = f"{wanted} is not among them; some servers serve their only model under any name"
        return Finding(topic="models", verdict="unclear", came=some, means=means, does=f"asks for {wanted}")
    return Finding(topic="models", verdict="yes", came=some, does=f"uses {wanted or names[0]}")


_MODELS = Probe(topic="models", asks="GET /v1/models", ask=lambda _: Question(path="/models"), read=_read_models)


def _may_be_llama(facts: Facts) -> bool:
    """Whether it is worth asking for what only llama.cpp has."""
    return facts.kind == "llama-server" or (facts.kind == "openai-compatible" and not facts.about.may_be_ollama)


def _probe(
    topic: str, path: str, asked: Callable[[Facts], bool], learn: Callable[[About, ServerAnswer], About]
) -> Probe:
    """A probe that asks for what is at that path, and finds nothing worth telling by itself."""
    return Probe(
        topic=topic,
        asks=f"GET {path}",
        ask=lambda facts: Question(path=path, root=True) if asked(facts) else "",
        read=lambda facts, answer: (_learnt(facts, learn(facts.about, answer)), None),
    )


_PROPS = _probe(
    "llama.cpp",
    "/props",
    _may_be_llama,
    lambda about, answer: replace(about, props=answer.read(Props)),
)
_VLLM = _probe(
    "vLLM",
    "/version",
    lambda facts: facts.kind == "vllm",
    lambda about, answer: replace(about, vllm=answer.read(ServerVersion)),
)
_OLLAMA = _probe(
    "Ollama",
    "/api/version",
    lambda facts: facts.kind == "openai-compatible",
    lambda about, answer: replace(about, ollama=answer.read(ServerVersion)),
)
_STUDIO = _probe(
    "LM Studio",
    "/api/v0/models",
    lambda facts: facts.kind == "openai-compatible",
    lambda about, answer: replace(about, studio=answer.read(StudioModelList)),
)


def _ask_show(facts: Facts) -> Question | str:
    body = msgspec.json.encode({"model": facts.model})
    return Question(path="/api/show", root=True, body=body) if facts.kind == "ollama" else ""


_SHOW = Probe(
    topic="Ollama's model",
    asks="POST /api/show",
    ask=_ask_show,
    read=lambda facts, answer: (_learnt(facts, replace(facts.about, shown=answer.read(OllamaModel))), None),
)

IDENTIFY = (_MODELS, _PROPS, _VLLM, _OLLAMA, _STUDIO, _SHOW)
"""What is asked first, of every server."""
