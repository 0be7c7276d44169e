"""How sure a model is of its calls: probabilities of the choices that it was offered."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from math import isclose, isfinite, log, prod
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct
from msgspec.structs import replace

from stages.effect import TokenProbability
from stages.options import Count, Fraction, OptionError, Options, Tokens
from stages.repair.decoding import decode
from stages.schema.value import Json
from stages.tool import ToolSpec

# Tokens with their probabilities, as a server gives them, cut down to what a choice may depend on.

ALTERNATIVES = 20
"""Maximum number of alternatives of a token that are asked for and kept: OpenAI's and vLLM's own maximum."""

_CERTAIN = log(0.999)
"""Log-probability from which on a token's alternatives are not kept: most tokens of a call, in a journal of each."""


def token_probability(text: str, logprob: float, others: Iterable[tuple[str, float]]) -> TokenProbability:
    """The token as it is kept; what is no logarithm of a probability counts as the nearest that is one."""
    known = _logarithm(logprob)
    if known >= _CERTAIN:
        return TokenProbability(text, known)
    likeliest = sorted(((other, _logarithm(value)) for other, value in others), key=lambda one: -one[1])
    return TokenProbability(text, known, tuple(likeliest[:ALTERNATIVES]))


_IMPOSSIBLE = -1e4
"""Servers write -inf, -9999 or the least number of their own for a probability of 0; JSON has no infinity."""


def _logarithm(given: float) -> float:
    return min(0.0, max(_IMPOSSIBLE, given)) if isfinite(given) else _IMPOSSIBLE


def written(tokens: Sequence[TokenProbability]) -> str:
    """The text of the tokens: the whole reply, with what its server took away from it."""
    return "".join(token.text for token in tokens)


# The probability of a choice: what the tokens say of the text that was written, among the texts that were offered.


class Choice(Struct, frozen=True, kw_only=True, gc=False):
    """One of several texts that were offered, and their probabilities, which add up to 1.

    `argument` is the one that it is the value of; empty: the tool was chosen. The texts are JSON.
    """

    argument: str = ""
    chosen: str
    offered: tuple[str, ...]
    shares: tuple[float, ...]

    @property
    def probability(self) -> float:
        """How probable the chosen text was among those offered, from 0 to 1."""
        return self.shares[self.offered.index(self.chosen)]


class MeasuredCall(Struct, frozen=True, kw_only=True, gc=False):
    """A call as it stands in the tokens of a reply, and the choices that were made in it, where there was a choice."""

    tool: str
    choices: tuple[Choice, ...]

    @property
    def confidence(self) -> float:
        """The probability of all of its choices together; 1 where it had none."""
        return prod(choice.probability for choice in self.choices)


_END = "\0"
"""What ends a number, or a word such as null, where JSON has a comma, a bracket or a blank."""
_ENDS = str.maketrans(dict.fromkeys(",]} \t\r\n", _END))


def choice_at(
    tokens: Sequence[TokenProbability], start: int, offered: Sequence[str], argument: str = ""
) -> Choice | None:
    """The choice that begins at that character of the tokens' text; None where that is none of `offered`.

    Where its first tokens are those of several, the next one decides between them: the probability is the product of
    those decisions. Tokens that begin nothing that was offered do not count, however probable, nor do those that may
    still become either. What is not listed among the alternatives of a token is taken for as probable as it can be:
    the probability of what was chosen is never too high. Texts that begin with the same token share what that has.
    """
    text, ended = written(tokens), {_whole(one): one for one in offered}
    rest = _begun(text[start:])
    chosen = next((one for one in ended if rest.startswith(one)), None)
    if chosen is None:
        return None
    left, probability, shares = frozenset(ended), 1.0, dict.fromkeys(ended, 0.0)
    for said, lead, token in _covering(tokens, text, start):
        if len(left) == 1:
            break
        decided = _decision(token, said, lead, left)
        shares |= {other: probability * share for other, share in decided.others}
        left, probability = decided.left, probability * decided.share
    shares[chosen] = probability
    return Choice(argument=argument, chosen=ended[chosen], offered=tuple(ended.values()), shares=tuple(shares.values()))


