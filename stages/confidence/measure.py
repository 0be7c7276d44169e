"""How sure a model is of its calls: the probabilities of the tools and values that it chose."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from math import isfinite, log, prod
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct

from stages._later import LazyPattern
from stages.decoding import decode, decode_or
from stages.effect import TokenProbability
from stages.options import Count, Fraction, Options, Tokens
from stages.schema.value import Json, any_json, raw_members
from stages.tool import ToolSpec

# Tokens with their probabilities, reduced to what a choice may depend on.

ALTERNATIVES = 20
"""Maximum number of alternatives per token, requested and kept: the maximum that OpenAI and vLLM accept."""

_CERTAIN = log(0.999)
"""Log-probability from which a token's alternatives are not kept: most tokens of a call, so journals stay small."""


def token_probability(text: str, logprob: float, others: Iterable[tuple[str, float]]) -> TokenProbability:
    """The token with its likeliest alternatives. Numbers that are not log-probabilities are replaced by the nearest."""
    known = _logarithm(logprob)
    if known >= _CERTAIN:
        return TokenProbability(text, known)
    likeliest = sorted(((other, _logarithm(value)) for other, value in others), key=lambda one: -one[1])
    return TokenProbability(text, known, tuple(likeliest[:ALTERNATIVES]))


_IMPOSSIBLE = -1e4
"""The log-probability of 0: servers send -inf, -9999 or their smallest number, and JSON has no infinity."""


def _logarithm(given: float) -> float:
    return min(0.0, max(_IMPOSSIBLE, given)) if isfinite(given) else _IMPOSSIBLE


def tokens_text(tokens: Sequence[TokenProbability]) -> str:
    """The text of the tokens: the whole reply, including parts that its server removed from the text."""
    return "".join(token.text for token in tokens)


# The probability of a choice: of the text that the model wrote, among the texts that it was offered.


class Choice(Struct, frozen=True, kw_only=True, gc=False):
    """The chosen text, all texts that were offered, and their probabilities (`shares`), which add up to 1.

    The texts are JSON: values of `argument`, or names of tools if that is empty.
    """

    argument: str = ""
    chosen: str
    offered: tuple[str, ...]
    shares: tuple[float, ...]

    @property
    def probability(self) -> float:
        """The probability of the chosen text, from 0 to 1."""
        return self.shares[self.offered.index(self.chosen)]


class MeasuredCall(Struct, frozen=True, kw_only=True, gc=False):
    """A call found in the tokens of a reply, and its choices: the tool and values that had alternatives."""

    tool: str
    choices: tuple[Choice, ...]

    @property
    def confidence(self) -> float:
        """The product of the probabilities of its choices; 1 if it had none."""
        return prod(choice.probability for choice in self.choices)


_END = "\0"
"""Stands for the comma, bracket or blank that ends a number or a word such as null in JSON."""
_ENDS = str.maketrans(dict.fromkeys(",]} \t\r\n", _END))


def choice_at(
    tokens: Sequence[TokenProbability], start: int, offered: Sequence[str], argument: str = ""
) -> Choice | None:
    """The choice that begins at this character of the tokens' text; None if none of `offered` stands there.

    Each token decides between the texts that are still possible; the probability is the product of these decisions.
    Tokens that begin none of the offered texts do not count, however probable, and neither do those that leave it open
    whether the chosen text or another one follows. Unlisted alternatives count with the maximum probability that they
    can have, so the probability of the chosen text is never overestimated. Texts that begin with the same token share
    its probability.
    """
    # An end mark after all but strings: otherwise 70 would begin with 7.
    text, ended = tokens_text(tokens), {one if one.startswith('"') else one + _END: one for one in offered}
    rest = _begun(text[start:])
    chosen = next((one for one in ended if rest.startswith(one)), None)
    if chosen is None:
        return None
    left, probability, shares = frozenset(ended), 1.0, dict.fromkeys(ended, 0.0)
    for said, lead, token in _covering(tokens, text, start):
        if len(left) == 1:
            break
        branching = _branching(token, said, lead, left)
        shares |= {other: probability * share for other, share in branching.others}
        left, probability = branching.left, probability * branching.share
    shares[chosen] = probability
    return Choice(argument=argument, chosen=ended[chosen], offered=tuple(ended.values()), shares=tuple(shares.values()))


