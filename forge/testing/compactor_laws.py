"""The laws of compactors, one function each, and `assert_compactor_laws`, which tests them on many histories.

A law takes one trial and raises `BrokenLawError` if it is broken. The order matters: later laws rely on earlier
ones.
"""

from collections.abc import Callable
from itertools import zip_longest

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec import Struct
from msgspec.structs import replace

from forge.testing.laws import BrokenLawError, line, listing, parted_call, reseeded, try_laws
from forge.testing.strategies import budgets as fitting_budgets
from forge.testing.strategies import histories as all_histories
from stages.compaction import Compacted, CompactionResult, Compactor, ContextBudget, estimate
from stages.halt import CannotFit
from stages.message import WARNINGS, Assistant, History, Kind, Message, System, Tool, User
from stages.wire.valid import is_object

_MAY_ADD = WARNINGS | {Kind.SUMMARY}
"""The kinds of `User` message that a compactor may add; everything else must have been there before."""


def assert_compactor_laws(
    compactor: Compactor,
    *,
    histories: SearchStrategy[History] | None = None,
    budgets: SearchStrategy[ContextBudget] | None = None,
    max_examples: int = 200,
) -> None:
    """Test every law on `max_examples` histories. BrokenLawError for the first broken one, with a minimal history.

    `histories` default to everything that forge can write (`st.just(history)` tests your own); `budgets` default to
    ones that fit each history tightly.
    """

    @st.composite
    def cases(draw: st.DrawFn) -> tuple[History, ContextBudget]:
        history = draw(all_histories() if histories is None else histories)
        return history, draw(fitting_budgets(history) if budgets is None else budgets)

    def every_law(case: tuple[History, ContextBudget]) -> None:
        trial = attempt(compactor, *case)
        for law in COMPACTOR_LAWS:
            law(trial)

    try_laws(cases(), every_law, max_examples)


class Trial(Struct, frozen=True, kw_only=True):
    """One answer of a compactor. `before` is the input as JSON, taken before the compactor ran."""

    compactor: Compactor
    history: History
    budget: ContextBudget
    before: bytes
    result: CompactionResult

    @property
    def shorter(self) -> History:
        """The returned history; the input, if the answer is `CannotFit`."""
        return self.result.history if isinstance(self.result, Compacted) else self.history

    def broken(self, law: str, found: str, remedy: str) -> BrokenLawError:
        """The report on a broken law."""
        told = repr(self.result)
        if isinstance(self.result, Compacted):
            told = listing(f"its answer, phase {self.result.phase}", self.shorter)
        return BrokenLawError(law, found, remedy, *_given(self.compactor, self.history, self.budget), told)


def attempt(compactor: Compactor, history: History, budget: ContextBudget) -> Trial:
    """Call the compactor. BrokenLawError if it raises or returns anything but `Compacted` or `CannotFit`."""
    law, before = "it always answers", msgspec.json.encode((history, budget))
    try:
        result = compactor(history, budget)
    except Exception as error:
        remedy = (
            "return Compacted(history=history, phase=0) where you can cut nothing, CannotFit(…) where it is too big"
        )
        raise BrokenLawError(law, f"it raised {error!r}", remedy, *_given(compactor, history, budget)) from error
    right = isinstance(result, CannotFit) or (isinstance(result, Compacted) and isinstance(result.history, tuple))
    if not right:
        remedy = "return Compacted(history=…, phase=…), with a tuple of messages, or CannotFit(tokens=…, budget=…)"
        raise BrokenLawError(law, f"it returned {result!r:.200}", remedy, *_given(compactor, history, budget))
    return Trial(compactor=compactor, history=history, budget=budget, before=before, result=result)


def _given(compactor: Compactor, history: History, budget: ContextBudget) -> tuple[str, ...]:
    return (f"compactor: {compactor!r}", f"budget: {budget}", listing("history", history))


def input_unchanged(trial: Trial) -> None:
    """The compactor does not change its input."""
    if msgspec.json.encode((trial.history, trial.budget)) != trial.before:
        remedy = "make new messages with msgspec.structs.replace; never modify the given ones"
        raise trial.broken("the input is not changed", "a message or the budget has changed", remedy)


