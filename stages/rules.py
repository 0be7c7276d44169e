"""Rules: what a workflow demands of a run; what is legal, pending and new; the ledger recounted from a history."""

import hashlib
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, takewhile
from types import MappingProxyType
from typing import Literal, TypeGuard, assert_never

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from stages.arithmetic import with_results
from stages.effect import Budget, Price
from stages.message import Assistant, History, Kind, Message, Status, Tool, ToolCall, User, status_of, turn_of
from stages.options import AtLeastOne, Count, Options, Positive, Seconds, unfit_function
from stages.repair.decoding import decode
from stages.rescue.found import Family, Format
from stages.schema.canonical_json import canonical
from stages.schema.value import ANY_VALUE, Json
from stages.seen import is_own
from stages.state import Attempt, Ledger, Listed, Spoken, State, Success, known_messages
from stages.tool import RECALL, Grounded, ToolEffect, ToolSpec
from stages.wire.valid import with_object_arguments

# Wildcards: texts compared with patterns in which `*` stands for any characters, none too.


def matches(pattern: str, text: str) -> bool:
    """Whether the whole text is what the pattern says. Takes time linear in the text for each `*`."""
    first, *others = pattern.split("*")
    if not others:
        return text == pattern
    *middle, last = others
    if not text.startswith(first) or len(text) < len(first) + len(last) or not text.endswith(last):
        return False
    # The first place where a part stands leaves most room for the parts after it.
    at, end = len(first), len(text) - len(last)
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


# Listing: the values that a tool has listed, with each of which another has to be called.


class Each(Struct, frozen=True, kw_only=True):
    """Each value that `tool` has listed in its latest result: one call for each of them, as `argument`.

    The values are the texts and whole numbers in the outermost members called `member`. Without a `member`: in those
    called like the argument, or `id` where the tool's name says whose ids they are; if there are none, the items of a
    result that is a list. A result that is no JSON lists nothing.
    """

    tool: str
    argument: str
    member: str = ""


def value_of(result: str) -> Json:
    """What a result says: a JSON value, or else the text."""
    try:
        return decode(_any, result)
    except msgspec.DecodeError:
        return result


def listed_in(each: Each, result: str) -> tuple[str, ...]:
    """The values that a result lists, each once, in its order; whole numbers as they are written."""
    value = value_of(result)
    for level in _levels(value):
        found = [(name, text) for name, one in level if (text := _text(one))]
        if named := [text for name, text in found if _is_meant(each, name)]:
            return tuple(dict.fromkeys(named))
    items = value if isinstance(value, list) and not each.member else ()
    return tuple(dict.fromkeys(text for one in items if (text := _text(one))))


def _levels(value: Json) -> Iterator[list[tuple[str, Json]]]:
    """The members within a value, level by level: what is deeper belongs to something else."""
    level: list[tuple[str, Json]] = [("", value)]
    while level:
        level = [inner for name, one in level for inner in _within(name, one)]
        yield level


def _within(name: str, value: Json) -> Iterable[tuple[str, Json]]:
    match value:
        case dict():
            return value.items()
        case list():
            return ((name, item) for item in value)
        case _:
            return ()


def not_yet_called(each: Each, tool: str, done: tuple[Success, ...]) -> tuple[str, ...] | None:
    """The listed values with which no successful call of `tool` was made; None where nothing was listed for it yet.

    `done` are the successes that count.
    """
    listed = next((here.values for one in reversed(done) for here in one.listed if here.tool == tool), None)
    if not listed:
        return listed
    made = {_called_with(each, one.arguments) for one in done if one.name == tool}
    return tuple(value for value in listed if value not in made)


def limited_argument(tool: ToolSpec, argument: str, values: tuple[str, ...]) -> ToolSpec:
    """The tool with that argument, a text or a whole number, limited to the first of these values; others as it is."""
    schema = msgspec.json.decode(tool.parameters, type=dict[str, Raw])
    properties = msgspec.json.decode(schema.get("properties", b"{}"), type=dict[str, Raw])
    own: Json = _any.decode(properties.get(argument, b"{}"))
    if not isinstance(own, dict) or own.keys() - ANY_VALUE:
        return tool
    kind = own.get("type")
    allowed = [_whole_number(value) if kind == "integer" else value for value in values[:_OFFERED]]
    if kind not in ("string", "integer") or None in allowed:
        return tool
    properties[argument] = Raw(msgspec.json.encode({"type": kind, "enum": allowed}))
    schema["properties"] = Raw(msgspec.json.encode(properties))
    return replace(tool, parameters=Raw(msgspec.json.encode(schema)))


def _called_with(each: Each, arguments: str) -> str:
    value = _raw_members.decode(arguments).get(each.argument)
    return "" if value is None else _text(_any.decode(value))


def _is_meant(each: Each, name: str) -> bool:
    if each.member:
        return name == each.member
    return bool(name) and is_own(Grounded(argument=each.argument, sources=(each.tool,)), name, each.tool)


def _text(value: Json) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _whole_number(value: str) -> int | None:
    return int(value) if value.removeprefix("-").isdecimal() and len(value) < _DIGITS else None


_OFFERED = 64
"""Values that a constraint offers at a time."""

_DIGITS = 20
"""Characters of a whole number that can be an id."""

_any: msgspec.json.Decoder[Json] = msgspec.json.Decoder()
_raw_members: msgspec.json.Decoder[dict[str, Raw]] = msgspec.json.Decoder(dict[str, Raw])


# Order: in which order and how often tools may be used, beyond required steps and prerequisites.
#
# Only successful calls count. `stages.rules.legal_tools`, the guard and corrections all ask here what is legal.
# The rules hold among the calls of one reply as they do between replies.


class Change(Struct, frozen=True, kw_only=True):
    """`tool` changes what another has looked at; with `match_arg`, only where both have the same value of it."""

    tool: str
    match_arg: str | None = None


CountsIf = Callable[..., bool]
"""A pure function of what the model was told of a call (a JSON value, or else a text): whether that answer counts."""


