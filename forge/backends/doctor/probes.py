"""Probes: how a server handles tools, constraints and limits."""

from collections.abc import Callable, Mapping

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from forge.backends.doctor.facts import WANTS_KEY, Facts, Finding, Probe, ProbeRequest, error_line, flattened, is_page
from forge.backends.endpoints import TokenList
from forge.backends.profile import named_profile
from forge.backends.questions import ServerAnswer
from forge.errors import quantity
from stages import rescue
from stages.confidence.measure import ALTERNATIVES
from stages.decoding import decode_or
from stages.effect import Reply, Request
from stages.message import History, User
from stages.reasoning import split_reasoning
from stages.rescue.found import FoundCall
from stages.schema import Fits, checker, project
from stages.tool import ToolSpec
from stages.wire import tool_schemas
from stages.wire.openai.chat import LOGPROBS_FIELDS
from stages.wire.sampling import Sampling
from stages.wire.wires import Constrain, Dialect, Wire, wire

# Requests are encoded and decoded with forge's own codecs, so that probes test what a run sends.

WEATHER = ToolSpec(
    name="get_weather",
    description="Get the current weather for a city",
    parameters=Raw(
        b'{"type":"object","properties":{"city":{"type":"string"},"unit":{"enum":["celsius","fahrenheit"]}},'
        b'"required":["city","unit"]}'
    ),
    effect="read",
)
SEARCH = ToolSpec(
    name="search_docs",
    description="Full-text search in the documentation",
    parameters=Raw(b'{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}'),
    effect="read",
)
TOOLS = (WEATHER, SEARCH)
_PARAMETERS = {"get_weather": ("city", "unit"), "search_docs": ("query",)}

ASKED = (User(text="What is the weather in Paris, in celsius?"),)
"""A question that no model can answer by itself, but one of the tools can."""

_OLLAMA_CONTEXT = 4096
"""Context to request from Ollama: its default, so that the model is not reloaded."""

_THINKING = 8
"""Factor for the reply limit of a reasoning model."""


def spoken(facts: Facts, constrain: Constrain = "json_schema", fields: Mapping[str, object] | None = None) -> Wire:
    """The protocol for a server of this kind, with extra fields in each request."""
    body = dict(fields or {})
    if facts.kind == "ollama":
        context = min(facts.context.tokens or _OLLAMA_CONTEXT, _OLLAMA_CONTEXT)
        return wire(Dialect(wire="ollama", constrain="format", context_tokens=context, body=body))
    names = named_profile("openai").option_names if facts.kind == "openai" else {}
    return wire(Dialect(constrain=constrain, body=body, option_names=names))


def _question(
    facts: Facts,
    history: History = ASKED,
    *,
    tokens: int,
    tools: tuple[ToolSpec, ...] = (),
    schema: Raw | None = None,
    constrain: Constrain = "json_schema",
    fields: Mapping[str, object] | None = None,
) -> ProbeRequest:
    """A chat request as a run would write it; `fields` are extra ones that forge itself never sends."""
    protocol = spoken(facts, constrain, fields)
    room = tokens * _THINKING if facts.thinks else tokens
    # OpenAI's newer models accept no temperature but their own.
    sampling = Sampling(max_tokens=room) if facts.kind == "openai" else Sampling(temperature=0, max_tokens=room)
    request = Request(
        head=protocol.head(facts.model, sampling, history),
        messages=protocol.messages(history),
        tail=protocol.tail(protocol.tools(tools) if tools else None, schema),
    )
    return ProbeRequest(path=protocol.path, root=protocol.at_root, body=request.body)


# Basics that every run needs: a reply, its usage, its finish reason, and the accepted roles. A reader gets the decoded
# reply, None for a refusal, and returns facts and a finding.

_Read = tuple[dict[str, object], Finding]


def _yes(came: str, means: str = "", does: str = "") -> Finding:
    return Finding(verdict="yes", came=came, means=means, does=does)


def _no(came: str, means: str = "", does: str = "") -> Finding:
    return Finding(verdict="no", came=came, means=means, does=does)


def _unclear(came: str, means: str = "", does: str = "") -> Finding:
    return Finding(verdict="unclear", came=came, means=means, does=does)


def _shown(said: Reply) -> str:
    return flattened(said.text, 80) or "no text"


