"""Rules: what a workflow demands of a run, and what is legal and pending in it."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Literal, assert_never

from msgspec.structs import replace

from stages._later import LazyPattern
from stages.effect import Budget, Price
from stages.message import FAILURES, Assistant, Message, Tool, UnknownCall, is_user_input, outcome_of
from stages.options import AtLeastOne, Count, Options, Positive, Seconds
from stages.order import Use, argument_value, current_successes, judged_tools, obstacle, underused_tools, values_left
from stages.progress import RepeatPolicy
from stages.rescue.found import Family, Format
from stages.schema.canonical_json import canonical
from stages.state import Indexed, Ledger, Listed, Spoken, State, Success
from stages.tool import RECALL, Prerequisite, ToolEffect, ToolSpec

# Named tools: those that the user or a tool's error has named in this run.

_WORDS = LazyPattern(r"[a-z0-9]+")
_PARTS = LazyPattern(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def named_tools(names: Collection[str], state: State) -> frozenset[str]:
    """The tools that were named: in a tool's error, or with every word of the name in the user's message.

    "Cancel the order if it is late" names `cancel_order`; "report on order 7" does not. An error such as "call
    confirm_address first" counts, because the tool's author wrote it, unless a call's arguments had the name before:
    "no order 'cancel_order'" only quotes the model. A result does not count: it may contain a stranger's email. Nor do
    forge's own corrections, which list tools.
    """
    spoken = _spoken(names, state).values if names else ()
    return spoken[-1][0] if spoken else frozenset()


def with_spoken(names: Collection[str], state: State) -> State:
    """The state with a memo of which of these tools were named so far."""
    return replace(state, memo=replace(state.memo, spoken=_spoken(names, state)))


def _spoken(names: Collection[str], state: State) -> Indexed[Spoken]:
    def spoken(message: Message, before: Spoken | None) -> Spoken:
        named, passed = before or (frozenset[str](), frozenset[str]())
        if isinstance(message, Assistant):
            given = [canonical(call.arguments).lower() for call in message.calls]
            return named, passed.union(name for name in names if any(name.lower() in text for text in given))
        return named.union(_named_by(message, names, passed)), passed

    return state.memo.spoken.extended(state.history, spoken, key="\n".join(names))


def _named_by(message: Message, names: Collection[str], passed: Collection[str]) -> list[str]:
    """The tools that the message names; `passed` are those that the model has passed to a tool so far."""
    if is_user_input(message):
        words = _WORDS.compiled.findall(message.text.lower())
        return [name for name in names if _all_in(name, words)]
    # By the status, because a result may hold a stranger's text that begins like an error; and by the text, because
    # some clients of the proxy send forge's own corrections back as errors, and those list tools.
    if isinstance(message, Tool) and message.status in FAILURES and outcome_of(message) in FAILURES:
        # Most errors do not contain the name at all, which `in` finds out many times faster.
        there = (name for name in names if name in message.text and name not in passed)
        return [name for name in there if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", message.text)]
    return []


def _all_in(name: str, said: list[str]) -> bool:
    """Whether each part of the name begins a word: "cancelled orders" has `cancel` and `order`."""
    parts = [part.lower() for part in _PARTS.compiled.findall(name)]
    return bool(parts) and all(any(word.startswith(part) for word in said) for part in parts)


# The rules of a workflow, and what is legal now: for enforce, serialize and nudges alike.

InDoubtPolicy = Literal["report", "ask"]
"""When a person is asked about a call whose outcome is unknown, because it was started and may have taken effect.

- `ask`: before the model's next turn.
- `report`: the model is told and continues with other tools. A person is asked before the next call of that tool,
  whatever its arguments, or at once if the run cannot end without the tool.

If nobody can be asked, the run ends as `OutcomeUnknown`. Calls of tools that only read, or are idempotent, are retried.
"""

TextPolicy = Literal["nudge", "accept", "respond"]
"""What bare text means while tools are offered: a mistake, the answer, or a mistake because a tool is for answers."""


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
"""What happens to the other calls of a reply if one is refused: none runs, or the legal ones do."""

BatchPolicy = Literal["auto", "all", "first", "independent"]
"""Which calls of one reply are run: all, the first, or those that do not depend on the results of others.

