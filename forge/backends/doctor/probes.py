"""Probes: what a server does with tools, constraints, limits and streams, found by asking."""

from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from forge.backends.doctor.facts import (
    Facts,
    Finding,
    FindingVerdict,
    Probe,
    Question,
    constrains,
    is_page,
    one_line,
    told,
)
from forge.backends.endpoints import TokenList
from forge.backends.profile import named_profile
from forge.backends.questions import ServerAnswer, decoded
from stages.confidence.measure import ALTERNATIVES
from stages.effect import Fault, Reply, Request
from stages.message import History, System, User
from stages.reasoning import split_reasoning
from stages.repair.decoding import decode
from stages.rescue import rescue
from stages.rescue.found import FoundCall
from stages.schema import Fits, checker, project
from stages.tool import ToolSpec
from stages.wire import wires
from stages.wire.deltas import CallDelta, CallStarted, Ended, Piece, Sampling, StreamRead, TextDelta
from stages.wire.openai import chat as openai
from stages.wire.openai.chat import LOGPROBS_FIELDS
from stages.wire.wires import Constrain, Dialect, Wire, wire

# Chat requests of the doctor, written and read by forge's own codecs, so that what is tried is what a run sends.

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
"""What no model knows by itself, and one of the tools does."""

_OLLAMA_CONTEXT = 4096
"""Tokens that Ollama is told to make room for: what it takes by itself, so that no model is loaded again for this."""

_THINKING = 8
"""A model that thinks first may write so many times more."""


def spoken(facts: Facts, constrain: Constrain = "json_schema", fields: Mapping[str, object] | None = None) -> Wire:
    """The protocol in which forge speaks to a server of this kind, with further fields in each request."""
    body = dict(fields or {})
    if facts.kind == "ollama":
        context = min(facts.context_tokens or _OLLAMA_CONTEXT, _OLLAMA_CONTEXT)
        return wire(Dialect(wire="ollama", constrain="format", context_tokens=context, body=body))
    names = named_profile("openai").option_names if facts.kind == "openai" else {}
    return wire(Dialect(constrain=constrain, body=body, option_names=names))


def question(
    facts: Facts,
    history: History = ASKED,
    *,
    tokens: int,
    tools: tuple[ToolSpec, ...] = (),
    schema: Raw | None = None,
    constrain: Constrain = "json_schema",
    fields: Mapping[str, object] | None = None,
) -> Question:
    """A chat request as a run would write it; `fields` are further ones, of which forge itself sends none."""
    protocol = spoken(facts, constrain, fields)
    room = tokens * _THINKING if facts.thinks else tokens
    # OpenAI's newer models take no temperature but their own.
    sampling = Sampling(max_tokens=room) if facts.kind == "openai" else Sampling(temperature=0, max_tokens=room)
    request = Request(
        head=protocol.head(facts.model, sampling, history),
        messages=protocol.messages(history),
        tail=protocol.tail(protocol.tools(tools) if tools else None, schema),
    )
    return Question(path=protocol.path, root=protocol.at_root, body=request.body)


def system(text: str, *rest: User) -> History:
    """A conversation that opens with a system prompt."""
    return (System(text=text), *rest)


def reply(facts: Facts, answer: ServerAnswer) -> Reply | None:
    """The reply that an answer holds; None for an error, and for what is no reply."""
    found = spoken(facts).decode(answer.body) if answer.good else None
    return found if isinstance(found, Reply) else None


def in_text(said: Reply) -> tuple[FoundCall, ...]:
    """The calls that a reply writes as text."""
    return rescue(said.text, _PARAMETERS).calls


class _Timings(Struct):
    cache_n: int = 0


class _Timed(Struct):
    timings: _Timings | None = None


def cached(said: Reply, answer: ServerAnswer) -> int | None:
    """Tokens of the prompt that the server had kept; None where it does not say."""
    timed = decoded(answer.body, _Timed)
    if timed and timed.timings:
        return timed.timings.cache_n
    return said.usage.cached if said.usage and b'"cached_tokens"' in answer.body else None


def _json_of(text: str) -> object:
    """The JSON value that a text is; the text itself if it is none."""
    try:
        return decode(msgspec.json.Decoder(), text)
    except msgspec.DecodeError:
        return text


# Probes of what every run needs: a reply, its usage, its finish reason, and the roles that the template accepts.


class _Thought(Struct):
    reasoning_content: str | None = None
    reasoning: str | None = None
    thinking: str | None = None