def _read_reply(facts: Facts, answer: ServerAnswer, said: Reply | None) -> _Read:
    if said is None:
        fatal = _no_reply(facts, answer)
        came = "a web page" if is_page(answer) else error_line(answer)
        return {"fatal": fatal}, _no(came, fatal)
    tokens = said.usage.prompt if said.usage and said.usage.prompt > 0 else None
    thinks = bool(said.reasoning or split_reasoning(said.text)[0])
    thought = ", with reasoning" if thinks else ""
    return {"prompt_tokens": tokens, "thinks": thinks}, _yes(
        f"{f'{tokens} prompt tokens' if tokens else 'no usage'}, finish_reason {said.finish}{thought}",
        "" if tokens else "how full the context is can only be estimated",
        "keeps reasoning out of the text" if thinks else "",
    )


def _no_reply(facts: Facts, answer: ServerAnswer) -> str:
    """Why there is no usable reply, and what to do."""
    if is_page(answer):
        return "that address is of a web page, no API: give the API's own, which often ends in /v1"
    if answer.status in {401, 403}:
        return WANTS_KEY
    if answer.status == 404 and b"model" in answer.body:
        names = [each.id for each in facts.about.models.data[:5]] if facts.about.models else []
        others = f": it has {', '.join(names)}" if names else ""
        return f"it does not know the model {facts.model!r}{others}; choose with --model"
    if answer.status in {404, 405}:
        return "it has no chat completions there: give the base URL of /chat/completions"
    if answer.status == 429:
        return "it is too busy, or its quota is spent: try again later"
    if answer.good:
        return "its answer is not a chat completion: it speaks another protocol, or something in between garbles it"
    return f"it refuses a plain question ({error_line(answer)}): fix that first"


def _read_two(_: Facts, answer: ServerAnswer, __: Reply | None) -> _Read:
    if answer.good:
        return {"alternating": False}, _yes("accepted", "roles need not take turns")
    means = "its template wants user and assistant to take turns"
    return {"alternating": True}, _no(error_line(answer), means, "joins neighbours of one role")


def _read_logprobs(_: Facts, answer: ServerAnswer, said: Reply | None) -> _Read:
    if said is not None and any(token.others for token in said.tokens):
        came = f"{max(len(token.others) for token in said.tokens)} alternatives of a token"
        return {"logprobs": True}, _yes(came, does="can tell how sure a call is")
    came = error_line(answer) if said is None else "none" if not said.tokens else "no alternatives"
    return {"logprobs": False}, _no(came, "how sure a call is cannot be known")


# Constrained decoding: only a constraint can produce these replies.

_WORDS = ("vlorp-73", "kwint-19")
"""Made-up words that the prompt does not contain."""

_NONSENSE = tuple(
    ToolSpec(
        name=name,
        description="",
        parameters=Raw(
            b'{"type":"object","properties":{"zub":{"enum":["vlorp-73","kwint-19"]}},'
            b'"required":["zub"],"additionalProperties":false}'
        ),
    )
    for name in ("brask", "drimmel")
)
"""Two tools that no prompt mentions; a run constrains replies to its tools in the same way."""


def _obeyed(text: str) -> bool:
    """Whether a reply is one of the calls that only the schema contains."""
    value = decode_or(msgspec.json.Decoder(), text, None)
    if isinstance(value, dict) and isinstance(value.get("call"), dict):
        value = value["call"]
    if not isinstance(value, dict) or value.get("tool") not in {tool.name for tool in _NONSENSE}:
        return False
    arguments = value.get("args")
    return isinstance(arguments, dict) and arguments.get("zub") in _WORDS


def _schema_probe(constrain: Constrain, topic: str) -> Probe:
    """A probe of one way to request a JSON Schema, skipped once an earlier way has worked."""
    strict = constrain == "strict"

    def ask(facts: Facts) -> ProbeRequest | str:
        elsewhere = facts.kind not in {"vllm", "openai", "openai-compatible"}
        if constrain != "json_schema" and (facts.constrains or elsewhere):
            return ""
        if facts.kind == "openai" and not strict:
            return ""
        schemas = [project(tool.parameters, "openai-strict" if strict else "llama.cpp").schema for tool in _NONSENSE]
        branches = [tool_schemas.branch(tool, schema) for tool, schema in zip(_NONSENSE, schemas, strict=True)]
        wanted = tool_schemas.one_of(branches, wrapped=strict)
        capital = (User(text="What is the capital of France?"),)
        return _question(facts, capital, schema=wanted, constrain=constrain, tokens=96)

    def read(facts: Facts, answer: ServerAnswer, said: Reply | None) -> _Read:
        way: Constrain = "format" if facts.kind == "ollama" else constrain

        def known(obeyed: bool | None) -> dict[str, object]:
            return {"enforced": {**facts.enforced, way: obeyed}}

        if said is None:
            return known(False), _no(error_line(answer), "it refuses the schema")
        if _obeyed(said.text):
            does = "constrains replies to the calls that are legal"
            return known(True), _yes(_shown(said), "enforced: the model could not have guessed this", does)
        if said.finish == "length" and not said.text.strip():
            return known(None), _unclear("it thought until the limit", "the reply was cut before it began")
        return known(False), _no(_shown(said), "accepted and ignored")

    return _probe(topic, "a capital, under a schema of nonsense", 96, ask, read)