def deterministic(trial: Trial) -> None:
    """The same history and budget give the same answer."""
    with reseeded(trial.before):
        again = attempt(trial.compactor, trial.history, trial.budget).result
    if again != trial.result:
        found = f"asked a second time, it answered {_short(again)}"
        remedy = "decide by the history and the budget alone: no clock, no randomness, no memory of earlier calls"
        raise trial.broken("the same input gives the same answer", found, remedy)


def goal_kept(trial: Trial) -> None:
    """The system prompt and the user's messages are kept verbatim."""
    if lost := _first_difference(trial, lambda m: isinstance(m, System) or m.kind is Kind.USER_INPUT):
        remedy = "never cut or change System messages, or User messages of Kind.USER_INPUT"
        raise trial.broken("the system prompt and what the user asked are kept", lost, remedy)


def pins_kept(trial: Trial) -> None:
    """Pinned messages are kept verbatim."""
    if lost := _first_difference(trial, lambda m: not isinstance(m, System) and m.pinned):
        remedy = "never cut or change a message whose `pinned` is true"
        raise trial.broken("pinned messages are kept", lost, remedy)


def names_and_ids_kept(trial: Trial) -> None:
    """A call that stays keeps its id and name, its answer all but its text, and arguments stay a JSON object."""
    calls = {call.id: call for m in trial.history if isinstance(m, Assistant) for call in m.calls}
    answers = {m.call_id: m for m in trial.history if isinstance(m, Tool)}
    remedy = "change the text of a result only, with msgspec.structs.replace; leave calls as they are"
    law = "names and ids are kept"
    for message in trial.shorter:
        if isinstance(message, Tool):
            was = answers.get(message.call_id)
            if was is None or replace(message, text=was.text) != was:
                found = f"the result is now {line(message)}; it was {line(was) if was else 'not there'}"
                raise trial.broken(law, found, remedy)
        for call in message.calls if isinstance(message, Assistant) else ():
            if call.id not in calls or call.name != calls[call.id].name:
                raise trial.broken(law, f"there was no call {call.id!r} of {call.name!r}", remedy)
            if call.arguments != calls[call.id].arguments and not is_object(call.arguments):
                raise trial.broken(law, f"the arguments of {call.id} are no longer a JSON object", remedy)


def calls_answered(trial: Trial) -> None:
    """Each call is answered right after its message, and each answer belongs to a call."""
    if found := parted_call(trial.shorter):
        remedy = "cut at `stages.compaction.history.exchanges`: a reply and the answers to its calls go together"
        raise trial.broken("a call is never parted from its result", found, remedy)


def order_kept(trial: Trial) -> None:
    """Messages keep their order, each at most once; only summaries and warnings may be added."""
    law, before = "order is kept", frozenset(trial.history)
    keys, position = [_key(message) for message in trial.history], 0
    for message in trial.shorter:
        if _added(message, before):
            continue
        known = _key(message)
        if known not in keys:
            remedy = "words of your own go in as User(text=…, kind=Kind.SUMMARY), whoever's they replace"
            raise trial.broken(law, f"this message was not in the history: {line(message)}", remedy)
        if known not in keys[position:]:
            remedy = "return the messages that you keep in the order in which they came, each once"
            raise trial.broken(law, f"this message is too late, or repeated: {line(message)}", remedy)
        position = keys.index(known, position) + 1


def never_grows(trial: Trial) -> None:
    """The result is not larger than the input."""
    before, after = _weight(trial.history, trial.budget), _weight(trial.shorter, trial.budget)
    if after > before:
        found = f"the history went from a weight of {before} to {after}"
        remedy = "compare with stages.message.size: a stub or a summary that is no smaller than the text is no gain"
        raise trial.broken("it never grows", found, remedy)


