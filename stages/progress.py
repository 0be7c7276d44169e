"""Stuck detection: whether a reply brought anything new, and which calls only repeat themselves."""

from collections.abc import Iterable
from hashlib import blake2b

from msgspec import Struct
from msgspec.structs import replace

from stages.message import Status, ToolCall
from stages.schema.canonical_json import canonical
from stages.state import Attempt, JudgedResult, Ledger, Success

# A success is new if the model has not seen it yet: this tool with these arguments and this answer. A repeated write is
# never new, whatever it answers: each order that is placed gets its own number. Compaction may cut earlier answers, so
# it resets what counts as seen, but it undoes no write. Repeats, alternating pairs, monologues and the same error over
# and over are thus one thing: consecutive replies without progress.

PATIENCE = 2
"""Consecutive replies that may fail, each in a different way, before a model counts as stuck."""


def success_of(call: ToolCall, text: str, turn: int, judged: JudgedResult | None = None) -> Success:
    """The record of a call that succeeded with this text."""
    made = _call_digest(call.name, call.arguments)
    return Success(
        name=call.name,
        arguments=call.arguments,
        call=made,
        answer=_answer_digest(made, text),
        turn=turn,
        listed=judged.listed if judged else (),
        passed=judged is not None and judged.passed,
    )


def attempt_of(call: ToolCall, text: str, status: Status, turn: int) -> Attempt:
    """The record of a call that brought nothing, by the status of its answer.

    A call that was refused, or whose tool raised, got no answer: the next try may succeed.
    """
    made = _call_digest(call.name, call.arguments)
    answer = b"" if status in ("failed", "not_run") else _answer_digest(made, text)
    return Attempt(name=call.name, arguments=call.arguments, call=made, answer=answer, turn=turn)


_DIGEST = 8
"""Bytes of a digest. Searching `Ledger.seen` for one costs next to nothing, however long the run is."""


def _call_digest(name: str, arguments: str) -> bytes:
    """The digest of a call; how its arguments are formatted makes no difference."""
    whole = f"{name}\0{canonical(arguments)}"
    return blake2b(whole.encode(errors="replace"), digest_size=_DIGEST).digest()


def _answer_digest(call: bytes, text: str) -> bytes:
    return blake2b(call + text.encode(errors="replace"), digest_size=_DIGEST).digest()


def digests(done: Iterable[Success]) -> bytes:
    """The bytes that these successes add to `Ledger.seen`."""
    return b"".join([success.call + success.answer for success in done])


def replies_without_progress(ledger: Ledger) -> int:
    """Number of consecutive replies that brought nothing new, not counting a requested summary."""
    summary = ledger.summary_turn > ledger.progress
    return max(0, ledger.turn - ledger.progress - summary)


class RepeatPolicy(Struct, frozen=True, kw_only=True):
    """The tools with their own rule on repetition.

    `free` tools may repeat themselves. Repeating a call of a `once` tool is never new, whatever it answers; of a
    `lasting` one, not even after a compaction.
    """

    free: frozenset[str] = frozenset()
    once: frozenset[str] = frozenset()
    lasting: frozenset[str] = frozenset()


def with_calls(ledger: Ledger, done: tuple[Success, ...], vain: tuple[Attempt, ...], tools: RepeatPolicy) -> Ledger:
    """The ledger after calls that succeeded (`done`) and calls that did not (`vain`).

    All successes are kept in `successes`, new or not, because steps are judged by them.
    """
    seen = ledger.seen
    if ledger.compactions and (lasting := tools.lasting.intersection([success.name for success in done])):
        seen += digests([success for success in ledger.successes if success.name in lasting])
    repeats = answered_again(done, tools, seen)
    return replace(
        ledger,
        successes=ledger.successes + done,
        seen=ledger.seen + digests(done),
        attempts=ledger.attempts + repeats + vain,
        progress=ledger.turn if len(repeats) < len(done) else ledger.progress,
    )


def answered_again(done: Iterable[Success], tools: RepeatPolicy, seen: bytes | set[bytes]) -> tuple[Attempt, ...]:
    """The successes that brought nothing new, as attempts: `seen` has them, or for `once` tools their calls."""
    again = [s for s in done if s.name not in tools.free and (s.call if s.name in tools.once else s.answer) in seen]
    return tuple(
        [Attempt(name=s.name, arguments=s.arguments, call=s.call, answer=s.answer, turn=s.turn) for s in again]
    )


# What was made before. No function is called for each call of a run, so that a turn of a long run takes no longer.


class Made(Struct, frozen=True, kw_only=True):
    """What has come of a call so far.

    - `answered`: how often it was answered; 0 if that has not happened since the last progress.
    - `refused`: whether it was refused, or its tool raised, since the last progress.
    - `turns`: those in which it has succeeded since another call's last new answer, the latest first. A look-up in
      between that brings nothing new does not count, so an edit that changes nothing is not repeated forever together
      with a check that keeps failing in the same way.
    - `answers`: how many different answers it has had.

    Answers that compaction may have cut do not count, unless they are `lasting`.
    """

    answered: int
    refused: bool
    turns: tuple[int, ...]
    answers: int


def made(ledger: Ledger, call: ToolCall, *, lasting: bool = False) -> Made:
    """What has come of this very call so far; `lasting`: compaction undoes nothing of it."""
    this = _call_digest(call.name, call.arguments)
    recent = [attempt.answer for attempt in attempts_since_progress(ledger) if attempt.call == this]
    vain = len([answer for answer in recent if answer])
    if lasting and ledger.compactions:
        done = ledger.successes if this in {success.call for success in ledger.successes} else ()
    else:
        done = _uncut(ledger) if this in ledger.seen else ()
    # Of each answer, only its first place: where it was new.
    others = {success.answer: place for place, success in reversed([*enumerate(done)]) if success.call != this}
    own = [success for success in done[max(others.values(), default=-1) + 1 :] if success.call == this]
    return Made(
        answered=vain + (bool(done) or this in _answered_in_vain(ledger)) if vain else 0,
        refused=vain < len(recent),
        turns=tuple([success.turn for success in reversed(own)]),
        answers=len({success.answer for success in done if success.call == this}),
    )


def _uncut(ledger: Ledger) -> tuple[Success, ...]:
    """The successes since the last compaction, whose answers are in the history as they came."""
    return ledger.successes[len(ledger.successes) - len(ledger.seen) // (2 * _DIGEST) :]


def attempts_since_progress(ledger: Ledger) -> list[Attempt]:
    """The calls since the last progress."""
    return [attempt for attempt in ledger.attempts if attempt.turn > ledger.progress]


def repeated_attempts(ledger: Ledger) -> list[Attempt]:
    """The calls since the last progress that had already been answered or refused before."""
    recent = attempts_since_progress(ledger)
    calls, before = [attempt.call for attempt in recent], _answered_in_vain(ledger)
    return [
        attempt
        for place, attempt in enumerate(recent)
        if attempt.call in calls[:place] or attempt.call in ledger.seen or attempt.call in before
    ]


def _answered_in_vain(ledger: Ledger) -> set[bytes]:
    """The calls that were answered without success up to the last progress, and since the last compaction."""
    since = ledger.compactions[-1].turn if ledger.compactions else -1
    return {attempt.call for attempt in ledger.attempts if attempt.answer and since < attempt.turn <= ledger.progress}