# Limits: a prompt that is too long, a tokenizer that answers.

_LARGEST = 32768
"""Maximum context, in tokens, that the probe fills; more would be slow or expensive."""


def _ask_overflow(facts: Facts) -> ProbeRequest | str:
    size = _OLLAMA_CONTEXT if facts.kind == "ollama" else facts.context.tokens
    if size is None:
        return "the size of its context is not known"
    if size > _LARGEST:
        return f"a context of {size} tokens is too large to be filled for this"
    # In every known tokenizer, such a word is at least one token.
    return _question(facts, (User(text="word " * (size + 64)),), tokens=1)


def _read_overflow(_: Facts, answer: ServerAnswer, said: Reply | None) -> _Read:
    if not answer.good:
        return {}, _yes(error_line(answer), "it refuses what does not fit")
    taken = f", {said.usage.prompt} tokens counted" if said and said.usage else ""
    means = "it silently cuts what does not fit, or its context is larger than it says"
    does = "compacts before the context is full; forge run --context gives it the true size"
    return {}, _no(f"a reply{taken}", means, does)


def _ask_tokens(facts: Facts) -> ProbeRequest | str:
    if facts.kind in {"ollama", "lm-studio"}:
        return ""
    body = {"content": "hello world", "prompt": "hello world", "model": facts.model}
    return ProbeRequest(path="/tokenize", root=True, body=msgspec.json.encode(body))


def _read_tokens(facts: Facts, answer: ServerAnswer, _: Reply | None) -> _Read:
    found = answer.read(TokenList)
    if found is None:
        does = "estimates, and learns from the usage of replies"
        return {"tokenizer": False}, _no(error_line(answer), "prompts cannot be counted before they are sent", does)
    # vLLM returns the number as well, and accepts the messages of a request.
    known = "messages" if found.count is not None else facts.kind == "llama-server"
    does = "counts the first prompt exactly" if known else "estimates: it reads llama.cpp's and vLLM's only"
    return {"tokenizer": known}, _yes(f"{len(found.tokens)} tokens", does=does)


# Native tool calls: whether they come at all, with valid arguments, and when required.

_CHECKS = {tool.name: checker(tool.parameters) for tool in TOOLS}


def in_text(said: Reply) -> tuple[FoundCall, ...]:
    """The calls that a reply contains as text."""
    # By its package: its grammars are compiled by the first use, and a server known from earlier needs none.
    return rescue.rescue(said.text, _PARAMETERS).calls


def _read_calls(facts: Facts, answer: ServerAnswer, said: Reply | None) -> _Read:
    into_prompt = "writes the tools into the prompt"
    if said is None:
        return {"calls": "refused"}, _no(error_line(answer), "it refuses requests with tools", into_prompt)
    if said.calls:
        call = said.calls[0]
        came = f"{call.name} {flattened(call.arguments)}"
        if call.name in _CHECKS and isinstance(_CHECKS[call.name](call.arguments), Fits):
            known = {"calls": "native", "valid_arguments": True}
            return known, _yes(came, "a native call", "uses them where it cannot constrain the reply")
        means = "a native call, with arguments that its schema does not allow"
        does = "checks the arguments, and has them corrected"
        return {"calls": "native", "valid_arguments": False}, _unclear(came, means, does)
    if found := in_text(said):
        return {"calls": "text"}, _no(
            f"{found[0].name} {flattened(found[0].arguments)} as text, of the family `{found[0].origin}`",
            "the model knows the tools, and the server does not recognise its calls: the template does not fit it",
            "finds calls in the text, and prefers a mode that does not need them there",
        )
    tokens, came = said.usage.prompt if said.usage else None, f"no call: {flattened(said.text, 80)!r}"
    if tokens and tokens == facts.prompt_tokens:
        came = f"{came}; the prompt has {tokens} tokens with tools and without"
        means = "it silently ignores `tools`: its template has no place for them"
        return {"calls": "ignored"}, _no(came, means, into_prompt)
    means = "the model was shown the tools, and made no call" if tokens else "whether it shows tools cannot be seen"
    return {"calls": "unused"}, _unclear(came, means, "prefers the prompt for tools")


def _of(said: Reply) -> str:
    if said.calls:
        return ", ".join(f"{call.name} {flattened(call.arguments, 80)}" for call in said.calls[:3])
    return f"{flattened(said.text, 80)!r}" if said.text else "nothing"


