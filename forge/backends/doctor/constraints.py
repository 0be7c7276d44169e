"""Probes of constrained decoding: replies that no model would give by itself prove that a constraint is obeyed."""

from msgspec import Raw
from msgspec.structs import replace

from forge.backends.doctor.chat_requests import TOOLS, json_of, question, reply
from forge.backends.doctor.facts import Facts, Finding, FindingVerdict, Probe, Question, constrains, one_line, told
from forge.backends.questions import ServerAnswer
from stages.message import User
from stages.schema import project
from stages.tool import ToolSpec
from stages.wire import wires
from stages.wire.wires import Constrain

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
    value = json_of(text)
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
    kept = isinstance(json_of(said.text), dict) or (said.finish == "length" and said.text.lstrip().startswith("{"))
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