`auto`: the first in mode prompted, all in the other modes. A model that writes its calls as text tends to write the
later ones with guesses at the results of the earlier ones; a server's tool calls are meant to run in parallel.
"""


class Limits(Options, frozen=True, kw_only=True):
    """The budgets of a run, and its maximum numbers of consecutive mistakes; one more ends the run with a typed Halt.

    Budgets: model calls (`max_iterations`, including retries), tool calls, tokens of prompts and replies, seconds, and
    cost by the `price` of a million tokens. None means no limit. For `max_iterations`, None means 10 in a workflow, 20
    for each message to an agent, and no limit in Guardrails, where your own loop counts.

    `max_retries_per_step`: consecutive replies without a usable call. `max_tool_errors`: consecutive tool failures.
    `max_premature_attempts`: consecutive calls of a terminal tool before its steps. `max_prereq_violations`:
    consecutive calls before their prerequisites.
    `max_repeats`: how often a call may get the same result without new information in between; for a write, any result
    counts as the same. After that the call is not run again, unless its tool is `repeatable`. None: no limit.
    """

    max_iterations: AtLeastOne | None = None
    max_tool_calls: AtLeastOne | None = None
    max_tokens: AtLeastOne | None = None
    max_seconds: Seconds | None = None
    max_cost: Positive | None = None
    price: Price | None = None
    # The defaults of forge-guardrails, whose options these are; `max_repeats` is forge's own.
    max_retries_per_step: Count = 3
    max_tool_errors: Count = 2
    max_premature_attempts: Count = 3
    max_prereq_violations: Count = 2
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
    the `repair_limits`.
    """

    batch: BatchPolicy = "auto"
    on_violation: OnViolation = "block_all"
    max_parallel: AtLeastOne = 4
    max_calls_per_reply: AtLeastOne = 32
    in_doubt: InDoubtPolicy = "report"
    rescue_enabled: bool = True
    repair_limits: RepairLimits = RepairLimits()
    families: Sequence[Family | Format] = ()


REPLY_CHECKS: Mapping[str, str] = MappingProxyType(
    {
        "ask_once": "asks once whether a text answer is final, if a call was possible",
        "ask_if_meant": "asks whether a call among words is meant, where its tool writes",
        "no_echoed_answers": "asks again for an answer that only repeats a correction",
    }
)
"""What is checked in a reply in words, by the name that `Rules.without` and `forge ablate` know it by."""

AnyCheck = Callable[..., str | None]
"""A completion check (`stages.guards`) in a value that survives JSON without one: msgspec knows no such union."""


class Rules(Options, frozen=True, kw_only=True):
    """The rules of a workflow: what its runs may and must do, and within which limits."""

    tools: tuple[ToolSpec, ...]
    required: tuple[str, ...] = ()
    on_text: TextPolicy = "nudge"
    limits: Limits = Limits()
    calls: Calls = Calls()
    order: tuple[Use, ...] = ()
    withheld: tuple[str, ...] = ()
    """Writes that no step needs: they may not be called until the user or an error names them."""
    unruled: tuple[str, ...] = ()
    """Writes that no rule names, in a workflow without required steps."""
    checks: Mapping[str, AnyCheck] = {}
    """By tool, a user's function that says what is wrong with a call. Only rules without checks survive JSON."""
    without: frozenset[str] = frozenset()
    """Names turned off: narrowings (`stages.offer.NARROWINGS`), guards (`stages.guards.GUARDS`) and `REPLY_CHECKS`."""

    def tool(self, name: str) -> ToolSpec | None:
        """The tool of that name, None for an unknown one."""
        return next((tool for tool in self.tools if tool.name == name), None)

    @property
    def terminal(self) -> tuple[str, ...]:
        """The names of the tools that end the run."""
        return tuple(tool.name for tool in self.tools if tool.effect == "terminal")

    @property
    def writes(self) -> frozenset[str]:
        """The names of the tools that write."""
        return frozenset(tool.name for tool in self.tools if tool.effect == "write")


def completed(ledger: Ledger) -> tuple[str, ...]:
    """The tools that have succeeded, each once, in order of their first success."""
    return tuple(dict.fromkeys(success.name for success in ledger.successes))