class Use(Struct, frozen=True, kw_only=True):
    """The rules for one tool.

    - `at_step` n: the n-th successful call of the run must be of this tool.
    - `after`, `before`: tools that must have succeeded already, or must not have yet.
    - `again_after`: tools that change what this one has found. After one of them has succeeded, earlier successes of
      this tool count no more, neither as steps nor as prerequisites: it has to be called again.
    - `at_least`: minimum number of successes before a terminal tool may be called; `at_most`: maximum.
    - `distinct`: for `at_least` the same call counts once: "each of the three" is not two of them and one again.
    - `each_of`: values that another tool lists; it must have succeeded with each before a terminal tool may be called.
    - `consecutive` False: not twice in a row.
    - `counts_if`: when an answer of it counts, as a step and as a prerequisite. One that does not count makes earlier
      ones to the same call count no more.
    """

    tool: str
    at_step: int | None = None
    after: Sequence[str] = ()
    before: Sequence[str] = ()
    again_after: Sequence[str | Change] = ()
    at_least: int = 0
    at_most: int | None = None
    distinct: bool = False
    each_of: Each | None = None
    consecutive: bool = True
    counts_if: CountsIf | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """All the tools that it is about."""
        listing = (self.each_of.tool,) if self.each_of else ()
        return (self.tool, *self.after, *self.before, *listing, *(change.tool for change in self.changes))

    @property
    def demanded(self) -> tuple[str, ...]:
        """The tools that have to succeed because of it before the run may end."""
        listing = (self.each_of.tool, self.tool) if self.each_of else ()
        return listing or ((self.tool,) if self.at_least else ())

    @property
    def changes(self) -> tuple[Change, ...]:
        """What makes its results out of date."""
        return tuple(Change(tool=one) if isinstance(one, str) else one for one in self.again_after)


def current_successes(
    order: tuple[Use, ...], successes: tuple[Success, ...], ahead: tuple[ToolCall, ...] = ()
) -> tuple[Success, ...]:
    """The successes that count: by their answers, and because nothing that they looked at has been changed since.

    Nor would it be if the calls `ahead` succeeded, which are to run next, whatever they answer.
    """
    watching: dict[str, tuple[Change, ...]] = {}
    for use in order:
        watching[use.tool] = watching.get(use.tool, ()) + use.changes
    changes = {change for found in watching.values() for change in found}
    if not changes:
        return _convincing(order, successes, ahead)
    since: dict[Change, set[bytes | None]] = {}
    for call in ahead:
        _note(call.name, call.arguments, changes, since)
    found: list[Success] = []
    for success in reversed(successes):
        if not any(
            _affects(change, since[change], success) for change in watching.get(success.name, ()) if change in since
        ):
            found.append(success)
        _note(success.name, success.arguments, changes, since)
    return _convincing(order, tuple(reversed(found)), ahead)


def _judged_tools(order: tuple[Use, ...]) -> frozenset[str]:
    """The tools of which a rule says when an answer counts."""
    return frozenset(use.tool for use in order if use.counts_if)


def answer_passes(order: tuple[Use, ...], name: str, result: str) -> bool:
    """Whether a rule says when an answer of the tool counts, and this one does."""
    rules = [use.counts_if for use in order if use.counts_if and use.tool == name]
    return bool(rules) and all(rule(value_of(result)) for rule in rules)


def _convincing(
    order: tuple[Use, ...], successes: tuple[Success, ...], ahead: tuple[ToolCall, ...]
) -> tuple[Success, ...]:
    """The successes whose answers count; of the same call, the last one decides."""
    judged = _judged_tools(order)
    if not judged:
        return successes
    refuted = {(call.name, canonical(call.arguments)) for call in ahead if call.name in judged}
    found: list[Success] = []
    for success in reversed(successes):
        if success.name in judged:
            call = (success.name, canonical(success.arguments))
            if not success.passed:
                refuted.add(call)
            if call in refuted:
                continue
        found.append(success)
    return tuple(reversed(found))


def _note(name: str, arguments: str, changes: Collection[Change], since: dict[Change, set[bytes | None]]) -> None:
    """Remember what the call has changed: the value of the argument that matters, None for anything at all."""
    for change in changes:
        if change.tool == name:
            since.setdefault(change, set()).add(_argument_value(arguments, change.match_arg))


def _affects(change: Change, changed: Collection[bytes | None], looked: Success) -> bool:
    value = _argument_value(looked.arguments, change.match_arg)
    return value is None or None in changed or value in changed


def _argument_value(arguments: str, name: str | None) -> bytes | None:
    """The value of that argument, as canonical JSON; None where there is no such argument, or no name."""
    value = None if name is None else msgspec.json.decode(canonical(arguments), type=dict[str, Raw]).get(name)
    return None if value is None else bytes(value)


def obstacle(
    order: tuple[Use, ...],
    done: tuple[str, ...],
    name: str,
    ahead: tuple[str, ...] = (),
    fresh: Collection[str] | None = None,
) -> str | None:
    """Why the tool may not be called now; None: it may. `done` are the names of the successful calls, in order.

    `fresh` are the names of those that still count; None: all of them. `ahead` are the calls that run before it in the
    same reply. Nobody knows yet which of them will succeed, so the call is allowed only if it would be, whichever do.
    """
    if not order:
        return None
    for number in range(len(done) + 1, len(done) + len(ahead) + 2):
        forced = [use.tool for use in order if use.at_step == number]
        if forced and name not in forced:
            return f"call number {number} must be {' or '.join(forced)}"
    reasons = (
        _place(use, done, ahead, done if fresh is None else fresh) or _wrong_number(use, done, ahead)
        for use in order
        if use.tool == name
    )
    return next((reason for reason in reasons if reason), None)


def underused_tools(order: tuple[Use, ...], done: tuple[Success, ...]) -> tuple[str, ...]:
    """The tools that still have to be used more often before the run may end. `done` are the uses that count."""
    return tuple(tool for use in order for tool in _underused(use, done))


def _underused(use: Use, done: tuple[Success, ...]) -> tuple[str, ...]:
    left = _values_left(use, done)
    if left is None and use.each_of:
        return (use.each_of.tool,)
    few = use.at_least and times_used(use, done) < use.at_least
    return (use.tool,) if few or left else ()


