"""Probes that ask a server what it is: its kind, its models, its context. None of them runs the model."""

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from forge.backends.doctor.facts import Facts, Finding, Kind, Probe, Question, is_page, told
from forge.backends.questions import Answer

OWNERS: dict[str, Kind] = {"llamacpp": "llama-server", "vllm": "vllm", "library": "ollama"}
"""Kinds by what they write into `owned_by` of their models."""

Read = tuple[Facts, Finding | None]


class _Meta(Struct):
    n_ctx: int | None = None


class _Model(Struct):
    id: str
    owned_by: str = ""
    max_model_len: int | None = None
    meta: _Meta | None = None


class _Models(Struct):
    data: list[_Model]


def _read_models(facts: Facts, answer: Answer) -> Read:
    if fatal := _turned_away(answer):
        return replace(facts, fatal=fatal), Finding(topic="models", verdict="no", came=told(answer), means=fatal)
    found = answer.read(_Models)
    if found is None:
        return facts, _no_list(answer)
    names = tuple(m.id for m in found.data)
    model = facts.model or (names[0] if names else "")
    chosen = next((m for m in found.data if m.id == model), _Model(id=""))
    known = replace(facts, models=names, model=model)
    owner = chosen.owned_by.lower()
    if (kind := OWNERS.get(owner)) and facts.kind == "openai-compatible":
        known = replace(known, kind=kind, known_by=f'/v1/models says owned_by "{owner}"')
    if chosen.max_model_len:
        known = replace(known, context_tokens=chosen.max_model_len, context_source="max_model_len of /v1/models")
    elif chosen.meta and chosen.meta.n_ctx:
        known = replace(known, context_tokens=chosen.meta.n_ctx, context_source="n_ctx of /v1/models")
    return known, _listed(names, facts.model)


def _turned_away(answer: Answer) -> str:
    """Why nothing more can be asked there, empty if something can."""
    if answer.status in {401, 403}:
        return "it wants a key, or another one: name the environment variable that holds it with --api-key-env"
    if 300 <= answer.status < 400:
        return f"it sends to another address ({answer.location or 'unnamed'}): give that one"
    if answer.status == 503:
        return "it is not ready: wait until its model is loaded (its log says when), then ask again"
    return ""


def _no_list(answer: Answer) -> Finding:
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


MODELS = Probe(topic="models", asks="GET /v1/models", ask=lambda _: Question(path="/models"), read=_read_models)


class _Settings(Struct):
    n_ctx: int | None = None


class _Props(Struct):
    default_generation_settings: _Settings
    total_slots: int | None = None
    build_info: str = ""
    chat_template: str | None = None
    chat_template_caps: dict[str, bool] = {}


def _read_props(facts: Facts, answer: Answer) -> Read:
    found = answer.read(_Props)
    if found is None:
        return facts, None
    context = found.default_generation_settings.n_ctx
    tools = found.chat_template_caps.get("supports_tools")
    known = replace(
        facts,
        kind="llama-server",
        known_by="it answers /props",
        build=found.build_info,
        slots=found.total_slots,
        template=found.chat_template,
        template_tools="tools" in found.chat_template if tools is None and found.chat_template else tools,
        context_tokens=context or facts.context_tokens,
        context_source="n_ctx of /props" if context else facts.context_source,
    )
    return known, None


def _ask_props(facts: Facts) -> Question | str:
    return Question(path="/props", root=True) if facts.kind in {"llama-server", "openai-compatible"} else ""


PROPS = Probe(topic="llama.cpp", asks="GET /props", ask=_ask_props, read=_read_props)


class _Version(Struct):
    version: str


def _read_vllm(facts: Facts, answer: Answer) -> Read:
    found = answer.read(_Version)
    if found is None:
        return facts, None
    return replace(facts, kind="vllm", known_by=facts.known_by or "it answers /version", build=found.version), None


def _ask_vllm(facts: Facts) -> Question | str:
    return Question(path="/version", root=True) if facts.kind in {"vllm", "openai-compatible"} else ""


VLLM = Probe(topic="vLLM", asks="GET /version", ask=_ask_vllm, read=_read_vllm)


def _read_ollama(facts: Facts, answer: Answer) -> Read:
    found = answer.read(_Version)
    if found is not None:
        return replace(facts, kind="ollama", known_by="it answers /api/version", build=found.version), None
    # Others write "library" too; only Ollama has its own protocol.
    return (replace(facts, kind="openai-compatible", known_by="") if facts.kind == "ollama" else facts), None


def _ask_ollama(facts: Facts) -> Question | str:
    return Question(path="/api/version", root=True) if facts.kind in {"ollama", "openai-compatible"} else ""


OLLAMA = Probe(topic="Ollama", asks="GET /api/version", ask=_ask_ollama, read=_read_ollama)


class _Loaded(Struct):
    id: str
    max_context_length: int | None = None
    loaded_context_length: int | None = None


class _Studio(Struct):
    data: list[_Loaded]


def _read_studio(facts: Facts, answer: Answer) -> Read:
    found = answer.read(_Studio)
    if found is None:
        return facts, None
    chosen = next((m for m in found.data if m.id == facts.model), None)
    loaded, most = (chosen.loaded_context_length, chosen.max_context_length) if chosen else (None, None)
    field = "loaded_context_length" if loaded else "max_context_length"
    source = f"{field} of /api/v0/models" if loaded or most else ""
    by = "it answers /api/v0/models"
    known = replace(facts, kind="lm-studio", known_by=by, context_tokens=loaded or most, context_source=source)
    return known, None


def _ask_studio(facts: Facts) -> Question | str:
    return Question(path="/api/v0/models", root=True) if facts.kind == "openai-compatible" else ""


STUDIO = Probe(topic="LM Studio", asks="GET /api/v0/models", ask=_ask_studio, read=_read_studio)


class _Shown(Struct):
    model_info: dict[str, object] = {}
    template: str | None = None
    capabilities: list[str] = []


def _read_show(facts: Facts, answer: Answer) -> Read:
    found = answer.read(_Shown)
    if found is None:
        return facts, None
    sizes = (n for name, n in found.model_info.items() if name.endswith(".context_length"))
    size = next((n for n in sizes if isinstance(n, int) and n > 0), None)
    source = "the model's own limit, in /api/show" if size else ""
    tools = "tools" in found.capabilities if found.capabilities else None
    return replace(facts, context_tokens=size, context_source=source, template_tools=tools), None


def _ask_show(facts: Facts) -> Question | str:
    body = msgspec.json.encode({"model": facts.model})
    return Question(path="/api/show", root=True, body=body) if facts.kind == "ollama" else ""


SHOW = Probe(topic="Ollama's model", asks="POST /api/show", ask=_ask_show, read=_read_show)

IDENTIFY = (MODELS, PROPS, VLLM, OLLAMA, STUDIO, SHOW)
"""What is asked first, of every server."""
