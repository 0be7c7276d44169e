"""Probes of native tool calls: made at all, with valid arguments, when required, several at once."""

import msgspec
from msgspec.structs import replace

from forge.backends.doctor.chat_requests import ASKED, SEARCH, TOOLS, WEATHER, in_text, json_of, question, reply
from forge.backends.doctor.facts import Facts, Finding, Probe, Question, one_line, told
from forge.backends.questions import ServerAnswer
from stages.effect import Reply
from stages.message import User
from stages.rescue.found import FoundCall
from stages.schema import Fits, checker

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
    several = len({msgspec.json.encode(json_of(arguments)) for arguments in made}) > 1
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