class _Choice(Struct):
    message: _Thought


class _Thinking(Struct):
    choices: list[_Choice] = []
    message: _Thought | None = None


def _thinks(answer: ServerAnswer, said: Reply) -> str:
    """Where the model's reasoning comes: the name of a field, `text`, or nowhere."""
    found = decoded(answer.body, _Thinking)
    thought = found and (found.message or (found.choices[0].message if found.choices else None))
    for name in _Thought.__struct_fields__:
        if thought and getattr(thought, name):
            return name
    return "text" if split_reasoning(said.text)[0] else ""


def _read_reply(facts: Facts, answer: ServerAnswer) -> tuple[Facts, Finding]:
    said = reply(facts, answer)
    if said is None:
        fatal = _no_reply(facts, answer)
        came = "a web page" if is_page(answer) else told(answer)
        return replace(facts, answers=False, fatal=fatal), Finding(topic="reply", verdict="no", came=came, means=fatal)
    counted = said.usage is not None and said.usage.prompt > 0
    known = replace(
        facts,
        answers=True,
        usage=counted,
        prompt_tokens=said.usage.prompt if said.usage and counted else None,
        thinks=_thinks(answer, said),
        says_cut=True if said.finish == "length" else None,
    )
    return known, _of_reply(known, said)


def _of_reply(known: Facts, said: Reply) -> Finding:
    usage = f"{known.prompt_tokens} prompt tokens" if known.usage else "no usage"
    thought = {"": "", "text": ", reasoning in the text"}.get(known.thinks, f", reasoning in `{known.thinks}`")
    return Finding(
        topic="reply",
        verdict="yes",
        came=f"{usage}, finish_reason {said.finish}{thought}",
        means="" if known.usage else "how full the context is can only be estimated",
        does="keeps reasoning out of the text" if known.thinks else "",
    )


def _no_reply(facts: Facts, answer: ServerAnswer) -> str:
    """What is wrong where nothing replies, and what to do."""
    if is_page(answer):
        return "that address is of a web page, no API: give the API's own, which often ends in /v1"
    if answer.status in {401, 403}:
        return "it wants a key, or another one: name the environment variable that holds it with --api-key-env"
    if answer.status == 404 and b"model" in answer.body:
        others = f": it has {', '.join(facts.models[:5])}" if facts.models else ""
        return f"it does not know the model {facts.model!r}{others}; choose with --model"
    if answer.status in {404, 405}:
        return "it has no chat completions there: give the address that /chat/completions stands below"
    if answer.status == 429:
        return "it is too busy, or its quota is spent: try again later"
    if answer.good:
        return "what it answers is no chat completion: it speaks another protocol, or something between garbles it"
    return f"it refuses a plain question ({told(answer)}): mend that first"


REPLY = Probe(
    topic="reply",
    asks="a plain question, 8 tokens",
    ask=lambda facts: question(facts, tokens=8),
    read=_read_reply,
    tokens=8,
)


def _read_system(facts: Facts, answer: ServerAnswer) -> tuple[Facts, Finding]:
    if answer.good:
        return replace(facts, system=True), Finding(topic="system prompt", verdict="yes", came="accepted")
    means = "its template has no place for a system prompt"
    does = "nothing about it yet: write the instructions into the user's message"
    return replace(facts, system=False), Finding(
        topic="system prompt", verdict="no", came=told(answer), means=means, does=does
    )


_SYSTEM = Probe(
    topic="system prompt",
    asks="a system prompt, 1 token",
    ask=lambda facts: question(facts, system("Be brief.", *ASKED), tokens=1),
    read=_read_system,
    tokens=1,
)


def _ask_two(facts: Facts) -> Question | str:
    return question(facts, (User(text="Hello."), *ASKED), tokens=1)


def _read_two(facts: Facts, answer: ServerAnswer) -> tuple[Facts, Finding]:
    if answer.good:
        found = Finding(
            topic="two messages in a row", verdict="yes", came="accepted", means="roles need not take turns"
        )
        return replace(facts, alternating=False), found
    return replace(facts, alternating=True), Finding(
        topic="two messages in a row",
        verdict="no",
        came=told(answer),
        means="its template wants user and assistant to take turns",
        does="joins neighbours of one role",
    )


_TWO = Probe(
    topic="two messages in a row", asks="two messages of the user, 1 token", ask=_ask_two, read=_read_two, tokens=1
)