def _covering(
    tokens: Sequence[TokenProbability], text: str, start: int
) -> Iterator[tuple[str, str | None, TokenProbability]]:
    """The tokens from `start` on: the chosen text before each token, `lead`, and the token.

    `lead` is the part of the first token that precedes the choice; None for the others.
    """
    at = 0
    for token in tokens:
        begin, at = at, at + len(token.text)
        if at > start and token.text:
            yield text[start:begin], text[begin:start] if begin <= start else None, token


class _Branching(Struct, frozen=True, gc=False):
    """The texts that are still possible after a token, their joint share, and the share of each text excluded by it."""

    left: frozenset[str]
    share: float
    others: tuple[tuple[str, float], ...]


def _branching(token: TokenProbability, said: str, lead: str | None, left: frozenset[str]) -> _Branching:
    inside = _fitting(said, lead, token.text, left)
    meant, others = token.probability, dict.fromkeys(sorted(left - inside), 0.0)
    known = set(inside)
    for text, probability in token.alternatives:
        fits = _fitting(said, lead, text, left)
        if fits and fits <= inside:
            meant += probability
        elif fits and fits.isdisjoint(inside):
            known |= fits
            others |= {other: others[other] + probability / len(fits) for other in fits}
    unlisted = left - known
    others |= dict.fromkeys(unlisted, token.most_unlisted(len(unlisted)) / max(1, len(unlisted)))
    whole = meant + sum(others.values())
    if not whole:
        return _Branching(inside, 0.0, tuple((other, 1 / len(others)) for other in others))
    return _Branching(inside, meant / whole, tuple((other, share / whole) for other, share in others.items()))


def _fitting(said: str, lead: str | None, token: str, texts: Collection[str]) -> frozenset[str]:
    """The texts that are possible if this token follows."""
    if lead is not None:  # blanks before a value do not matter
        before = lead.rstrip()
        token = token[len(before) :].lstrip() if token.startswith(before) else ""
    if not token:
        return frozenset()
    begun = _begun(said + token)
    return frozenset(text for text in texts if text.startswith(begun) or begun.startswith(text))


def _begun(text: str) -> str:
    """The text written so far, with the same end marks."""
    return text if text.startswith('"') else text.translate(_ENDS)


# The positions of JSON values in a text: each string, number and word, with its path.

_MARK = LazyPattern(r'\\.|["{}\[\]:,]', re.DOTALL)
_DEEP = 6
"""Maximum length of a path: calls are not nested deeper."""

_string = msgspec.json.Decoder(str)


class JsonPlace(Struct, frozen=True, kw_only=True, gc=False):
    """A value that is neither an array nor an object, as JSON. `number` counts the outermost values of the text."""

    path: tuple[str | int, ...]
    start: int
    value: str
    number: int = 0


def json_places(text: str) -> Iterator[JsonPlace]:
    """The plain values of the objects and arrays in the text, in order; as many as can be found in damaged JSON."""
    path: list[str | int | None] = []
    number = -1
    for start, part in _parts(text):
        inner = path[-1] if path else 0
        if part in "{[":
            number += not path
            path.append(None if part == "{" else 0)
        elif part in "]}":
            del path[-1:]
        elif part == ",":
            path[-1:] = [] if not path else [inner + 1] if isinstance(inner, int) else [None]
        elif inner is None:
            path[-1] = _text(part) or ""
        elif part != ":" and 0 < len(path) <= _DEEP:
            at = tuple(one for one in path if one is not None)
            yield JsonPlace(path=at, start=start, value=part, number=number)


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """The signs, strings, numbers and words of JSON in the text, each after its position."""
    since, quoted = 0, False
    for mark in _MARK.compiled.finditer(text):
        at = mark.start()
        if mark[0] == '"':
            if quoted:
                yield since, text[since : at + 1]
            since, quoted = (at + 1, False) if quoted else (at, True)
        elif not quoted:
            if bare := text[since:at].strip():
                yield text.index(bare, since), bare
            yield at, mark[0]
            since = at + 1


# The tools and values that a request lets its reply choose from, read from the request itself.

OfferedValues = Mapping[str, Mapping[str, tuple[str, ...]]]
"""The offered tools, each with its arguments that are limited to certain values, as JSON."""

CONSTRAINTS = ("response_format", "format", "structured_outputs", "guided_json")
"""The fields in which backends take a schema of the reply (`stages.wire.wires.field`)."""
_REFERENCES = 8
"""Maximum length of a chain of references between definitions."""