def _covering(
    tokens: Sequence[TokenProbability], text: str, start: int
) -> Iterator[tuple[str, str | None, TokenProbability]]:
    """The tokens from there on, each after what was said of the choice; `lead`: what the first has of what precedes."""
    at = 0
    for token in tokens:
        begin, at = at, at + len(token.text)
        if at > start and token.text:
            yield text[start:begin], text[begin:start] if begin <= start else None, token


class _Decision(Struct, frozen=True, gc=False):
    """The texts that are left after a token, what they have together of those that were, and what each other has."""

    left: frozenset[str]
    share: float
    others: tuple[tuple[str, float], ...]


def _decision(token: TokenProbability, said: str, lead: str | None, left: frozenset[str]) -> _Decision:
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
        return _Decision(inside, 0.0, tuple((other, 1 / len(others)) for other in others))
    return _Decision(inside, meant / whole, tuple((other, share / whole) for other, share in others.items()))


def _fitting(said: str, lead: str | None, token: str, texts: Collection[str]) -> frozenset[str]:
    """The texts that may come of it, where the token follows."""
    if lead is not None:  # blanks before a value make no other value of it
        before = lead.rstrip()
        token = token[len(before) :].lstrip() if token.startswith(before) else ""
    if not token:
        return frozenset()
    begun = _begun(said + token)
    return frozenset(text for text in texts if text.startswith(begun) or begun.startswith(text))


def _whole(text: str) -> str:
    """An offered text with its end: a string has one, a number or a word needs it, so that 7 does not begin 70."""
    return text if text.startswith('"') else text + _END


def _begun(text: str) -> str:
    """What was written so far, ended likewise."""
    return text if text.startswith('"') else text.translate(_ENDS)


# Where the values of JSON stand in a text: each string, number and word of it, with its path.

_MARK = re.compile(r'\\.|["{}\[\]:,]', re.DOTALL)
_DEEP = 6
"""Maximum length of a path that is told: calls stand no deeper."""

_string = msgspec.json.Decoder(str)


class JsonPlace(Struct, frozen=True, kw_only=True, gc=False):
    """A value that is no array and no object. `value` is its JSON, `number` counts the texts with JSON around it."""

    path: tuple[str | int, ...]
    start: int
    value: str
    number: int = 0


def json_places(text: str) -> Iterator[JsonPlace]:
    """The plain values of the objects and arrays in the text, in order; of damaged JSON, whatever is found."""
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
    """The signs, strings, numbers and words of JSON in the text, each with where it begins."""
    since, quoted = 0, False
    for mark in _MARK.finditer(text):
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


# Offers: the tools and values that a request let its reply choose from, read from the request itself.

OfferedValues = Mapping[str, Mapping[str, tuple[str, ...]]]
"""The tools that were offered; of each, the arguments that are one of several values, with those as JSON."""

CONSTRAINTS = ("response_format", "format", "structured_outputs", "guided_json")
"""The fields in which backends take a schema of the reply (`stages.wire.wires`)."""
_REFERENCES = 8
"""Maximum number of references from one definition to the next."""

_json: msgspec.json.Decoder[Json] = msgspec.json.Decoder()
_fields: msgspec.json.Decoder[dict[str, Raw]] = msgspec.json.Decoder(dict[str, Raw])


def offer_of(tail: Raw, tools: tuple[ToolSpec, ...]) -> OfferedValues:
    """What a request offers, by its end: its schema of the reply, else its tools; without, these, from the prompt."""
    if schema := _constraint(tail):
        known = _definitions(schema)
        return {name: _limited_arguments(arguments, known) for name, arguments in _branches(schema)}
    fields = decode(_fields, bytes(tail))
    if "tools" in fields:
        return dict(_declared(decode(_json, bytes(fields["tools"]))))
    return {tool.name: closed_arguments(tool) for tool in tools}


def closed_arguments(tool: ToolSpec) -> Mapping[str, tuple[str, ...]]:
    """The tool's arguments that are one of several values, with those as JSON."""
    return _limited_arguments(decode(_json, bytes(tool.parameters)), {})


def argument_schemas(tail: Raw) -> Mapping[tuple[str, str], Json]:
    """The schemas, by tool and argument, to which the constraint at a request's end holds a reply; none without one."""
    found: dict[tuple[str, str], Json] = {}
    for tool, arguments in _branches(_constraint(tail)):
        match arguments:
            case {"properties": dict(properties)}:
                found |= {(tool, name): kind for name, kind in properties.items()}
            case _:
                pass
    return found