def _ask_logprobs(facts: Facts) -> Question | str:
    if facts.kind == "ollama":
        return "Ollama's own protocol has none"
    return question(facts, (User(text="Yes or no?"),), tokens=4, fields=LOGPROBS_FIELDS)


def _read_logprobs(facts: Facts, answer: ServerAnswer) -> tuple[Facts, Finding]:
    topic, said = "log-probabilities", reply(facts, answer)
    if said is not None and any(token.others for token in said.tokens):
        came = f"{max(len(token.others) for token in said.tokens)} alternatives of a token"
        does = "can tell how sure a call is"
        return replace(facts, logprobs=True), Finding(topic=topic, verdict="yes", came=came, does=does)
    came = told(answer) if said is None else "none" if not said.tokens else "no alternatives"
    found = Finding(topic=topic, verdict="no", came=came, means="how sure a call is cannot be known")
    return replace(facts, logprobs=False), found


_LOGPROBS = Probe(
    topic="log-probabilities",
    asks=f"yes or no, with {ALTERNATIVES} alternatives of each token, 4 tokens",
    ask=_ask_logprobs,
    read=_read_logprobs,
    tokens=4,
)

BASICS = (REPLY, _SYSTEM, _TWO, _LOGPROBS)


# Probes of constrained decoding: replies that no model would give by itself prove that a constraint is obeyed.

_CAPITAL = (User(text="What is the capital of France?"),)
_WORDS = ("vlorp-73", "kwint-19")
"""Words of which the model is not told, so that it can only be led to them."""

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
"""Two tools that no prompt mentions; a run constrains replies to one of its tools in the same way."""


def _schema(constrain: Constrain) -> Raw:
    strict = constrain == "strict"
    branches = [
        wires.branch(t, project(t.parameters, "openai-strict" if strict else "llama.cpp").schema) for t in _NONSENSE
    ]
    return wires.one_of(branches, wrapped=strict)


def _obeyed(text: str) -> bool:
    """Whether a reply is one of the calls that only the schema knows."""
    value = _json_of(text)
    if isinstance(value, dict) and isinstance(value.get("call"), dict):
        value = value["call"]
    if not isinstance(value, dict) or value.get("tool") not in {tool.name for tool in _NONSENSE}:
        return False
    arguments = value.get("args")
    return isinstance(arguments, dict) and arguments.get("zub") in _WORDS


def _probe(constrain: Constrain, topic: str) -> Probe:
    """A probe of one way to ask for a JSON Schema; only the ways before it having failed is it worth asking."""
    field = {"json_schema": "schema", "json_object": "object_schema"}.get(constrain, constrain)

    def ask(facts: Facts) -> Question | str:
        elsewhere = facts.kind not in {"vllm", "openai", "openai-compatible"}
        if constrain != "json_schema" and (constrains(facts) or elsewhere):
            return ""
        if facts.kind == "openai" and constrain != "strict":
            return ""
        return question(facts, _CAPITAL, schema=_schema(constrain), constrain=constrain, tokens=96)

    def read(facts: Facts, answer: ServerAnswer) -> tuple[Facts, Finding]:
        verdict, came, means = _verdict(facts, answer)
        does = "constrains replies to the calls that are legal" if verdict == "yes" else ""
        known = replace(facts, **{field: None if verdict == "unclear" else verdict == "yes"})
        return known, Finding(topic=topic, verdict=verdict, came=came, means=means, does=does)

    return Probe(topic=topic, asks="a capital, under a schema of nonsense, 96 tokens", ask=ask, read=read, tokens=96)


def _verdict(facts: Facts, answer: ServerAnswer) -> tuple[FindingVerdict, str, str]:
    """What the answer to a schema of nonsense shows: the verdict, what came, what it means."""
    said = reply(facts, answer)
    if said is None:
        return "no", told(answer), "it refuses the schema"
    came = one_line(said.text, 80) or "no text"
    if _obeyed(said.text):
        return "yes", came, "enforced: the model could not have guessed this"
    if said.finish == "length" and not said.text.strip():
        return "unclear", "it thought until the limit", "the reply was cut before it began"
    return "no", came, "accepted and ignored"


SCHEMA = _probe("json_schema", "JSON Schema")
_STRICT = _probe("strict", "strict JSON Schema")
_OBJECT_SCHEMA = _probe("json_object", "json_object with a schema")
_STRUCTURED = _probe("structured_outputs", "structured_outputs")
_GUIDED = _probe("guided_json", "guided_json")