def pending(rules: Rules, ledger: Ledger) -> tuple[str, ...]:
    """The required steps without a success that counts, in declared order, then tools not called often enough.

    A success that a later call made out of date does not count.
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
    return tuple(Listed(tool=use.tool, values=left) for use in each if (left := values_left(use, done)))


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
    """The given tools that have succeeded, but with results that are all out of date."""
    if not any(use.again_after for use in rules.order):
        return ()
    gone = {*succeeded_names(ledger)} - {one.name for one in current_successes(rules.order, ledger.successes)}
    gone -= {*denied(rules, ledger, gone)}
    return tuple(name for name in names if name in gone)


def denied(rules: Rules, ledger: Ledger, names: Iterable[str]) -> tuple[str, ...]:
    """The given tools whose latest result does not count, with no write since."""
    judged = judged_tools(rules.order)
    latest = _latest_since_write(rules, ledger) if judged else {}
    return tuple(name for name in names if name in judged and name in latest and not latest[name].passed)


def unsettled_steps(rules: Rules, state: State) -> tuple[str, ...]:
    """The required steps whose latest result may be negative, the latest first, if a write may fix that.

    Nothing was written since. Either a rule says that the result does not count, or there is no rule and the step may
    have checked an earlier write. If no tool declares that it reads, any required step may be such a check.
    """
    required, ledger = required_tools(rules), state.ledger
    if not required or not ledger.successes:
        return ()
    reads = {tool.name for tool in rules.tools if tool.effect == "read"} or {*required}
    judged = judged_tools(rules.order)
    written = {one.name for one in ledger.successes} & rules.writes

    def may_say_no(name: str, latest: Success) -> bool:
        if name in judged or name not in reads:
            return name in judged and not latest.passed
        return bool(written - {name})

    recent = _latest_since_write(rules, ledger).items()
    found = [name for name, latest in recent if name in required and may_say_no(name, latest)]
    mendable = found and any(t.effect == "write" and t.name not in found for t in legal_tools(rules, state))
    return tuple(found) if mendable else ()


def _latest_since_write(rules: Rules, ledger: Ledger) -> dict[str, Success]:
    """The latest success of each tool since the last write, including that; the latest first."""
    writes, found = rules.writes, dict[str, Success]()
    for success in reversed(ledger.successes):
        if success.name not in found:
            found[success.name] = success
        if success.name in writes:
            break
    return found


def repeat_policy(rules: Rules) -> RepeatPolicy:
    """The tools that may repeat themselves, and those whose repeated calls are never new.

    The latter are the writes, unless a rule of order wants them more than once. If no tool declares that it reads, they
    may be look-ups, whose answers are needed again once compaction has cut them.
    """
    free = frozenset(tool.name for tool in rules.tools if tool.repeatable)
    several = {use.tool for use in rules.order if use.at_least > 1 and not use.distinct}
    once = rules.writes - free - several
    return RepeatPolicy(free=free, once=once, lasting=once if _declares_reads(rules) else frozenset())


def missing_prerequisites(rules: Rules, tool: ToolSpec, arguments: str | None, ledger: Ledger) -> tuple[str, ...]:
    """The prerequisites of a call that no earlier success meets; if `arguments` is None, by name alone."""
    return missing_by_call(rules, ledger)(tool, arguments) if tool.prerequisites else ()


def missing_by_call(rules: Rules, ledger: Ledger) -> Callable[[ToolSpec, str | None], tuple[str, ...]]:
    """The same as a function for any number of calls, which reads each success only once."""
    done = current_successes(rules.order, ledger.successes)

    @cache
    def values(name: str, key: str | None) -> set[bytes | None]:
        same = [success.arguments for success in done if success.name == name]
        return {None if key is None else argument_value(arguments, key) for arguments in same}

    def is_met(needed: Prerequisite, arguments: str | None) -> bool:
        if arguments is None or needed.match_arg is None:
            return bool(values(needed.tool, None))
        wanted = argument_value(arguments, needed.match_arg)
        return wanted is not None and wanted in values(needed.tool, needed.match_arg)

    return lambda tool, arguments: tuple([one.tool for one in tool.prerequisites if not is_met(one, arguments)])


def unknown_outcome(tool: ToolSpec, ledger: Ledger) -> UnknownCall | None:
    """The first call of the tool with an unknown outcome, which blocks the tool until a person decides.

    None for a tool that is safe to retry because it only reads, or is idempotent.
    """
    if not ledger.in_doubt or tool.retriable:
        return None
    return next((call for call in ledger.in_doubt if call.name == tool.name), None)


UNKNOWN_OUTCOME = "unknown_outcome"
"""The obstacle of a tool that a call with an unknown outcome blocks; the others are named after their guards."""


def obstacles(rules: Rules, state: State) -> Mapping[str, str]:
    """The tools that may not be called now, each with the name of the guard that would object, or UNKNOWN_OUTCOME.

    They are judged by their names alone. A guard that is turned off objects to nothing.
    """
    ledger, withheld = state.ledger, still_withheld(rules, state)
    waiting = bool(pending(rules, ledger))
    done = succeeded_names(ledger) if rules.order else ()
    fresh = {success.name for success in current_successes(rules.order, ledger.successes)} if rules.order else done
    known: dict[str, Callable[[ToolSpec], object]] = {
        UNKNOWN_OUTCOME: lambda tool: unknown_outcome(tool, ledger),
        "withheld": lambda tool: tool.name in withheld,
        "required_steps": lambda tool: waiting and tool.effect == "terminal",
        "prerequisites": lambda tool: missing_prerequisites(rules, tool, None, ledger),
        "order": lambda tool: obstacle(rules.order, done, tool.name, fresh=fresh),
    }
    on = [(name, bars) for name, bars in known.items() if name not in rules.without]
    found = ((tool.name, next((name for name, bars in on if bars(tool)), "")) for tool in rules.tools)
    return {tool: name for tool, name in found if name}


def legal_tools(rules: Rules, state: State) -> tuple[ToolSpec, ...]:
    """The tools that may be called now."""
    barred = obstacles(rules, state)
    return tuple(tool for tool in rules.tools if tool.name not in barred)


def still_withheld(rules: Rules, state: State) -> frozenset[str]:
    """The withheld tools that neither the user nor an error has named in this run."""
    return frozenset(rules.withheld) - named_tools(rules.withheld, state)


def needed_tools(rules: Rules, wanted: Iterable[str]) -> frozenset[str]:
    """These tools and all tools that must succeed before them."""
    before = {tool.name: {p.tool for p in tool.prerequisites} for tool in rules.tools}
    for use in rules.order:
        before.setdefault(use.tool, set()).update(use.after, (use.each_of.tool,) if use.each_of else ())
    found, new = set[str](), {*wanted}
    while new:
        found |= new
        new = {name for tool in new for name in before.get(tool, ())} - found
    return frozenset(found)


def blocking_unknown_outcome(rules: Rules, state: State) -> UnknownCall | None:
    """A call with an unknown outcome whose tool the run needs in order to end; None if there is none."""
    ledger = state.ledger
    unknown = tuple(call for tool in rules.tools if (call := unknown_outcome(tool, ledger)))
    if not unknown:
        return None
    left = pending(rules, ledger)
    ends = needed_tools(rules, (*left, *rules.terminal)) - ({*completed(ledger)} - {*left})
    stuck = rules.on_text != "accept" and not legal_tools(rules, state)
    return next((call for call in unknown if stuck or call.name in ends), None)


# Unneeded writes: tools that change something and play no part in the workflow's task.
#
# If there are required steps, they define the task, and unneeded writes are withheld. Otherwise nothing tells which
# writes belong to it, so they are offered (see `Unruled writes`). If no tool declares that it reads, an undeclared tool
# may be a look-up, so none counts as a write.


def unneeded_writes(rules: Rules, named: Collection[str] = ()) -> tuple[str, ...]:
    """The writes that no needed tool depends on, that are not `named`, and that have no rule of their own.

    Rules are prerequisites, order, grounded values, calculations and approval. Empty if no tool declares that it reads.
    """
    return _without_a_part(rules, named) if _declares_reads(rules) else ()


def undeclared_writes(rules: Rules, named: Collection[str] = ()) -> tuple[str, ...]:
    """The tools that may be such writes, if no tool declares that it reads; else none."""
    return () if _declares_reads(rules) else _without_a_part(rules, named)


def _declares_reads(rules: Rules) -> bool:
    return any(tool.effect == "read" and tool != RECALL for tool in rules.tools)


def _without_a_part(rules: Rules, named: Collection[str]) -> tuple[str, ...]:
    ordered = (name for use in rules.order for name in use.names)
    ruled = (t.name for t in rules.tools if t.prerequisites or t.grounded or t.calculated or t.approval)
    sources = (name for tool in rules.tools for bound in tool.grounded for name in bound.sources)
    known = needed_tools(rules, (*rules.required, *rules.terminal, *named, *ordered, *ruled, *sources))
    return tuple(tool.name for tool in rules.tools if tool.effect == "write" and tool.name not in known)


# Unruled writes (`Rules.unruled`): writes without any rule, in a workflow without steps.
#
# Only the user's message tells whether they are meant. A small model is as likely to say that it has sent a message as
# to send it, makes up what it was not told, and does things twice.


def may_have_meant_a_call(rules: Rules, state: State) -> bool:
    """Whether to ask if an answer in words is final: an unruled write was legal, and no tool was called.

    Asked once per run, while two model calls are left, and never after a look-up, unless nothing but words was on offer
    after it and no such write was made: a small model that is asked then writes what it has found.
    """
    ledger = state.ledger
    if "ask_once" in rules.without or not rules.unruled or ledger.asked_to_act >= 0 or ledger.budget.calls < _ENOUGH:
        return False
    called = bool(ledger.successes or ledger.attempts or ledger.rejected)
    if any(held.by == "answer_only" for held in state.prompt.held):
        called = any(success.name in rules.unruled for success in ledger.successes)
    return not called and any(tool.name in rules.unruled for tool in legal_tools(rules, state))


_ENOUGH = 2
"""Model calls: one to call a tool, one to say so."""