def _values_left(use: Use, done: tuple[Success, ...]) -> tuple[str, ...] | None:
    """The values of its `each_of` with which the tool still has to be called; None where none were listed yet."""
    return not_yet_called(use.each_of, use.tool, done) if use.each_of else None


def listed_for(order: tuple[Use, ...], name: str, result: str) -> tuple[Listed, ...]:
    """What a successful call of the tool has listed for others."""
    lists = [(use.tool, use.each_of) for use in order if use.each_of and use.each_of.tool == name]
    return tuple(Listed(tool=tool, values=listed_in(each, result)) for tool, each in lists)


def times_used(use: Use, done: tuple[Success, ...]) -> int:
    """How many of the successes count for `at_least`."""
    made = [canonical(success.arguments) for success in done if success.name == use.tool]
    return len(set(made) if use.distinct else made)


def _place(use: Use, done: tuple[str, ...], ahead: tuple[str, ...], fresh: Collection[str]) -> str | None:
    if missing := [tool for tool in use.after if tool not in fresh]:
        wait = ": wait for that result" if {*missing} <= {*ahead} else ""
        return f"it comes after {', '.join(missing)}{wait}"
    if late := [tool for tool in use.before if tool in done]:
        return f"it comes before {', '.join(late)}, and that was already called"
    late = [tool for tool in use.before if tool in ahead]
    return f"it comes before {', '.join(late)}: call it first, by itself" if late else None


def _wrong_number(use: Use, done: tuple[str, ...], ahead: tuple[str, ...]) -> str | None:
    used = done.count(use.tool)
    if use.at_most is not None and used + ahead.count(use.tool) >= use.at_most:
        times = "1 time" if use.at_most == 1 else f"{use.at_most} times"
        return f"already used its maximum of {times}" if used else f"it may be used at most {times}"
    if not use.consecutive and (use.tool in ahead or done[-1:] == (use.tool,)):
        return "it may not be used twice in a row: call another tool in between, and wait for its result"
    return None


# Own checks: functions of the user's that say what is wrong with a call, and the past calls that they are shown.


class PastCall(Struct, frozen=True, kw_only=True):
    """A call that has succeeded. `result` is what the model was told: a JSON value, or else a text."""

    tool: str
    arguments: Mapping[str, object]
    result: Json


CheckOfArguments = Callable[[dict[str, object]], str | None]
"""A pure function of a call's arguments: what is wrong with them, a sentence for the model; None: nothing."""

CheckOfResults = Callable[[dict[str, object], tuple[PastCall, ...]], str | None]
"""The same of a call's arguments and of the calls that have succeeded before it, the last one last."""

CompletionCheck = CheckOfArguments | CheckOfResults
"""Either of them; which, its parameters say."""

AnyCheck = Callable[..., str | None]
"""A completion check in a value that survives JSON without one: msgspec knows no union of two kinds of functions."""


def problem_with(
    check: CheckOfResults, arguments: str, calculating: ToolSpec | None, past: tuple[PastCall, ...]
) -> str | None:
    """What the check says is wrong with a call of these arguments; None: nothing.

    `calculating` is its tool where that has calculated arguments: the check is given their results.
    """
    try:
        worked_out = with_results(arguments, calculating) if calculating else arguments
    except ValueError as error:
        return f"{error}."
    return check(_decoded_arguments(worked_out), past)


def sees_results(check: CompletionCheck) -> TypeGuard[CheckOfResults]:
    """Whether the check is to be called with what was found out, beside the arguments."""
    return not _of_arguments(check) and unfit_function(check, "arguments", "results") is None


def _of_arguments(check: CompletionCheck) -> TypeGuard[CheckOfArguments]:
    return unfit_function(check, "arguments") is None


def of_both(check: CompletionCheck) -> CheckOfResults:
    """The check as one of both. TypeError for a function of other parameters."""
    if _of_arguments(check):
        of_one = check
        return lambda arguments, _: of_one(arguments)
    if sees_results(check):
        return check
    raise TypeError(f"a completion check takes (arguments) or (arguments, results): {unfit_function(check, '')}")


def past_calls(state: State) -> tuple[PastCall, ...]:
    """The calls that have succeeded, in their order; what compaction cut of them is there where the record has it."""
    return tuple(_past_calls(state))


def _past_calls(state: State) -> Iterator[PastCall]:
    cut = {entry.call_id: entry for entry in state.cleared}
    here = {message.call_id for message in state.history if isinstance(message, Tool)}
    for entry in state.cleared:
        if entry.call_id not in here and entry.status == "succeeded":
            yield PastCall(
                tool=entry.name,
                arguments=MappingProxyType(_decoded_arguments(entry.arguments)),
                result=value_of(entry.text),
            )
    made: dict[str, str] = {}
    for message in state.history:
        match message:
            case Assistant(calls=calls):
                made.update((call.id, call.arguments) for call in calls)
            case Tool(kind=Kind.TOOL_RESULT, status="succeeded", name=name, call_id=call_id) if name != RECALL.name:
                text = cut[call_id].text if call_id in cut else message.text
                yield PastCall(
                    tool=name,
                    arguments=MappingProxyType(_decoded_arguments(made.get(call_id, "{}"))),
                    result=value_of(text),
                )
            case _:
                pass


_members: msgspec.json.Decoder[dict[str, object]] = msgspec.json.Decoder(dict[str, object])


def _decoded_arguments(text: str) -> dict[str, object]:
    return _members.decode(text)


# Named tools: those that the user or an error has spoken of in this run.

_WORDS = re.compile(r"[a-z0-9]+")
_PARTS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def named_tools(names: Iterable[str], state: State) -> frozenset[str]:
    """Which of these tools were spoken of: by name in a tool's error, or by every word of it in the user's message.

    "Cancel the order if it is late" speaks of `cancel_order`; "report on order 7" does not. An error that says "call
    confirm_address first" speaks of `confirm_address`: whoever wrote the tool wrote it. A result does not: it may hold
    a stranger's mail that says what to call. Corrections of forge's own don't count: they list tools.
    """
    wanted = frozenset(names)
    if not wanted:
        return wanted
    known, before = _known(wanted, state)
    history = state.history[known:]
    errors = [m.text for m in history if isinstance(m, Tool) and _failed(m)]
    asked = [_WORDS.findall(m.text.lower()) for m in history if _asks(m)]
    left = wanted.difference(before.named)
    found = {name for name in left if _in_errors(name, errors) or any(_all_in(name, said) for said in asked)}
    return wanted & found.union(before.named)


