"""Probes of limits: a truncated reply, a damaged history, a prompt that is too long, the prompt cache."""

import msgspec
from msgspec.structs import replace

from forge.backends.doctor.chat_requests import ASKED, OLLAMA_CONTEXT, TOOLS, cached, json_of, question, reply
from forge.backends.doctor.facts import Facts, Finding, Probe, Question, one_line, told
from forge.backends.endpoints import TokenList
from forge.backends.questions import ServerAnswer, decoded
from stages.message import User
from stages.wire.openai import chat as openai

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
    if said.calls and not isinstance(json_of(said.calls[0].arguments), dict):
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
    size = OLLAMA_CONTEXT if facts.kind == "ollama" else facts.context_tokens
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