def _refused(field: str, answer: ServerAnswer) -> _Read:
    return {field: False}, _no(error_line(answer), "it refuses it", "never relies on it")


def _read_required(_: Facts, answer: ServerAnswer, said: Reply | None) -> _Read:
    if said is None:
        return _refused("required", answer)
    if said.calls:
        return {"required": True}, _yes(_of(said), "a call comes even where the model would not make one")
    means = "it is not enforced" + ("; the reply ran on to its limit" if said.finish == "length" else "")
    return {"required": False}, _no(_of(said), means, "never relies on it")


def _read_named(_: Facts, answer: ServerAnswer, said: Reply | None) -> _Read:
    if said is None:
        return _refused("named", answer)
    if said.calls and all(call.name == SEARCH.name for call in said.calls):
        return {"named": True}, _yes(_of(said), "the named tool is called, against the question")
    return {"named": False}, _no(_of(said), "it is not enforced", "never relies on it")


# The table of probes.

_Ask = Callable[[Facts], ProbeRequest | str]


def _probe(
    topic: str, asks: str, tokens: int, ask: _Ask, read: Callable[[Facts, ServerAnswer, Reply | None], _Read]
) -> Probe:
    def judged(facts: Facts, answer: ServerAnswer) -> tuple[Facts, Finding]:
        found = spoken(facts).decode(answer.body) if answer.good else None
        known, finding = read(facts, answer, found if isinstance(found, Reply) else None)
        return replace(facts, **known), finding

    limited = f"{asks}, {quantity(tokens, 'token')}" if tokens else asks
    return Probe(topic=topic, asks=limited, ask=ask, read=judged, tokens=tokens)


def _chat_probe(
    topic: str,
    asks: str,
    read: Callable[[Facts, ServerAnswer, Reply | None], _Read],
    *,
    history: History = ASKED,
    tokens: int = 1,
    tools: tuple[ToolSpec, ...] = (),
    fields: Mapping[str, object] | None = None,
    unless: Callable[[Facts], str | None] = lambda _: None,
) -> Probe:
    """A probe with the same question for every server, unless `unless` gives a reason to skip it."""

    def ask(facts: Facts) -> ProbeRequest | str:
        why = unless(facts)
        return _question(facts, history, tokens=tokens, tools=tools, fields=fields) if why is None else why

    return _probe(topic, asks, tokens, ask, read)


def _without_logprobs(facts: Facts) -> str | None:
    return "Ollama's own protocol has none" if facts.kind == "ollama" else None


def _without_choice(facts: Facts) -> str | None:
    if facts.kind == "ollama":
        return "Ollama's own protocol has no tool_choice"
    return {"refused": "it refuses tools", "ignored": "it ignores tools"}.get(facts.calls or "")


REPLY = _chat_probe("reply", "a plain question", _read_reply, tokens=8)

BASICS = (
    REPLY,
    _chat_probe("two messages in a row", "two messages of the user", _read_two, history=(User(text="Hello."), *ASKED)),
    _chat_probe(
        "log-probabilities",
        f"yes or no, with {ALTERNATIVES} alternatives of each token",
        _read_logprobs,
        history=(User(text="Yes or no?"),),
        tokens=4,
        fields=LOGPROBS_FIELDS,
        unless=_without_logprobs,
    ),
)

CALLS = _chat_probe("tool calls", "the same with two tools", _read_calls, tokens=128, tools=TOOLS)

TOOLCALLS = (
    CALLS,
    _chat_probe(
        "tool_choice required",
        "a greeting, with a call required",
        _read_required,
        history=(User(text="Say hello, nothing else."),),
        tokens=64,
        tools=TOOLS,
        fields={"tool_choice": "required"},
        unless=_without_choice,
    ),
    _chat_probe(
        "tool_choice by name",
        "the weather, with a call of the other tool demanded",
        _read_named,
        tokens=64,
        tools=TOOLS,
        fields={"tool_choice": {"type": "function", "function": {"name": SEARCH.name}}},
        unless=_without_choice,
    ),
)

SCHEMA = _schema_probe("json_schema", "JSON Schema")
WAYS = (
    SCHEMA,
    _schema_probe("strict", "strict JSON Schema"),
    _schema_probe("json_object", "json_object with a schema"),
)
"""Ways to request a JSON Schema; each is tried only if the earlier ones failed."""

LIMITS = (
    _probe("prompt over the context", "a prompt that is too long", 1, _ask_overflow, _read_overflow),
    _probe("tokenizer", "POST /tokenize", 0, _ask_tokens, _read_tokens),
)