def times_asked(state: State) -> int:
    """How often the user has said something."""
    known, before = _known((), state)
    return before.asked + sum(map(_asks, state.history[known:]))


def with_spoken(names: Collection[str], state: State) -> State:
    """The state that remembers which of these tools were named up to now, so that it is not looked up again."""
    spoken = Spoken(
        tools=tuple(names),
        length=len(state.history),
        last=state.history[-1] if state.history else None,
        named=tuple(sorted(named_tools(names, state))),
        asked=times_asked(state),
    )
    return replace(state, memo=replace(state.memo, spoken=spoken))


def _known(names: Collection[str], state: State) -> tuple[int, Spoken]:
    """What is remembered of these tools, and of how many messages; of none where any of the tools is not known."""
    spoken = state.memo.spoken
    known = known_messages(state.history, spoken.length, spoken.last) if {*spoken.tools}.issuperset(names) else 0
    return known, spoken if known else Spoken()


def _asks(message: Message) -> bool:
    return isinstance(message, User) and message.kind is Kind.USER_INPUT


def _failed(answer: Tool) -> bool:
    """Whether a tool has failed with it. In what a client sends back, forge's mark says more than the client."""
    marked = status_of(answer.text)
    status = answer.status if marked == "succeeded" else marked
    return answer.kind is Kind.TOOL_RESULT and status in ("failed", "final", "unresolved")


def _in_errors(name: str, errors: Iterable[str]) -> bool:
    whole = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    # Most errors do not hold the name at all, and that is found out many times faster.
    return any(name in error and whole.search(error) for error in errors)


def _all_in(name: str, said: list[str]) -> bool:
    """Whether each part of the name begins a word: "cancelled orders" has `cancel` and `order`."""
    parts = [part.lower() for part in _PARTS.findall(name)]
    return bool(parts) and all(any(word.startswith(part) for word in said) for part in parts)


# Stuck detection: whether a reply brought anything new, and which calls only repeat themselves.
#
# New is a success that the model has not seen yet: of this tool, with these arguments, with this answer. A write that
# is made again is nothing new, whatever it answers: each order that is placed has a number of its own. A compaction
# may cut earlier answers, so it resets what counts as seen. Repeats, alternating pairs, monologues and the same error
# again and again are thereby one thing: replies in a row without progress.

PATIENCE = 2
"""Replies in a row that may fail, each in a different way, before a model counts as stuck."""


def answer_digest(name: str, arguments: str, text: str) -> str:
    """The digests of an answer and of its call, as the ledger keeps them: 16 hexadecimal digits each."""
    call = _call_digest(name, arguments)
    return (hashlib.blake2b(call + text.encode(errors="replace"), digest_size=_DIGEST).digest() + call).hex()


def _call_digest(name: str, arguments: str) -> bytes:
    whole = f"{name}\0{canonical(arguments)}"
    return hashlib.blake2b(whole.encode(errors="replace"), digest_size=_DIGEST).digest()


_DIGEST = 8
"""Bytes of a digest. To search `Ledger.seen` for them costs next to nothing, however long the run is."""


def digests(done: Iterable[Success]) -> bytes:
    """What `Ledger.seen` grows by with these successes."""
    return bytes.fromhex("".join([success.answer for success in done]))


def replies_without_progress(ledger: Ledger) -> int:
    """How many replies in a row brought nothing new, not counting a requested summary."""
    summary = ledger.summary_turn > ledger.progress
    return max(0, ledger.turn - ledger.progress - summary)


class Repeating(Struct, frozen=True, kw_only=True):
    """The tools whose successes count as new by a rule of their own.

    Those that are `free` may repeat themselves. The same call of `once` is nothing new, whatever it answers.
    """

    free: frozenset[str] = frozenset()
    once: frozenset[str] = frozenset()


def with_calls(ledger: Ledger, done: tuple[Success, ...], vain: tuple[Attempt, ...], tools: Repeating) -> Ledger:
    """The ledger after calls that succeeded and others that did not.

    All successes are kept in `successes`, new or not: steps are judged by them.
    """
    repeats = _answered_again(done, tools, ledger.seen)
    return replace(
        ledger,
        successes=ledger.successes + done,
        seen=ledger.seen + digests(done),
        attempts=ledger.attempts + repeats + vain,
        progress=ledger.turn if len(repeats) < len(done) else ledger.progress,
    )


def _answered_again(done: Iterable[Success], tools: Repeating, seen: bytes | set[bytes]) -> tuple[Attempt, ...]:
    """The successes that brought nothing new, as attempts: they, or their answers, are among what was `seen` before."""
    again = [
        success
        for success in done
        if success.name not in tools.free and _halves(success)[success.name in tools.once] in seen
    ]
    return tuple([Attempt(name=s.name, arguments=s.arguments, answer=s.answer, turn=s.turn) for s in again])


def _halves(success: Success) -> tuple[bytes, bytes]:
    """The digests of its answer and of the call."""
    both = bytes.fromhex(success.answer)
    return both[:_DIGEST], both[_DIGEST:]


def attempts_since_progress(ledger: Ledger) -> tuple[Attempt, ...]:
    """The calls since the last progress."""
    recent = takewhile(lambda attempt: attempt.turn > ledger.progress, reversed(ledger.attempts))
    return tuple(recent)[::-1]


def repeated_attempts(ledger: Ledger) -> list[Attempt]:
    """The calls, since the last progress, that had been made and answered or refused before."""
    recent = attempts_since_progress(ledger)
    seen, found = set[tuple[str, str]](), list[Attempt]()
    for attempt in recent:
        key = (attempt.name, canonical(attempt.arguments))
        if key in seen or _answered_before(ledger, *key):
            found.append(attempt)
        seen.add(key)
    return found


