"""Order: in which order and how often tools may be called, and with which listed values each must be called."""

from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec
from msgspec import Raw

from stages.decoding import decode_or
from stages.message import ToolCall
from stages.options import AtLeastOne, Count, Options, unfit_function
from stages.schema.canonical_json import canonical
from stages.schema.value import Json, any_json, raw_members
from stages.seen import is_own
from stages.state import JudgedResult, Listed, Success
from stages.tool import Grounded

# Listing: the values that a tool has listed and that another must be called with.


class Each(Options, frozen=True, kw_only=True):
    """Requires one call, with the value as `argument`, for each value that `tool` listed in its latest result.

    The values are the texts and whole numbers in the outermost members named `member`. Without `member`, they are in
    those named like the argument, or named `id` if the tool's name says whose ids they are; if there are none, they are
    the items of a result that is a list. A result that is not JSON lists nothing.
    """

    tool: str
    argument: str
    member: str = ""


def value_of(result: str) -> Json:
    """The JSON value of a result, or its text if it is not JSON."""
    return decode_or(any_json, result, result)


def listed_in(each: Each, result: str) -> tuple[str, ...]:
    """The values that a result lists, each once and in order; whole numbers as they are written."""
    value = value_of(result)
    for level in _levels(value):
        found = [(name, text) for name, one in level if (text := _text(one))]
        if named := [text for name, text in found if _is_meant(each, name)]:
            return tuple(dict.fromkeys(named))
    items = value if isinstance(value, list) and not each.member else ()
    return tuple(dict.fromkeys(text for one in items if (text := _text(one))))


def _levels(value: Json) -> Iterator[list[tuple[str, Json]]]:
    """The members of a value, level by level; deeper ones belong to something else."""
    level: list[tuple[str, Json]] = [("", value)]
    while level:
        inner: list[tuple[str, Json]] = []
        for name, one in level:
            if isinstance(one, dict):
                inner += one.items()
            elif isinstance(one, list):
                inner += ((name, item) for item in one)
        yield inner
        level = inner


def _is_meant(each: Each, name: str) -> bool:
    if each.member:
        return name == each.member
    return bool(name) and is_own(Grounded(argument=each.argument, sources=(each.tool,)), name, each.tool)


def _text(value: Json) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


# Order: in which order and how often tools may be used, beyond required steps and prerequisites.
#
# Only successful calls count. `stages.rules.legal_tools`, the guard and corrections all ask here what is legal.
# The rules hold among the calls of one reply as they do between replies.


class Change(Options, frozen=True, kw_only=True):
    """`tool` makes results of another out of date; with `match_arg`, only if both calls have the same value for it."""

    tool: str
    match_arg: str | None = None


CountsIf = Callable[..., bool]
"""A pure function of a call's result, a JSON value or a text: whether the result counts."""


class Use(Options, frozen=True, kw_only=True):
    """The rules for one tool.

    - `at_step` n: the n-th successful call of the run must be of this tool.
    - `after`: tools that must have succeeded already; `before`: tools that must not have succeeded yet.
    - `again_after`: tools that make its results out of date. Once one of them has succeeded, earlier successes of this
      tool no longer count, as steps or as prerequisites: it must be called again.
    - `at_least`: minimum number of successes before a terminal tool may be called; `at_most`: maximum.
    - `distinct`: a repeated call counts once towards `at_least`.
    - `each_of`: values that another tool lists; it must have succeeded with each before a terminal tool may be called.
    - `counts_if`: which results count, as a step and as a prerequisite. One that does not count cancels earlier ones of
      the same call.
    """

    tool: str
    at_step: AtLeastOne | None = None
    after: Sequence[str] = ()
    before: Sequence[str] = ()
    again_after: Sequence[str | Change] = ()
    at_least: Count = 0
    at_most: AtLeastOne | None = None
    distinct: bool = False
    each_of: Each | None = None
    counts_if: CountsIf | None = None

    def contradictions(self, wrong: Collection[str]) -> Iterator[str]:
        """Rules that no run could keep, whatever tools there are."""
        if wrong:
            return
        tool, changed = self.tool, [change.tool for change in self.changes]
        if tool in self.names[1:]:
            yield f"{tool} cannot come before or after itself"
        yield from (f"{tool} cannot come before {name} and again after it" for name in self.before if name in changed)
        if changed and self.at_most == 1:
            yield f"{tool}: at_most is 1, so it could not be called again after {changed[0]}"
        if both := [name for name in self.after if name in self.before]:
            yield f"{tool} cannot come both before and after {both[0]}"
        if self.at_most is not None and self.at_most < self.at_least:
            yield f"{tool}: at_most is {self.at_most}; it cannot be less than at_least, which is {self.at_least}"
        if self.distinct and self.at_least < 2:
            yield f"{tool}: distinct is about several calls; say with at_least how many, 2 or more"
        if self.counts_if and (said := unfit_function(self.counts_if, "result")):
            yield f"{tool}: counts_if: {said}"

    @property
    def names(self) -> tuple[str, ...]:
        """All tools that the rules mention."""
        listing = (self.each_of.tool,) if self.each_of else ()
        return (self.tool, *self.after, *self.before, *listing, *(change.tool for change in self.changes))

    @property
    def demanded(self) -> tuple[str, ...]:
        """The tools that must succeed before the run may end because of these rules."""
        listing = (self.each_of.tool, self.tool) if self.each_of else ()
        return listing or ((self.tool,) if self.at_least else ())

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes that make its results out of date."""
        return tuple(Change(tool=one) if isinstance(one, str) else one for one in self.again_after)


def current_successes(
    order: tuple[Use, ...], successes: tuple[Success, ...], ahead: tuple[ToolCall, ...] = ()
) -> tuple[Success, ...]:
    """The successes that count: their results do, and nothing has made them out of date since.

    The calls `ahead`, which run next, are treated as if they had succeeded.
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
        changed = (
            (argument_value(success.arguments, c.match_arg), since[c])
            for c in watching.get(success.name, ())
            if c in since
        )
        if not any(value is None or None in values or value in values for value, values in changed):
            found.append(success)
        _note(success.name, success.arguments, changes, since)
    return _convincing(order, tuple(reversed(found)), ahead)