def offer_of(tail: Raw, tools: tuple[ToolSpec, ...]) -> OfferedValues:
    """The offer in the tail of a request: that of its schema for the reply, else its tools, else these tools.

    `tools` are those that the prompt lists as text.
    """
    fields = decode(raw_members, bytes(tail))
    schemas = (decode(any_json, bytes(fields[name])) for name in CONSTRAINTS if name in fields)
    if schema := next((schema for schema in schemas if any(_branches(schema))), None):
        known = _definitions(schema)
        return {name: _limited_arguments(arguments, known) for name, arguments in _branches(schema)}
    if "tools" in fields:
        return dict(_declared(decode(any_json, bytes(fields["tools"]))))
    return {tool.name: _limited_arguments(decode(any_json, bytes(tool.parameters)), {}) for tool in tools}


def _branches(schema: Json) -> Iterator[tuple[str, Json]]:
    """The calls in the schema, at any depth: objects with a constant `tool`, and `args` (`tool_schemas.branch`)."""
    stack = [schema]
    while stack:
        match stack.pop():
            case {"properties": {"tool": {"const": str(name)}, "args": arguments}}:
                yield name, arguments
            case dict(members):
                stack.extend(members.values())
            case list(items):
                stack.extend(items)
            case _:
                pass


def _definitions(schema: Json) -> Mapping[str, Json]:
    """The definitions of the schema, which may be nested in the field, by their references."""
    stack = [schema]
    while stack:
        match stack.pop():
            case {"$defs": dict(known)}:
                return {f"#/$defs/{name}": value for name, value in known.items()}
            case dict(members):
                stack.extend(members.values())
            case _:
                pass
    return {}


def _declared(tools: Json) -> Iterator[tuple[str, Mapping[str, tuple[str, ...]]]]:
    """The tools in the request's own field for them, in OpenAI's form or in Anthropic's."""
    for tool in tools if isinstance(tools, list) else ():
        match tool:
            case {"function": {"name": str(name), "parameters": schema}} | {"name": str(name), "input_schema": schema}:
                yield name, _limited_arguments(schema, _definitions(schema))
            case _:
                pass


def _limited_arguments(schema: Json, definitions: Mapping[str, Json]) -> Mapping[str, tuple[str, ...]]:
    match schema:
        case {"properties": dict(properties)}:
            known = definitions or _definitions(schema)
            values = {name: _values(value, known, _REFERENCES) for name, value in properties.items()}
            return {name: found for name, found in values.items() if found}
        case _:
            return {}


def _values(schema: Json, definitions: Mapping[str, Json], depth: int) -> tuple[str, ...]:
    """The only values that the schema allows, as JSON; none if it allows any others, or values that are not plain."""
    match schema:
        case {"$ref": str(name)} if depth:
            return _values(definitions.get(name), definitions, depth - 1)
        case {"enum": list(values)} if not any(isinstance(value, dict | list) for value in values):
            return tuple(msgspec.json.encode(value).decode() for value in values)
        case {"const": str() | int() | float() | None as value}:
            return (msgspec.json.encode(value).decode(),)
        case {"anyOf": list(ways)} | {"oneOf": list(ways)} if depth:
            found = [_values(way, definitions, depth - 1) for way in ways]
            return tuple(dict.fromkeys(chain(*found))) if all(found) else ()
        case {"type": "null"}:
            return ("null",)
        case {"type": "boolean"}:
            return ("true", "false")
        case _:
            return ()


# The choices in a reply: for each call, the probability of its tool and values among those offered.

_NAMES = ("tool", "name")
_ARGUMENTS = ("args", "arguments")


def measured_calls(tokens: Sequence[TokenProbability], text: str, offer: OfferedValues) -> tuple[MeasuredCall, ...]:
    """The calls found in the tokens, in order. `text` is the reply's text, if the calls are in it.

    A call is an object with `tool` and `args`, or `name` and `arguments`, whatever is around it. A call with a tool or
    value that was not offered in exactly this form is left out, because its probability is unknown.
    """
    whole = tokens_text(tokens)
    begin = max(0, whole.find(text)) if text else 0  # reasoning may precede it
    calls = groupby(_calls(json_places(whole[begin:])), lambda found: found[0])
    measured = (_measured(tokens, begin, dict(parts for _, parts in call), offer) for _, call in calls)
    return tuple(call for call in measured if call)