def progress_or_stop(trial: Trial) -> None:
    """Phase 0 means that nothing was cut, any other that something was, so compaction always terminates."""
    if not isinstance(trial.result, Compacted):
        return
    law, phase = "strict progress or stop", trial.result.phase
    if phase == 0 and trial.shorter != trial.history:
        raise trial.broken(law, "phase is 0, but the history has changed", "return phase=1 or more")
    if phase != 0 and _weight(trial.shorter, trial.budget) >= _weight(trial.history, trial.budget):
        found = f"phase is {phase}, but the history is no smaller"
        remedy = "where there is nothing left to cut, return Compacted(history=history, phase=0), or CannotFit(…)"
        raise trial.broken(law, found, remedy)


def fits_or_says_so(trial: Trial) -> None:
    """The result fits the budget; `CannotFit` is only for a history that does not."""
    law, allowed = "it ends under the target or says CannotFit", trial.budget.tokens
    tokens = estimate(trial.shorter, trial.budget)
    match trial.result:
        case Compacted() if tokens > allowed:
            remedy = "return CannotFit(tokens=…, budget=budget.tokens) where nothing that may be cut is left"
            raise trial.broken(law, f"what came back takes {tokens} tokens of {allowed}", remedy)
        case CannotFit() if tokens <= allowed:
            remedy = "return Compacted: over the threshold is not yet over the budget"
            raise trial.broken(
                law, f"CannotFit, though the history as it is takes {tokens} tokens of {allowed}", remedy
            )
        case CannotFit(tokens=told, budget=of) if told <= of or of != allowed:
            remedy = "tokens= is the estimate of the smallest history that you found, budget= is budget.tokens"
            raise trial.broken(law, f"CannotFit says {told} of {of} tokens; the budget is {allowed}", remedy)


def idempotent(trial: Trial) -> None:
    """Compacting its own result again with the same budget changes nothing."""
    if not isinstance(trial.result, Compacted):
        return
    budget, meter = trial.budget, trial.budget.meter
    unsized = replace(budget, meter=replace(meter, sizes=None))
    known = None if meter.sizes is None else unsized.sizes(trial.shorter)
    again = attempt(trial.compactor, trial.shorter, replace(budget, meter=replace(meter, sizes=known))).result
    if not isinstance(again, Compacted) or again.history != trial.shorter:
        found = f"given its own result, it returned {_short(again)}"
        remedy = "skip what an earlier cut has marked, and keep cutting until nothing is left to cut"
        raise trial.broken("compacted once is compacted", found, remedy)


def _weight(history: History, budget: ContextBudget) -> int:
    """The size of the history, precise enough to show cuts of less than a token."""
    return estimate(history, replace(budget, meter=replace(budget.meter, tokens_per_character=1.0)))


def _added(message: Message, before: frozenset[Message]) -> bool:
    """Whether the compactor wrote the message itself, as it may."""
    return isinstance(message, User) and message.kind in _MAY_ADD and message not in before


def _key(message: Message) -> tuple[object, ...]:
    """The identity of a message, independent of how much of its text was cut."""
    match message:
        case System():
            return ("system",)
        case User(kind=kind, turn=turn):
            return ("user", kind, turn)
        case Tool(call_id=call_id):
            return ("tool", call_id)
        case Assistant(calls=calls, turn=turn):
            return ("assistant", *(call.id for call in calls)) if calls else ("assistant", turn)


def _first_difference(trial: Trial, kept: Callable[[Message], bool]) -> str | None:
    before = frozenset(trial.history)
    wanted = [message for message in trial.history if kept(message)]
    found = [message for message in trial.shorter if kept(message) and not _added(message, before)]
    for want, got in zip_longest(wanted, found):
        if want != got:
            there = "nothing" if got is None else line(got)
            return f"instead of {line(want)}, there is {there}" if want else f"this was not there before: {there}"
    return None


def _short(result: CompactionResult) -> str:
    if isinstance(result, CannotFit):
        return repr(result)
    return "\n".join((f"Compacted in phase {result.phase}", *(f"  {line(m)}" for m in result.history)))


COMPACTOR_LAWS: tuple[Callable[[Trial], None], ...] = (
    *(input_unchanged, deterministic, goal_kept, pins_kept, names_and_ids_kept, calls_answered, order_kept),
    *(never_grows, progress_or_stop, fits_or_says_so, idempotent),
)
