"""Probes of what every run needs: a reply, its usage, its finish reason, and the roles that the template accepts."""

from msgspec import Struct
from msgspec.structs import replace

from forge.backends.doctor.chat_requests import ASKED, question, reply, system
from forge.backends.doctor.facts import Facts, Finding, Probe, Question, is_page, told
from forge.backends.questions import ServerAnswer, decoded
from stages.confidence.measure import ALTERNATIVES
from stages.effect import Reply
from stages.message import User
from stages.rescue import split_reasoning
from stages.wire.openai.chat import LOGPROBS_FIELDS


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