_Part = tuple[str, JsonPlace]


def _calls(places: Iterable[JsonPlace]) -> Iterator[tuple[tuple[object, ...], _Part]]:
    """The parts of calls, each after a key for its call: the tool under an empty name, arguments under their names."""
    for place in places:
        match place.path:
            case (*around, name) if name in _NAMES and _only_around(around):
                yield (place.number, *around), ("", place)
            case (*around, arguments, str(name)) if arguments in _ARGUMENTS and _only_around(around):
                yield (place.number, *around), (name, place)
            case _:
                pass


def _only_around(path: Sequence[str | int]) -> bool:
    return all(isinstance(part, int) or part in ("call", "calls") for part in path)


def _measured(
    tokens: Sequence[TokenProbability], begin: int, parts: Mapping[str, JsonPlace], offer: OfferedValues
) -> MeasuredCall | None:
    tool = _text(parts[""].value) if "" in parts else None
    if tool is None or tool not in offer:
        return None
    values = offer[tool]
    offered = {"": tuple(msgspec.json.encode(name).decode() for name in offer), **values}
    choices = [
        choice_at(tokens, begin + place.start, offered[name], name)
        for name, place in parts.items()
        if len(offered.get(name, ())) > 1
    ]
    known = tuple(choice for choice in choices if choice)
    return MeasuredCall(tool=tool, choices=known) if len(known) == len(choices) else None


def _text(value: str) -> str | None:
    return decode_or(_string, value, None)


def measures_of(measured: Sequence[MeasuredCall], tools: Sequence[str]) -> tuple[MeasuredCall | None, ...]:
    """The measured call for each of these calls, given by tool: the next one of that tool; None if there is none."""
    rest = list(measured)
    found: list[MeasuredCall | None] = []
    for tool in tools:
        at = next((n for n, call in enumerate(rest) if call.tool == tool), None)
        found.append(None if at is None else rest[at])
        rest = rest if at is None else rest[at + 1 :]
    return tuple(found)


# A workflow's options for unsure calls. A call is unsure if the probability of its tool and values, among those that
# were offered, is below a threshold or unknown.

_Samples: TypeAlias = Annotated[int, Meta(ge=2, le=15)]
_Temperature: TypeAlias = Annotated[float, Meta(gt=0, le=2)]


class ThinkFirst(Options, frozen=True, kw_only=True, tag="think_first"):
    """Ask for a free text of at most `tokens` tokens, then for the call again: 2 model calls."""

    tokens: Tokens = 200


class Vote(Options, frozen=True, kw_only=True, tag="vote"):
    """Repeat the decision until there are `samples` answers, and take the most frequent one: `samples` - 1 model calls.

    Answers agree if their tools and canonical arguments do. The share of answers that agree becomes the confidence.
    `temperature` applies to the further answers; at a low one they would all repeat the first.
    """

    samples: _Samples = 3
    temperature: _Temperature = 0.7


LARGER = "larger"
"""The target of requests to the larger model of the run's backend."""


class AskLarger(Struct, frozen=True, kw_only=True, tag="ask_larger"):
    """Ask the larger model of the run's backend (`forge.backends.Models`) for the same decision: 1 model call.

    Its answer is accepted unless its confidence is known to be too low.
    """


class AskPerson(Struct, frozen=True, kw_only=True, tag="ask_person"):
    """End the run with a question to the user: the outcome `NeedsInput`."""


class StopRun(Struct, frozen=True, kw_only=True, tag="stop_run"):
    """End the run with the Halt `Unsure`."""


UnsureStep = ThinkFirst | Vote | AskLarger | AskPerson | StopRun


class WhenUnsure(Options, frozen=True, kw_only=True):
    """What to do when the confidence of a reply's calls is below `below`: the steps of `then`, in order.

    Each step is taken only if the decision is still unsure after the ones before it. After the last step, or without
    any, the calls run as they are. `max_calls` limits the model calls that all steps of a run may take; a step that
    would exceed it is skipped. With `below` 0, confidence is measured and nothing else happens.
    """

    below: Fraction
    then: UnsureStep | tuple[UnsureStep, ...] = StopRun()
    max_calls: Count = 12

    @property
    def steps(self) -> tuple[UnsureStep, ...]:
        """The steps as a tuple, even if there is only one."""
        return self.then if isinstance(self.then, tuple) else (self.then,)