def times_answered(ledger: Ledger, name: str, arguments: str) -> int:
    """How often this same call was answered, the last time without progress; 0: not since the last progress."""
    key = (name, canonical(arguments))
    vain = sum(bool(a.answer) and (a.name, canonical(a.arguments)) == key for a in attempts_since_progress(ledger))
    return vain + _answered_before(ledger, *key) if vain else 0


def turns_written(ledger: Ledger, name: str, arguments: str) -> tuple[int, ...]:
    """The turns in which this same call has succeeded since another call's last new answer.

    So a write is not made for ever because a look-up that may be made for ever is made in between: an edit that
    changes nothing, and the check that goes on failing in the same way.
    """
    if _call_digest(name, arguments) not in ledger.seen:
        return ()
    made, turns = canonical(arguments), list[int]()
    known = len(ledger.seen) // (2 * _DIGEST)
    for place, success in zip(range(known - 1, -1, -1), reversed(ledger.successes), strict=False):
        if success.name == name and canonical(success.arguments) == made:
            turns.append(success.turn)
        elif ledger.seen.find(bytes.fromhex(success.answer)) == place * 2 * _DIGEST:
            break  # it was there for the first time: what is before it need not be read
    return tuple(turns)


def answered_differently(ledger: Ledger, name: str, arguments: str) -> bool:
    """Whether this same call has succeeded with more than one answer in this run."""
    made = canonical(arguments)
    same = (one for one in ledger.successes if one.name == name and canonical(one.arguments) == made)
    return len({success.answer for success in same}) > 1


def _answered_before(ledger: Ledger, name: str, arguments: str) -> bool:
    """Whether this same call was answered up to the last progress, and no compaction can have cut the answer.

    What succeeded is found by its digest: no call of a long run is read again.
    """
    if _call_digest(name, arguments) in ledger.seen:
        return True
    since, progress = (ledger.compactions[-1].turn if ledger.compactions else -1), ledger.progress
    vain = [a.arguments for a in ledger.attempts if a.answer and a.name == name and since < a.turn <= progress]
    return canonical(arguments) in map(canonical, vain)


# The rules of a workflow, and what is legal now: asked by enforce, serialize and nudges alike.

InDoubtPolicy = Literal["report", "ask"]
"""When a person is asked about a call whose outcome is unknown: it was started, and may have taken effect.

- `ask`: before the model's next turn.
- `report`: the model is told and goes on with other tools; the person is asked before the next call of that tool,
  whatever its arguments, and at once where the run cannot end without the tool.

With nobody to ask, the run ends as `OutcomeUnknown`. Calls of tools that only read, or are idempotent, are retried.
"""

TextPolicy = Literal["nudge", "accept"]
"""What bare text means while tools are offered: a mistake to correct, or the answer."""


class RepairLimits(Options, frozen=True, kw_only=True):
    """How much the repair of a damaged call may guess, by the effect of its tool.

    0: only repairs with one meaning. 1: also what may have been cut off (a closing bracket missing at the end).
    From 2: also where a value begins and ends.
    """

    read: Count = 10
    write: Count = 0
    terminal: Count = 0

    def of(self, effect: ToolEffect) -> int:
        """The limit for tools of that effect."""
        match effect:
            case "read":
                return self.read
            case "write":
                return self.write
            case "terminal":
                return self.terminal
            case _:
                assert_never(effect)


OnViolation = Literal["block_all", "block_call"]
"""What happens to the other calls in a reply if one is refused: none runs, or the legal ones do."""

BatchPolicy = Literal["auto", "all", "first", "independent"]
"""Which calls of one reply are run: all, the first, or those that do not depend on the results of others.

`auto`: the first in the mode prompted, all in the other modes.
"""


class Limits(Options, frozen=True, kw_only=True):
    """The budgets of a run, and its maximum numbers of consecutive mistakes; one more ends the run with a typed Halt.

    Budgets: model calls (`max_iterations`, including retries), tool calls, tokens of prompts and replies, seconds, and
    cost by the `price` of a million tokens. None means no limit. For `max_iterations`, None means 10 in a workflow, 20
    for each message to an agent, and no limit in Guardrails, where your own loop counts.

    `max_retries_per_step`: consecutive replies without a usable call. `max_tool_errors`: consecutive tool failures.
    `max_repeats`: how often a call may get the same result without new information in between; for a write, any result
    counts as the same. After that the call is not run again, unless its tool is `repeatable`. None: no limit.
    """

    max_iterations: AtLeastOne | None = None
    max_tool_calls: AtLeastOne | None = None
    max_tokens: AtLeastOne | None = None
    max_seconds: Seconds | None = None
    max_cost: Positive | None = None
    price: Price | None = None
    max_retries_per_step: Count = 3
    max_tool_errors: Count = 2
    max_repeats: AtLeastOne | None = 2

    def contradictions(self, wrong: Collection[str]) -> Iterator[str]:
        """Negative prices, and `max_cost` without a price."""
        if self.price is not None and "price" not in wrong:
            given = (self.price.prompt, self.price.completion, self.price.cached or 0)
            if min(given) < 0:
                yield f"price is {self.price}; no price is negative"
        if self.max_cost is not None and self.price in (None, Price()) and not {"max_cost", "price"} & {*wrong}:
            yield "max_cost needs price=Price(prompt=…, completion=…): what a million tokens cost"

    def budget(self, model_calls: int = 10) -> Budget:
        """The budget of a run; `model_calls` applies if `max_iterations` is None."""
        return Budget(
            calls=self.max_iterations or model_calls,
            tool_calls=self.max_tool_calls,
            tokens=self.max_tokens,
            seconds=self.max_seconds,
            cost=self.max_cost,
            price=self.price or Price(),
        )