def _constraint(tail: Raw) -> Json:
    """The field with a schema of the reply that names calls; None: the request has none."""
    fields = decode(_fields, bytes(tail))
    schemas = (decode(_json, bytes(fields[name])) for name in CONSTRAINTS if name in fields)
    return next((schema for schema in schemas if any(_branches(schema))), None)


def _branches(schema: Json) -> Iterator[tuple[str, Json]]:
    """The calls that the schema names, wherever they stand in it: each an object with a constant `tool`, and `args`."""
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
    """The definitions of the schema that is somewhere in the field, by how they are referred to."""
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
    """The only values that the schema allows, as JSON; none where it allows others, or no plain ones."""
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


# The choices of a reply: of each call in it, how probable its tool and its values were among those offered.

_NAMES = ("tool", "name")
_ARGUMENTS = ("args", "arguments")


def measured_calls(tokens: Sequence[TokenProbability], text: str, offer: OfferedValues) -> tuple[MeasuredCall, ...]:
    """The calls that stand in the tokens, in order; `text` is what the server made of them, where calls are text.

    A call is an object with `tool` and `args`, or `name` and `arguments`, in whatever stands around it. One with a tool
    or a value that was not offered as it is written there is left out: nothing is known of it.
    """
    whole = written(tokens)
    begin = max(0, whole.find(text)) if text else 0  # what comes before may be thoughts
    calls = groupby(_calls(json_places(whole[begin:])), lambda found: found[0])
    measured = (_measured(tokens, begin, dict(parts for _, parts in call), offer) for _, call in calls)
    return tuple(call for call in measured if call)


_Part = tuple[str, JsonPlace]


def _calls(places: Iterable[JsonPlace]) -> Iterator[tuple[tuple[object, ...], _Part]]:
    """The parts of calls, each with which call it is of: the tool under no name, arguments under their own."""
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
    try:
        return decode(_string, value)
    except msgspec.DecodeError:
        return None


def measures_of(measured: Sequence[MeasuredCall], tools: Sequence[str]) -> tuple[MeasuredCall | None, ...]:
    """What was measured of the calls of these tools: each the next of its name; None where there is none."""
    rest = list(measured)
    found: list[MeasuredCall | None] = []
    for tool in tools:
        at = next((n for n, call in enumerate(rest) if call.tool == tool), None)
        found.append(None if at is None else rest[at])
        rest = rest if at is None else rest[at + 1 :]
    return tuple(found)


# Priors: how probable a model holds each value of an argument, whatever it is asked.
#
# A small model has favourites: of three values it may write one nine times out of ten. Divided by what it gives to
# each value on average, the probabilities of a reply say what speaks for a value in this text (batch calibration: Zhou
# and others, "Batch Calibration: Rethinking Calibration for In-Context Learning and Prompt Engineering", 2024).

Shares = dict[str, float]


class Prior(Options, frozen=True, kw_only=True):
    """What a model gave to each value of an argument on average, in so many replies.

    `values` are JSON; `shares` belong to them in the same order, are more than 0 and add up to 1.
    """

    tool: str
    argument: str
    values: tuple[str, ...]
    shares: tuple[float, ...]
    replies: Count

    def __post_init__(self) -> None:
        """Refuse what is no distribution: values without shares, shares that are not positive or no whole."""
        super().__post_init__()
        if (
            len(self.values) != len(self.shares)
            or min(self.shares, default=0.0) <= 0
            or not isclose(sum(self.shares), 1)
        ):
            raise OptionError(
                (f"Prior of {self.tool}.{self.argument}: each of the values needs a share above 0, and all make 1",)
            )


def priors_of(calls: Iterable[MeasuredCall]) -> tuple[Prior, ...]:
    """The priors of all arguments that were chosen among the same values, in the order in which they first were.

    One more reply, in which all values were equally probable, is added to them: few replies say little.
    """
    found: dict[tuple[str, str, tuple[str, ...]], list[Shares]] = {}
    for call in calls:
        for choice in call.choices:
            if choice.argument:
                shares = dict(zip(choice.offered, choice.shares, strict=True))
                found.setdefault((call.tool, choice.argument, tuple(sorted(shares))), []).append(shares)
    priors = list[Prior]()
    for (tool, argument, values), replies in found.items():
        means = [(sum(shares[value] for shares in replies) + 1 / len(values)) / (len(replies) + 1) for value in values]
        priors.append(Prior(tool=tool, argument=argument, values=values, shares=tuple(means), replies=len(replies)))
    return tuple(priors)