def _read_object(facts: Facts, answer: ServerAnswer) -> tuple[Facts, Finding]:
    topic = "json_object"
    if (said := reply(facts, answer)) is None:
        found = Finding(topic=topic, verdict="no", came=told(answer), means="it refuses it")
        return replace(facts, json_object=False), found
    kept = isinstance(_json_of(said.text), dict) or (said.finish == "length" and said.text.lstrip().startswith("{"))
    means = "enforced, against the request" if kept else "accepted and ignored"
    came = one_line(said.text, 80) or "no text"
    found = Finding(topic=topic, verdict="yes" if kept else "no", came=came, means=means)
    return replace(facts, json_object=kept), replace(found, does="does not use it: a schema says more")


def _ask_object(facts: Facts) -> Question | str:
    if facts.kind == "ollama":
        return ""
    asked = (User(text="Do not answer in JSON. Say hello in plain words."),)
    return question(facts, asked, tokens=48, fields={"response_format": {"type": "json_object"}})


_OBJECT = Probe(
    topic="json_object", asks="plain words, under json_object, 48 tokens", ask=_ask_object, read=_read_object, tokens=48
)

_GRAMMAR_TEXT = 'root ::= "vlorp-73"'


def _ask_grammar(facts: Facts) -> Question | str:
    if facts.kind not in {"llama-server", "openai-compatible"}:
        return ""
    return question(facts, _CAPITAL, tokens=16, fields={"grammar": _GRAMMAR_TEXT})


def _read_grammar(facts: Facts, answer: ServerAnswer) -> tuple[Facts, Finding]:
    topic, does = "GBNF grammar", "does not use it: a schema says the same"
    if (said := reply(facts, answer)) is None:
        found = Finding(topic=topic, verdict="no", came=told(answer), means="it refuses it", does=does)
        return replace(facts, grammar=False), found
    kept = said.text.strip() == _WORDS[0]
    means = "enforced" if kept else "accepted and ignored"
    came = one_line(said.text, 80) or "no text"
    found = Finding(topic=topic, verdict="yes" if kept else "no", came=came, means=means, does=does)
    return replace(facts, grammar=kept), found


_GRAMMAR = Probe(
    topic="GBNF grammar",
    asks="a capital, under a grammar of nonsense, 16 tokens",
    ask=_ask_grammar,
    read=_read_grammar,
    tokens=16,
)


def _ask_both(facts: Facts) -> Question | str:
    if not facts.grammar:
        return ""
    return question(facts, _CAPITAL, tools=TOOLS, tokens=16, fields={"grammar": _GRAMMAR_TEXT})


def _read_both(facts: Facts, answer: ServerAnswer) -> tuple[Facts, Finding]:
    topic = "grammar with tools"
    said = reply(facts, answer)
    kept = said is not None and said.text.strip() == _WORDS[0]
    came = told(answer) if said is None else one_line(said.text, 80) or "no text"
    found = Finding(topic=topic, verdict="yes" if kept else "no", came=came, does="never sends both")
    return replace(facts, grammar_with_tools=kept), found


_BOTH = Probe(topic="grammar with tools", asks="both at once, 16 tokens", ask=_ask_both, read=_read_both, tokens=16)

WAYS = (SCHEMA, _STRICT, _OBJECT_SCHEMA, _STRUCTURED, _GUIDED)
"""The ways to ask for a JSON Schema; each is tried only where those before it failed."""

CONSTRAINTS = (*WAYS, _OBJECT, _GRAMMAR, _BOTH)


# Probes of limits: a truncated reply, a damaged history, a prompt that is too long, the prompt cache.

_LARGEST = 32768
"""Tokens of a context that is filled to see what happens; more would be slow, or dear."""


def _ask_cut(facts: Facts) -> Question | str:
    if facts.calls != "native":
        return question(facts, tokens=3)
    return question(facts, tools=TOOLS, tokens=12)