class Calls(Options, frozen=True, kw_only=True):
    """How the calls in a reply are found, checked and run.

    `batch`: which calls of a reply run. `on_violation`: what happens to the other calls if one is refused.
    `max_parallel`: maximum number of concurrent reads. `max_calls_per_reply`: calls beyond that are answered but not
    run. `in_doubt`: when to ask a person about a call whose outcome is unknown.
    `rescue_enabled`: find calls in text, trying your own `families` and formats first, and repair damaged ones within
    the `repair_limits`. `value_checks`: refuse placeholders as values, and answers that repeat forge's corrections.
    """

    batch: BatchPolicy = "auto"
    on_violation: OnViolation = "block_all"
    max_parallel: AtLeastOne = 4
    max_calls_per_reply: AtLeastOne = 32
    in_doubt: InDoubtPolicy = "report"
    rescue_enabled: bool = True
    repair_limits: RepairLimits = RepairLimits()
    families: Sequence[Family | Format] = ()
    value_checks: bool = True


class Rules(Options, frozen=True, kw_only=True):
    """The rules of a workflow, and its maximum numbers of mistakes.

    `max_premature` and `max_prerequisite_violations` count consecutive mistakes, as the `limits` do.
    """

    tools: tuple[ToolSpec, ...]
    required: tuple[str, ...] = ()
    on_text: TextPolicy = "nudge"
    limits: Limits = Limits()
    calls: Calls = Calls()
    max_premature: int = 3
    max_prerequisite_violations: int = 2
    order: tuple[Use, ...] = ()
    withheld: tuple[str, ...] = ()
    """Writes that no step needs: they may not be called until the user or an error names them."""
    unruled: tuple[str, ...] = ()
    """Writes that no rule names, in a workflow without required steps."""
    checks: Mapping[str, AnyCheck] = {}
    """By tool, a user's function that says what is wrong with a call. Only rules without checks survive JSON."""
    without: frozenset[str] = frozenset()
    """Names turned off: narrowings (`stages.offer.NARROWINGS`), guards (`stages.guards.GUARDS`), `ask_once`."""

    def tool(self, name: str) -> ToolSpec | None:
        """The tool of that name, None for an unknown one."""
        return next((tool for tool in self.tools if tool.name == name), None)

    @property
    def terminal(self) -> tuple[str, ...]:
        """The names of the tools that end the run."""
        return tuple(tool.name for tool in self.tools if tool.effect == "terminal")


def completed(ledger: Ledger) -> tuple[str, ...]:
    """The tools that have succeeded, each once, in the order of their first success."""
    return tuple(dict.fromkeys(success.name for success in ledger.successes))


def pending(rules: Rules, ledger: Ledger) -> tuple[str, ...]:
    """The required steps that have not succeeded yet, in declared order, then tools not called often enough.

    A success that a later call has made out of date does not count.
    """
    if not rules.required and not rules.order:
        return ()
    done = current_successes(rules.order, ledger.successes)
    names = {success.name for success in done}
    steps = tuple(step for step in rules.required if step not in names)
    if not rules.order:
        return steps
    return tuple(dict.fromkeys(steps + underused_tools(rules.order, done)))


def listed_values_left(rules: Rules, ledger: Ledger) -> tuple[Listed, ...]:
    """The tools that must still be called with listed values, and those values."""
    each = [use for use in rules.order if use.each_of]
    done = current_successes(rules.order, ledger.successes) if each else ()
    return tuple(Listed(tool=use.tool, values=left) for use in each if (left := _values_left(use, done)))


def welcomes_words(rules: Rules, ledger: Ledger) -> bool:
    """Whether text is accepted as the answer now."""
    return rules.on_text == "accept" and not pending(rules, ledger)


def required_tools(rules: Rules) -> tuple[str, ...]:
    """The tools that must succeed before the run may end, in declared order."""
    return tuple(dict.fromkeys((*rules.required, *(tool for use in rules.order for tool in use.demanded))))


def succeeded_names(ledger: Ledger) -> tuple[str, ...]:
    """The tool names of all successful calls, with repetitions."""
    return tuple([success.name for success in ledger.successes])


def outdated(rules: Rules, ledger: Ledger, names: Iterable[str]) -> tuple[str, ...]:
    """Those of the tools that have succeeded, but whose successes are all out of date."""
    if not any(use.again_after for use in rules.order):
        return ()
    gone = {*succeeded_names(ledger)} - {one.name for one in current_successes(rules.order, ledger.successes)}
    gone -= {*denied(rules, ledger, gone)}
    return tuple(name for name in names if name in gone)


def denied(rules: Rules, ledger: Ledger, names: Iterable[str]) -> tuple[str, ...]:
    """Those of the tools whose latest result does not count by their own rule, with no write since."""
    judged = _judged_tools(rules.order)
    latest = _latest_since_write(rules, ledger) if judged else {}
    return tuple(name for name in names if name in judged and name in latest and not latest[name].passed)


def unsettled_steps(rules: Rules, state: State) -> tuple[str, ...]:
    """The required steps whose latest answer may say no, the latest first, where a tool that writes may mend that.

    Nothing was written since. Either a rule says that the answer does not count; or there is no such rule, the tool
    looks at what was written before, and nobody knows. Where no tool says that it reads, any of them may look.
    """
    required, ledger = required_tools(rules), state.ledger
    if not required or not ledger.successes:
        return ()
    reads = {tool.name for tool in rules.tools if tool.effect == "read"} or {*required}
    judged = _judged_tools(rules.order)
    written = {one.name for one in ledger.successes} & _writes(rules)

    def may_say_no(name: str, latest: Success) -> bool:
        if name in judged or name not in reads:
            return name in judged and not latest.passed
        return bool(written - {name})

    recent = _latest_since_write(rules, ledger).items()
    found = [name for name, latest in recent if name in required and may_say_no(name, latest)]
    mendable = found and any(t.effect == "write" and t.name not in found for t in legal_tools(rules, state))
    return tuple(found) if mendable else ()


def _latest_since_write(rules: Rules, ledger: Ledger) -> dict[str, Success]:
    """The latest success of each tool since something was last written, that included; the latest one first."""
    writes = _writes(rules)
    found: dict[str, Success] = {}
    for success in reversed(ledger.successes):
        if success.name not in found:
            found[success.name] = success
        if success.name in writes:
            break
    return found


def _writes(rules: Rules) -> frozenset[str]:
    return frozenset(tool.name for tool in rules.tools if tool.effect == "write")