def without_priors(call: MeasuredCall, priors: Iterable[Prior]) -> MeasuredCall:
    """The call as its texts alone speak for it: the values that are most probable once the priors are divided out.

    An argument without a prior for just these values stays as it is, and so does the tool.
    """
    known = {(prior.argument, frozenset(prior.values)): prior for prior in priors if prior.tool == call.tool}
    return replace(call, choices=tuple(_divided(choice, known) for choice in call.choices))


def _divided(choice: Choice, known: Mapping[tuple[str, frozenset[str]], Prior]) -> Choice:
    prior = known.get((choice.argument, frozenset(choice.offered)))
    if prior is None:
        return choice
    usual = dict(zip(prior.values, prior.shares, strict=True))
    left = [share / usual[value] for value, share in zip(choice.offered, choice.shares, strict=True)]
    shares = tuple(one / sum(left) for one in left)
    return replace(choice, chosen=choice.offered[shares.index(max(shares))], shares=shares)


_Arguments = dict[str, Raw]
_decode_arguments = msgspec.json.Decoder(_Arguments)


def rewritten(arguments: str, call: MeasuredCall) -> str:
    """The arguments of the call as JSON, with the values that were chosen in it."""
    chosen = {choice.argument: Raw(choice.chosen.encode()) for choice in call.choices if choice.argument}
    known = _decode_arguments.decode(arguments)
    return msgspec.json.encode({name: chosen.get(name, value) for name, value in known.items()}).decode()


class MeasuredPriors(Struct, frozen=True, kw_only=True):
    """The priors of a model, by its server's name for it: with another one they are worth nothing."""

    model: str
    priors: tuple[Prior, ...]


# What a workflow says of calls that the model is not sure of: data, with bounds on the model calls that it may take.
#
# A call is unsure where the probability of its tool and values, among those that were offered, is below a threshold,
# or is not known.

_Samples: TypeAlias = Annotated[int, Meta(ge=2, le=15)]
_Temperature: TypeAlias = Annotated[float, Meta(gt=0, le=2)]


class ThinkFirst(Options, frozen=True, kw_only=True, tag="think_first"):
    """Ask for a free text of at most so many tokens, then for the call again: 2 model calls."""

    tokens: Tokens = 200


class Vote(Options, frozen=True, kw_only=True, tag="vote"):
    """Ask for the same decision until there are so many answers, and take the most frequent calls: `samples` - 1 calls.

    Calls are the same whose tools and canonical arguments are. The share of the answers that agree is then how sure the
    decision is. `temperature` is that of the further answers: at a low one they would all be the first again.
    """

    samples: _Samples = 3
    temperature: _Temperature = 0.7


class AskLarger(Struct, frozen=True, kw_only=True, tag="ask_larger"):
    """Ask the larger model of the run's backend (`forge.backends.Cascade`) for the same decision: 1 model call.

    What it answers is taken, unless it is itself known to be unsure.
    """


class AskPerson(Struct, frozen=True, kw_only=True, tag="ask_person"):
    """End the run with a question to the user: the outcome `NeedsInput`."""


class StopRun(Struct, frozen=True, kw_only=True, tag="stop_run"):
    """End the run with the Halt `Unsure`."""


UnsureStep = ThinkFirst | Vote | AskLarger | AskPerson | StopRun


class WhenUnsure(Options, frozen=True, kw_only=True):
    """What follows where a reply's calls are less sure than `below`: the steps of `then`, one after the other.

    The next step is taken where the one before left the decision unsure; after the last, or with none, it stands.
    `max_calls` bounds the model calls that a run may take for all of them; a step that there is no room for is skipped.
    With `below` 0 confidence is measured and nothing follows. `priors` are what the model prefers whatever it is asked:
    they are divided out of its probabilities first, and the value that is then the most probable is the one called
    with (`stages.confidence.measure`).
    """

    below: Fraction
    then: UnsureStep | tuple[UnsureStep, ...] = StopRun()
    max_calls: Count = 12
    priors: MeasuredPriors | None = None

    @property
    def steps(self) -> tuple[UnsureStep, ...]:
        """The steps, also where there is one alone."""
        return self.then if isinstance(self.then, tuple) else (self.then,)