def _read_cut(facts: Facts, answer: ServerAnswer) -> tuple[Facts, Finding]:
    topic = "cut replies"
    if (said := reply(facts, answer)) is None:
        return facts, Finding(topic=topic, verdict="unclear", came=told(answer))
    came = f"finish_reason {said.finish}"
    if said.calls and not isinstance(_json_of(said.calls[0].arguments), dict):
        came += f", and a call with {one_line(said.calls[0].arguments, 40) or 'no'} arguments"
    if said.finish == "length":
        does = "never runs a call that was cut; tells the model to be shorter"
        means = "a cut reply has status 200, and says so"
        return replace(facts, says_cut=True), Finding(topic=topic, verdict="yes", came=came, means=means, does=does)
    means = "the limit was passed over, or a cut reply cannot be told from a whole one"
    does = "checks every call against its schema"
    return replace(facts, says_cut=False), Finding(topic=topic, verdict="no", came=came, means=means, does=does)


_CUT = Probe(topic="cut replies", asks="a reply that is cut off, 12 tokens", ask=_ask_cut, read=_read_cut, tokens=12)


def _ask_damaged(facts: Facts) -> Question | str:
    if facts.kind == "ollama":
        return "Ollama's own protocol has no arguments as text"
    if facts.calls == "refused":
        return "it refuses tools"
    asked = {"role": "user", "content": ASKED[0].text}
    function = {"name": "get_weather", "arguments": '{"city": "Paris", "unit'}
    call = {"id": "c1", "type": "function", "function": function}
    made = {"role": "assistant", "content": "", "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "c1", "content": '{"temperature": 21}'}
    body = {
        "model": facts.model,
        "max_tokens": 1,
        "messages": [asked, made, result],
        "tools": openai.encode_tools(TOOLS),
    }
    # Written here, for forge's own codec would never write such a history.
    return Question(path="/chat/completions", body=msgspec.json.encode(body))


def _read_damaged(facts: Facts, answer: ServerAnswer) -> tuple[Facts, Finding]:
    topic = "damaged history"
    if answer.good:
        return replace(facts, replays_damage=True), Finding(topic=topic, verdict="yes", came="accepted")
    return replace(facts, replays_damage=False), Finding(
        topic=topic,
        verdict="no",
        came=told(answer),
        means="one damaged call in the history, and it refuses every later request",
        does="mends a call before it enters the history, or keeps it as text",
    )


DAMAGED = Probe(
    topic="damaged history",
    asks="a history with a damaged call, 1 token",
    ask=_ask_damaged,
    read=_read_damaged,
    tokens=1,
)


def _ask_overflow(facts: Facts) -> Question | str:
    size = _OLLAMA_CONTEXT if facts.kind == "ollama" else facts.context_tokens
    if size is None:
        return "the size of its context is not known"
    if size > _LARGEST:
        return f"a context of {size} tokens is too large to be filled for this"
    # In every tokenizer that is known, such a word takes one token at least.
    return question(facts, (User(text="word " * (size + 64)),), tokens=1)


class _Size(msgspec.Struct):
    type: str = ""
    code: str | int | None = None
    n_ctx: int | None = None


class _Overflow(msgspec.Struct):
    error: _Size | str = ""


def _read_overflow(facts: Facts, answer: ServerAnswer) -> tuple[Facts, Finding]:
    topic = "prompt over the context"
    if not answer.good:
        found = decoded(answer.body, _Overflow)
        error = found.error if found and isinstance(found.error, _Size) else _Size()
        kind = f" ({error.type})" if error.type else ""
        return replace(facts, refuses_overflow=True), Finding(
            topic=topic, verdict="yes", came=f"{told(answer)}{kind}", means="it refuses what does not fit"
        )
    said = reply(facts, answer)
    taken = f", {said.usage.prompt} tokens counted" if said and said.usage else ""
    return replace(facts, refuses_overflow=False), Finding(
        topic=topic,
        verdict="no",
        came=f"a reply{taken}",
        means="it cuts what does not fit without a word, or its context is larger than it says",
        does="compacts before the context is full; forge run --context gives it the true size",
    )


_OVERFLOW = Probe(
    topic="prompt over the context",
    asks="a prompt that is too long, 1 token",
    ask=_ask_overflow,
    read=_read_overflow,
    tokens=1,
)


_WARM = (User(text="Repeat after me: " + "one two three four five six seven eight nine ten " * 8),)
"""A prompt to be kept."""


def _read_cache(facts: Facts, answer: ServerAnswer) -> tuple[Facts, Finding]:
    topic = "prompt cache"
    said = reply(facts, answer)
    kept = cached(said, answer) if said else None
    if said is None or said.usage is None or kept is None:
        came = told(answer) if said is None else "no word of it"
        return facts, Finding(topic=topic, verdict="unclear", came=came, means="what is kept cannot be seen")
    most = kept * 2 > said.usage.prompt
    means = (
        "a prompt that goes on from the last one is not read again" if most else "each prompt is read from the start"
    )
    if not most and said.usage.prompt < 1024:
        means += ", short ones like this at least"
    does = "lets every request extend the one before" if most else ""
    came = f"{kept} of {said.usage.prompt} tokens of a repeated prompt were kept"
    found = Finding(topic=topic, verdict="yes" if most else "no", came=came, means=means, does=does)
    return replace(facts, caches=most), found


_CACHE = Probe(
    topic="prompt cache",
    asks="the same prompt twice in a row, 1 token each",
    ask=lambda facts: question(facts, _WARM, tokens=1),
    read=_read_cache,
    tokens=1,
)

_FILL = Probe(
    topic="prompt cache",
    asks="a prompt to be kept, 1 token",
    ask=lambda facts: question(facts, _WARM, tokens=1),
    read=lambda facts, _: (facts, None),
    tokens=1,
)


def _ask_tokens(facts: Facts) -> Question | str:
    if facts.kind in {"ollama", "lm-studio"}:
        return ""
    body = {"content": "hello world", "prompt": "hello world", "model": facts.model}
    return Question(path="/tokenize", root=True, body=msgspec.json.encode(body))


def _read_tokens(facts: Facts, answer: ServerAnswer) -> tuple[Facts, Finding]:
    topic = "tokenizer"
    found = answer.read(TokenList)
    if found is None:
        means, does = (
            "prompts cannot be counted before they are sent",
            "estimates, and learns from the usage of replies",
        )
        return replace(facts, tokenizer=False), Finding(
            topic=topic, verdict="no", came=told(answer), means=means, does=does
        )
    # vLLM says how many there are, and takes the messages of a request.
    known = replace(facts, tokenizer="messages" if found.count is not None else facts.kind == "llama-server")
    does = "counts the first prompt exactly" if known.tokenizer else "estimates: it reads llama.cpp's and vLLM's only"
    return known, Finding(topic=topic, verdict="yes", came=f"{len(found.tokens)} tokens", does=does)


_TOKENIZER = Probe(topic="tokenizer", asks="POST /tokenize", ask=_ask_tokens, read=_read_tokens)

LIMITS = (_CUT, DAMAGED, _FILL, _CACHE, _OVERFLOW, _TOKENIZER)


# The probe of streaming: does it stream, do calls arrive in pieces, is the usage reported.


class Stream(Struct, frozen=True, kw_only=True):
    """What a stream had in it, in pieces; `ended` says that it came to its proper end."""

    texts: int = 0
    argument_pieces: int = 0
    names: int = 0
    usage: bool = False
    ended: bool = False
    error: str = ""


def examine_stream(facts: Facts, body: bytes) -> Stream:
    """What a stream holds, as a run would read it: by the protocol's decoder, up to the end or to what is wrong."""
    decoder, read = spoken(facts).stream.advance(body)
    pieces = [*_counting((*read, *decoder.finish()))]
    last, kinds = pieces[-1] if pieces else None, Counter(map(type, pieces))
    return Stream(
        texts=kinds[TextDelta],
        argument_pieces=kinds[CallDelta],
        names=kinds[CallStarted],
        usage=isinstance(last, Ended) and last.usage is not None and last.usage.prompt > 0,
        ended=isinstance(last, Ended),
        error=one_line(last.detail) if isinstance(last, Fault) else "",
    )


def _counting(pieces: StreamRead) -> Iterator[Piece | Fault]:
    for piece in pieces:
        yield piece
        if isinstance(piece, Ended | Fault):
            return


def _ask_stream(facts: Facts) -> Question | str:
    tools = TOOLS if facts.calls in {"native", "text"} else ()
    fields: dict[str, object] = {"stream": True}
    if facts.kind != "ollama":
        fields["stream_options"] = {"include_usage": True}
    return question(facts, tools=tools, tokens=64, fields=fields)


def _read_stream(facts: Facts, answer: ServerAnswer) -> tuple[Facts, Finding]:
    topic = "stream"
    found = examine_stream(facts, answer.body) if answer.good else Stream()
    if not (found.texts or found.names or found.argument_pieces):
        came = (
            told(answer)
            if not answer.good
            else found.error or f"nothing readable: {one_line(answer.body.decode(errors='replace'), 60)!r}"
        )
        means, does = "streams cannot be read from it", "asks for whole replies where nobody watches"
        return replace(facts, streams=False), Finding(topic=topic, verdict="no", came=came, means=means, does=does)
    several = found.argument_pieces > 1
    known = replace(facts, streams=True, stream_usage=found.usage)
    if found.names:
        known = replace(known, stream_arguments=several)
    return known, _streamed(found, several=several)


def _streamed(found: Stream, *, several: bool) -> Finding:
    text = f"{found.texts} pieces of text" if found.texts else ""
    call = f"a call in {found.argument_pieces} pieces" if found.names else ""
    usage = "usage at the end" if found.usage else "no usage"
    end = "" if found.ended else "no proper end"
    whole = "calls come whole, not in pieces" if found.names and not several else ""
    cut = "" if found.ended else "a broken stream cannot be told from a whole one"
    return Finding(
        topic="stream",
        verdict="yes" if found.ended else "unclear",
        came=", ".join(filter(None, (text, call, usage, end))),
        means="; ".join(filter(None, (whole, cut))),
    )


STREAM = Probe(topic="stream", asks="the weather, streamed, 64 tokens", ask=_ask_stream, read=_read_stream, tokens=64)


# Probes of native tool calls: made at all, with valid arguments, when required, several at once.

_CHECKS = {tool.name: checker(tool.parameters) for tool in TOOLS}


def _read_calls(facts: Facts, answer: ServerAnswer) -> tuple[Facts, Finding]:
    said = reply(facts, answer)
    if said is None:
        return replace(facts, calls="refused"), Finding(
            topic="tool calls",
            verdict="no",
            came=told(answer),
            means="it refuses requests with tools",
            does="writes the tools into the prompt",
        )
    if said.calls:
        return _native(facts, said)
    if found := in_text(said):
        return _as_text(facts, found)
    return _none(facts, said)


def _native(facts: Facts, said: Reply) -> tuple[Facts, Finding]:
    call = said.calls[0]
    right = call.name in _CHECKS and isinstance(_CHECKS[call.name](call.arguments), Fits)
    return replace(facts, calls="native", valid_arguments=right), Finding(
        topic="tool calls",
        verdict="yes" if right else "unclear",
        came=f"{call.name} {one_line(call.arguments)}",
        means="a native call" + ("" if right else ", with arguments that its schema does not allow"),
        does="uses them where it cannot constrain the reply" if right else "checks the arguments, and has them mended",
    )


def _as_text(facts: Facts, found: tuple[FoundCall, ...]) -> tuple[Facts, Finding]:
    return replace(facts, calls="text", call_format=found[0].origin), Finding(
        topic="tool calls",
        verdict="no",
        came=f"{found[0].name} {one_line(found[0].arguments)} as text, of the family `{found[0].origin}`",
        means="the model knows the tools, and the server does not recognise its calls: the template does not fit it",
        does="finds calls in the text, and prefers a mode that does not need them there",
    )


def _none(facts: Facts, said: Reply) -> tuple[Facts, Finding]:
    tokens = said.usage.prompt if said.usage else None
    came = f"no call: {one_line(said.text, 80)!r}"
    if tokens and tokens == facts.prompt_tokens:
        return replace(facts, calls="ignored"), Finding(
            topic="tool calls",
            verdict="no",
            came=f"{came}; the prompt has {tokens} tokens with tools and without",
            means="it ignores `tools` without a word: its template has no place for them",
            does="writes the tools into the prompt",
        )
    means = "the model was shown the tools, and made no call" if tokens else "whether it shows tools cannot be seen"
    found = Finding(topic="tool calls", verdict="unclear", came=came, means=means, does="prefers the prompt for tools")
    return replace(facts, calls="unused"), found


CALLS = Probe(
    topic="tool calls",
    asks="the same with two tools, 128 tokens",
    ask=lambda facts: question(facts, tools=TOOLS, tokens=128),
    read=_read_calls,
    tokens=128,
)


def _tools_work(facts: Facts) -> str:
    """Why there is no point in asking more about native calls; empty if there is one."""
    if facts.calls == "refused":
        return "it refuses tools"
    return "it ignores tools" if facts.calls == "ignored" else ""


def _choice(facts: Facts, asked: tuple[User, ...], choice: object, tokens: int) -> Question | str:
    if facts.kind == "ollama":
        return "Ollama's own protocol has no tool_choice"
    return _tools_work(facts) or question(facts, asked, tools=TOOLS, tokens=tokens, fields={"tool_choice": choice})


_HELLO = (User(text="Say hello, nothing else."),)


def _read_required(facts: Facts, answer: ServerAnswer) -> tuple[Facts, Finding]:
    topic = "tool_choice required"
    if (said := reply(facts, answer)) is None:
        return replace(facts, required=False), _refused(topic, answer)
    if said.calls:
        means = "a call comes even where the model would not make one"
        return replace(facts, required=True), Finding(topic=topic, verdict="yes", came=_of(said), means=means)
    means = "it is not enforced" + ("; the reply ran on to its limit" if said.finish == "length" else "")
    does = "never relies on it"
    return replace(facts, required=False), Finding(topic=topic, verdict="no", came=_of(said), means=means, does=does)


_REQUIRED = Probe(
    topic="tool_choice required",
    asks="a greeting, with a call required, 64 tokens",
    ask=lambda facts: _choice(facts, _HELLO, "required", 64),
    read=_read_required,
    tokens=64,
)


def _read_named(facts: Facts, answer: ServerAnswer) -> tuple[Facts, Finding]:
    topic = "tool_choice by name"
    if (said := reply(facts, answer)) is None:
        return replace(facts, named=False), _refused(topic, answer)
    right = bool(said.calls) and all(call.name == SEARCH.name for call in said.calls)
    means = "the named tool is called, against the question" if right else "it is not enforced"
    does = "" if right else "never relies on it"
    found = Finding(topic=topic, verdict="yes" if right else "no", came=_of(said), means=means, does=does)
    return replace(facts, named=right), found


_NAMED = Probe(
    topic="tool_choice by name",
    asks="the weather, with a call of the other tool demanded, 64 tokens",
    ask=lambda facts: _choice(facts, ASKED, {"type": "function", "function": {"name": SEARCH.name}}, 64),
    read=_read_named,
    tokens=64,
)


def _read_without(facts: Facts, answer: ServerAnswer) -> tuple[Facts, Finding]:
    topic = "tool_choice none"
    if (said := reply(facts, answer)) is None:
        return replace(facts, none=False), _refused(topic, answer)
    kept = not said.calls and not in_text(said)
    means = "" if kept else "a call comes all the same" if said.calls else "the call comes all the same, as text"
    does = "" if kept else "sends no tools where it wants no call"
    found = Finding(topic=topic, verdict="yes" if kept else "no", came=_of(said), means=means, does=does)
    return replace(facts, none=kept), found


_NONE = Probe(
    topic="tool_choice none",
    asks="the weather, with calls forbidden, 64 tokens",
    ask=lambda facts: _choice(facts, ASKED, "none", 64),
    read=_read_without,
    tokens=64,
)


def _read_parallel(facts: Facts, answer: ServerAnswer) -> tuple[Facts, Finding]:
    topic = "parallel calls"
    if (said := reply(facts, answer)) is None:
        return replace(facts, parallel=False), _refused(topic, answer)
    made = {call.arguments for call in said.calls} or {call.arguments for call in in_text(said)}
    several = len({msgspec.json.encode(_json_of(arguments)) for arguments in made}) > 1
    came = f"{len(made)} different calls" if several else f"{'one call' if made else 'no call'}"
    means = "" if several else "this model makes one call at a time, or the server lets only one through"
    found = Finding(topic=topic, verdict="yes" if several else "no", came=came, means=means, does="takes what comes")
    return replace(facts, parallel=several), found


def _ask_parallel(facts: Facts) -> Question | str:
    both = (User(text="What is the weather in Paris and in Oslo, both in celsius?"),)
    return _tools_work(facts) or question(facts, both, tools=(WEATHER,), tokens=128)


_PARALLEL = Probe(
    topic="parallel calls",
    asks="the weather in two cities, 128 tokens",
    ask=_ask_parallel,
    read=_read_parallel,
    tokens=128,
)


def _of(said: Reply) -> str:
    if said.calls:
        return ", ".join(f"{call.name} {one_line(call.arguments, 80)}" for call in said.calls[:3])
    return f"{one_line(said.text, 80)!r}" if said.text else "nothing"


def _refused(topic: str, answer: ServerAnswer) -> Finding:
    return Finding(topic=topic, verdict="no", came=told(answer), means="it refuses it", does="never relies on it")


TOOLCALLS = (CALLS, _REQUIRED, _NAMED, _NONE, _PARALLEL)