def repeating_tools(rules: Rules) -> Repeating:
    """The tools that may repeat themselves, and those whose same call made again is nothing new, whatever it answers.

    Those are the ones that write, unless a rule of order wants them more than once.
    """
    free = frozenset(tool.name for tool in rules.tools if tool.repeatable)
    several = {use.tool for use in rules.order if use.at_least > 1 and not use.distinct}
    writes = frozenset(tool.name for tool in rules.tools if tool.effect == "write")
    return Repeating(free=free, once=writes - free - several)


def missing_prerequisites(rules: Rules, tool: ToolSpec, arguments: str | None, ledger: Ledger) -> tuple[str, ...]:
    """The prerequisites of a call that no earlier success meets; with no arguments yet, by name alone."""
    return missing_by_call(rules, ledger)(tool, arguments) if tool.prerequisites else ()


def missing_by_call(rules: Rules, ledger: Ledger) -> Callable[[ToolSpec, str | None], tuple[str, ...]]:
    """The same for any number of calls, for all of which each success is read once."""
    done = current_successes(rules.order, ledger.successes)
    read = dict[tuple[str, str | None], tuple[set[bytes | None], Iterator[bytes | None]]]()

    def met(name: str, key: str | None, wanted: bytes | None) -> bool:
        successes = (_argument_value(success.arguments, key) for success in done if success.name == name)
        values, unread = read.setdefault((name, key), (set(), successes))
        if wanted in values:
            return True
        # The first that is found is enough: a long run is not read to its end.
        for value in unread:
            values.add(value)
            if value == wanted:
                return True
        return False

    def missing(tool: ToolSpec, arguments: str | None) -> tuple[str, ...]:
        unmet = []
        for needed in tool.prerequisites:
            key = None if arguments is None else needed.match_arg
            wanted = _argument_value(arguments or "{}", key)
            if (key is not None and wanted is None) or not met(needed.tool, key, wanted):
                unmet.append(needed.tool)
        return tuple(unmet)

    return missing


def legal_tools(rules: Rules, state: State) -> tuple[ToolSpec, ...]:
    """The tools that may be called now: prerequisites met, rules of order kept, terminal ones only after all steps.

    Without those that are withheld, unless the history names them, and those with a call whose outcome is unknown: a
    person decides about it first.
    """
    ledger, withheld = state.ledger, still_withheld(rules, state)
    waiting = bool(pending(rules, ledger))
    done = succeeded_names(ledger) if rules.order else ()
    fresh = {success.name for success in current_successes(rules.order, ledger.successes)} if rules.order else done
    return tuple(
        tool
        for tool in rules.tools
        if tool.name not in withheld
        and not (waiting and tool.effect == "terminal")
        and not unknown_outcome(tool, ledger)
        and not missing_prerequisites(rules, tool, None, ledger)
        and obstacle(rules.order, done, tool.name, fresh=fresh) is None
    )


def still_withheld(rules: Rules, state: State) -> frozenset[str]:
    """The withheld tools that neither the user nor an error has named in this run."""
    return frozenset(rules.withheld) - named_tools(rules.withheld, state)


def needed_tools(rules: Rules, wanted: Iterable[str]) -> frozenset[str]:
    """These tools, and all tools that have to succeed before them."""
    before = {tool.name: {p.tool for p in tool.prerequisites} for tool in rules.tools}
    for use in rules.order:
        before.setdefault(use.tool, set()).update(use.after, (use.each_of.tool,) if use.each_of else ())
    found, new = set[str](), {*wanted}
    while new:
        found |= new
        new = {name for tool in new for name in before.get(tool, ())} - found
    return frozenset(found)


def blocking_unknown_outcome(rules: Rules, state: State) -> ToolCall | None:
    """A call whose outcome is unknown and without whose tool the run cannot end; None: there is none."""
    ledger = state.ledger
    unknown = tuple(call for tool in rules.tools if (call := unknown_outcome(tool, ledger)))
    if not unknown:
        return None
    left = pending(rules, ledger)
    ends = needed_tools(rules, (*left, *rules.terminal)) - ({*completed(ledger)} - {*left})
    stuck = rules.on_text != "accept" and not legal_tools(rules, state)
    return next((call for call in unknown if stuck or call.name in ends), None)


# Unneeded writes: the tools that change something and have no part in what a workflow is about.
#
# Required steps say what a workflow is about, and these tools are withheld. Without any, nothing says which of its
# writes belong: they are offered, and what holds for them is told at `Unruled writes`. Where no tool says that it
# reads, a tool that says nothing may be a look-up, so none is taken for a write.


def unneeded_writes(rules: Rules, named: Collection[str] = ()) -> tuple[str, ...]:
    """The tools that write, that nothing needs, and of which the workflow says nothing.

    It says something of a tool by naming it (`named`) or by a rule for it: prerequisites, order, values that must have
    been seen, calculations, approval. None without a tool that says that it reads.
    """
    if not any(tool.effect == "read" and tool != RECALL for tool in rules.tools):
        return ()
    ordered = (name for use in rules.order for name in use.names)
    ruled = (tool.name for tool in rules.tools if _has_a_rule(tool))
    sources = (name for tool in rules.tools for bound in tool.grounded for name in bound.sources)
    known = needed_tools(rules, (*rules.required, *rules.terminal, *named, *ordered, *ruled, *sources))
    return tuple(tool.name for tool in rules.tools if tool.effect == "write" and tool.name not in known)


def _has_a_rule(tool: ToolSpec) -> bool:
    return bool(tool.prerequisites or tool.grounded or tool.calculated or tool.approval)


# Unruled writes: what changes something, in a workflow without steps, and of which no rule says anything.
#
# Nothing but the user's message says whether they are meant (`Rules.unruled`). A small model says that it has sent a
# message as readily as it sends it, makes up what it was not told, and does a thing twice.

RESPOND = "respond"
"""The tool with which a model answers in words where text is no answer."""