def judged_tools(order: tuple[Use, ...]) -> frozenset[str]:
    """The tools with a rule on which of their results count."""
    return frozenset(use.tool for use in order if use.counts_if)


def judged_by(order: tuple[Use, ...], call: ToolCall, result: str) -> JudgedResult:
    """What a successful call has listed for other tools, and whether it counts by the rules of its own tool."""
    listing = ((use.tool, use.each_of) for use in order if use.each_of and use.each_of.tool == call.name)
    listed = tuple(Listed(tool=tool, values=listed_in(each, result)) for tool, each in listing)
    counting = [use.counts_if for use in order if use.counts_if and use.tool == call.name]
    passed = bool(counting) and all(counts(value_of(result)) for counts in counting)
    return JudgedResult(call_id=call.id, listed=listed, passed=passed)


def _convincing(
    order: tuple[Use, ...], successes: tuple[Success, ...], ahead: tuple[ToolCall, ...]
) -> tuple[Success, ...]:
    """The successes whose results count; for a repeated call, the last result decides."""
    judged = judged_tools(order)
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
    """Record in `since` what the call changed: the value of the argument that matters, or None for anything."""
    for change in changes:
        if change.tool == name:
            since.setdefault(change, set()).add(argument_value(arguments, change.match_arg))


def argument_value(arguments: str, name: str | None) -> bytes | None:
    """The value of that argument as canonical JSON; None if there is no such argument, or no name."""
    value = None if name is None else msgspec.json.decode(canonical(arguments), type=dict[str, Raw]).get(name)
    return None if value is None else bytes(value)


def obstacle(
    order: tuple[Use, ...],
    done: tuple[str, ...],
    name: str,
    ahead: tuple[str, ...] = (),
    fresh: Collection[str] | None = None,
) -> str | None:
    """Why the tool may not be called now; None if it may. `done` are the names of the successful calls, in order.

    `fresh` are the names of those that still count; None means all. `ahead` are the calls that run before it in the
    same reply. It is unknown which of them will succeed, so the call is allowed only if it would be in every case.
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
    """The tools that must still be called more often before the run may end. `done` are the successes that count."""
    found: list[str] = []
    for use in order:
        left = values_left(use, done)
        if left is None and use.each_of:
            found.append(use.each_of.tool)
        elif left or (use.at_least and times_used(use, done) < use.at_least):
            found.append(use.tool)
    return tuple(found)


def values_left(use: Use, done: tuple[Success, ...]) -> tuple[str, ...] | None:
    """The values of `each_of` that the tool must still be called with; None if none were listed yet.

    `done` are the successes that count.
    """
    if use.each_of is None:
        return None
    listed = next((here.values for one in reversed(done) for here in one.listed if here.tool == use.tool), None)
    if not listed:
        return listed
    given = (raw_members.decode(one.arguments).get(use.each_of.argument) for one in done if one.name == use.tool)
    made = {_text(any_json.decode(value)) for value in given if value is not None}
    return tuple(value for value in listed if value not in made)


def times_used(use: Use, done: tuple[Success, ...]) -> int:
    """Number of the successes that count for `at_least`."""
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
    return None