def may_have_meant_a_call(rules: Rules, state: State) -> bool:
    """Whether an answer in words is asked about: such a write was legal, and no tool was called.

    Once a run, and not before the last model call: what it might find, no call could use any more. Asked after a
    look-up, a small model writes what it has found.
    """
    ledger = state.ledger
    if "ask_once" in rules.without or not rules.unruled or ledger.asked_to_act >= 0 or ledger.budget.calls < _ENOUGH:
        return False
    called = ledger.successes or ledger.attempts
    return not called and any(tool.name in rules.unruled for tool in legal_tools(rules, state))


_ENOUGH = 2
"""Model calls: one to call a tool, one to say so."""


# The ledger of a session, computed from its history alone: nothing has to be stored between two requests.
#
# A client sends the whole conversation with each request. What was called, with which arguments, and what came of it
# stands in it, and that is what rules are about:
#
# - `successes`, `seen`, `progress` and `turn` are those of a run of forge's with this history, and so are the
#   `attempts` whose calls ran, and the tool calls that are left of the budget.
# - What a history does not hold is at its beginning: mistakes in a row (corrections are hidden from clients), refused
#   calls, tokens and costs, calls of unknown outcome, what a person rejected, what compaction has cut.
# - What the user says while calls run is progress in a run. Here it is not: clients put reminders of their own there.

IsError = Callable[[str, str], bool]
"""Whether a tool's result is an error: a pure function of the tool's name and the text of its result."""

_Answered = list[tuple[ToolCall, Tool]]


def recount(
    rules: Rules, history: History, *, budget: Budget | None = None, is_error: IsError = lambda *_: False
) -> Ledger:
    """The ledger after this history, with what is left of the budget. Takes time linear in the history.

    A call without an answer has not been made. One is an error if the history says so, if it begins with a mark of
    forge's own (`[ToolError]`), or if `is_error` takes it for one. A question of the user's after an answer in words is
    progress: what was asked for before may be asked for again.
    """
    repeating = repeating_tools(rules)
    done: list[Success] = []
    vain: list[Attempt] = []
    seen: set[bytes] = set()
    asked, ran = last_question(history), 0
    progress = turn_of(history[asked]) if asked else 0
    for turn, answered in _batches(history):
        outcomes = [(call, answer, _status(call, answer, is_error)) for call, answer in answered]
        new = [_success(call, answer, turn, rules.order) for call, answer, status in outcomes if status == "succeeded"]
        again = _answered_again(new, repeating, seen)
        vain += (*again, *(_attempt(c, a, status, turn) for c, a, status in outcomes if status in _VAIN))
        done += new
        seen.update(chain.from_iterable(map(_halves, new)))
        progress = max(progress, turn if len(again) < len(new) else 0)
        # Not what a result says of itself: a tool could begin it with forge's mark for a call that was not run.
        ran += sum(answer.kind is Kind.TOOL_RESULT and answer.status != "not_run" for _, answer in answered)
    return Ledger(
        budget=_left(budget or Budget(), ran),
        turn=max(map(turn_of, history), default=0),
        successes=tuple(done),
        attempts=tuple(vain),
        seen=digests(done),
        progress=progress,
    )


_VAIN: frozenset[Status] = frozenset({"failed", "final", "unresolved"})


def _batches(history: History) -> Iterator[tuple[int, _Answered]]:
    """The calls of each reply that were answered, with the answers and the reply's turn.

    Where an id stands twice, the first answer is that of the first call.
    """
    turn, answered = 0, _Answered()
    waiting: dict[str, deque[ToolCall]] = {}
    for message in history:
        match message:
            case Assistant(calls=calls) if calls:
                if answered:
                    yield turn, answered
                turn, answered, waiting = message.turn, [], {}
                for call in calls:
                    waiting.setdefault(call.id, deque()).append(call)
            case Tool(call_id=call_id) if of_this_id := waiting.get(call_id):
                answered.append((of_this_id.popleft(), message))
            case _:
                pass
    if answered:
        yield turn, answered


def last_question(history: History) -> int:
    """Where the user has last said something after an answer in words; 0 if there is no such place."""
    place, answered = 0, False
    for number, message in enumerate(history):
        match message:
            case Assistant(calls=calls):
                answered = not calls
            case User(kind=Kind.USER_INPUT) if answered:
                place, answered = number, False
            case _:
                pass
    return place


def _status(call: ToolCall, answer: Tool, is_error: IsError) -> Status:
    """The outcome of a call. A client says of it that it failed, or nothing; forge's mark says more."""
    if answer.kind is not Kind.TOOL_RESULT:
        return "not_run"
    if answer.status not in ("succeeded", "failed"):
        return answer.status
    if (marked := status_of(answer.text)) != "succeeded":
        return marked
    return "failed" if answer.status == "failed" or is_error(call.name, answer.text) else "succeeded"


def _success(call: ToolCall, answer: Tool, turn: int, order: tuple[Use, ...]) -> Success:
    arguments = _object_arguments(call)
    digest = answer_digest(call.name, arguments, answer.text)
    listed = listed_for(order, call.name, answer.text)
    passed = answer_passes(order, call.name, answer.text)
    return Success(name=call.name, arguments=arguments, answer=digest, turn=turn, listed=listed, passed=passed)


def _attempt(call: ToolCall, answer: Tool, status: Status, turn: int) -> Attempt:
    # What raised gave no answer: the next try may.
    arguments = _object_arguments(call)
    digest = "" if status == "failed" else answer_digest(call.name, arguments, answer.text)
    return Attempt(name=call.name, arguments=arguments, answer=digest, turn=turn)


def _object_arguments(call: ToolCall) -> str:
    """The arguments as a JSON object: what a client sends may be damaged."""
    whole = with_object_arguments(call)
    return whole.arguments if whole else "{}"


def _left(budget: Budget, ran: int) -> Budget:
    if budget.tool_calls is None:
        return budget
    return replace(budget, tool_calls=max(0, budget.tool_calls - ran))


def unknown_outcome(tool: ToolSpec, ledger: Ledger) -> ToolCall | None:
    """The first call of the tool whose outcome is unknown: the tool is not used until somebody decides.

    None for a tool that is safe to retry: it only reads, or is idempotent.
    """
    if not ledger.in_doubt or tool.retriable:
        return None
    return next((call for call in ledger.in_doubt if call.name == tool.name), None)
