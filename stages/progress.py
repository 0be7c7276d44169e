"""Stuck detection: whether a reply brought anything new, and which calls only repeat themselves."""

import hashlib
from collections.abc import Iterable
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace

from stages.message import Status, ToolCall
from stages.schema.canonical_json import canonical
from stages.state import Attempt, JudgedResult, Ledger, Success

# A success is new if the model has not seen it yet: this tool with these arguments and this answer. A repeated write is
# never new, whatever it answers: each order that is placed gets its own number. Compaction may cut earlier answers, so
# it resets what counts as seen. Repeats, alternating pairs, monologues and the same error over and over are thus one
# thing: consecutive replies without progress.

PATIENCE = 2
"""Consecutive replies that may fail, each in a different way, before a model counts as stuck."""


def answer_digest(name: str, arguments: str, text: str) -> str:
    """The digests of an answer and of its call, as stored in the ledger: 16 hexadecimal digits each."""
    call = _call_digest(name, arguments)
    return (hashlib.blake2b(call + text.encode(errors="replace"), digest_size=_DIGEST).digest() + call).hex()


def success_of(call: ToolCall, text: str, turn: int, judged: JudgedResult | None = None) -> Success:
    """The record of a call that succeeded with this text."""
    return Success(
        name=call.name,
        arguments=call.arguments,
        answer=answer_digest(call.name, call.arguments, text),
        turn=turn,
        listed=judged.listed if judged else (),
        passed=judged is not None and judged.passed,
    )


def attempt_of(call: ToolCall, text: str, status: Status, turn: int) -> Attempt:
    """The record of a call that brought nothing, by the status of its answer.

    A call that was refused, or whose tool raised, got no answer: the next try may succeed.
    """
    answer = "" if status in ("failed", "not_run") else answer_digest(call.name, call.arguments, text)
    return Attempt(name=call.name, arguments=call.arguments, answer=answer, turn=turn)


def _call_digest(name: str, arguments: str) -> bytes:
    whole = f"{name}\0{canonical(arguments)}"
    return hashlib.blake2b(whole.encode(errors="replace"), digest_size=_DIGEST).digest()


_DIGEST = 8
"""Bytes of a digest. Searching `Ledger.seen` for one costs next to nothing, however long the run is."""


def digests(done: Iterable[Success]) -> bytes:
    """The bytes that these successes add to `Ledger.seen`."""
    return bytes.fromhex("".join([success.answer for success in done]))


def replies_without_progress(ledger: Ledger) -> int:
    """Number of consecutive replies that brought nothing new, not counting a requested summary."""
    summary = ledger.summary_turn > ledger.progress
    return max(0, ledger.turn - ledger.progress - summary)


class RepeatPolicy(Struct, frozen=True, kw_only=True):
    """The tools with their own rule on repetition.

    `free` tools may repeat themselves. Repeating a call of a `once` tool is never new, whatever it answers.
    """

    free: frozenset[str] = frozenset()
    once: frozenset[str] = frozenset()


def with_calls(ledger: Ledger, done: tuple[Success, ...], vain: tuple[Attempt, ...], tools: RepeatPolicy) -> Ledger:
    """The ledger after calls that succeeded (`done`) and calls that did not (`vain`).

    All successes are kept in `successes`, new or not, because steps are judged by them.
    """
    repeats = answered_again(done, tools, ledger.seen)
    return replace(
        ledger,
        successes=ledger.successes + done,
        seen=ledger.seen + digests(done),
        attempts=ledger.attempts + repeats + vain,
        progress=ledger.turn if len(repeats) < len(done) else ledger.progress,
    )


def answered_again(done: Iterable[Success], tools: RepeatPolicy, seen: bytes | set[bytes]) -> tuple[Attempt, ...]:
    """The successes that brought nothing new, as attempts: `seen` has them, or for `once` tools their calls."""
    again = [
        success
        for success in done
        if success.name not in tools.free and halves(success)[success.name in tools.once] in seen
    ]
    return tuple([Attempt(name=s.name, arguments=s.arguments, answer=s.answer, turn=s.turn) for s in again])


def halves(success: Success) -> tuple[bytes, bytes]:
    """The digest of the answer and the digest of the call."""
    both = bytes.fromhex(success.answer)
    return both[:_DIGEST], both[_DIGEST:]


def attempts_since_progress(ledger: Ledger) -> tuple[Attempt, ...]:
    """The calls since the last progress."""
    recent = takewhile(lambda attempt: attempt.turn > ledger.progress, reversed(ledger.attempts))
    return tuple(recent)[::-1]


def repeated_attempts(ledger: Ledger) -> list[Attempt]:
    """The calls since the last progress that had already been answered or refused before."""
    recent = attempts_since_progress(ledger)
    seen, found = set[tuple[str, str]](), list[Attempt]()
    for attempt in recent:
        key = (attempt.name, canonical(attempt.arguments))
        if key in seen or _answered_before(ledger, *key):
            found.append(attempt)
        seen.add(key)
    return found


def times_answered(ledger: Ledger, name: str, arguments: str) -> int:
    """How often this exact call was answered; 0 if that has not happened since the last progress."""
    key = (name, canonical(arguments))
    vain = sum(bool(a.answer) and (a.name, canonical(a.arguments)) == key for a in attempts_since_progress(ledger))
    return vain + _answered_before(ledger, *key) if vain else 0


def turns_written(ledger: Ledger, name: str, arguments: str) -> tuple[int, ...]:
    """The turns in which this exact call has succeeded since another call's last new answer.

    A look-up in between that brings nothing new does not count, so an edit that changes nothing is not repeated forever
    together with a check that keeps failing in the same way.
    """
    if _call_digest(name, arguments) not in ledger.seen:
        return ()
    made, turns = canonical(arguments), list[int]()
    known = len(ledger.seen) // (2 * _DIGEST)
    for place, success in zip(range(known - 1, -1, -1), reversed(ledger.successes), strict=False):
        if success.name == name and canonical(success.arguments) == made:
            turns.append(success.turn)
        elif ledger.seen.find(bytes.fromhex(success.answer)) == place * 2 * _DIGEST:
            break  # its first occurrence, so it was new: nothing before it needs to be read
    return tuple(turns)


def answered_differently(ledger: Ledger, name: str, arguments: str) -> bool:
    """Whether this exact call has succeeded with more than one answer in this run."""
    made = canonical(arguments)
    same = (one for one in ledger.successes if one.name == name and canonical(one.arguments) == made)
    return len({success.answer for success in same}) > 1


def _answered_before(ledger: Ledger, name: str, arguments: str) -> bool:
    """Whether this exact call was answered up to the last progress, and no compaction can have cut the answer.

    Successes are found by digest, so the calls of a long run are not read again.
    """
    if _call_digest(name, arguments) in ledger.seen:
        return True
    since, progress = (ledger.compactions[-1].turn if ledger.compactions else -1), ledger.progress
    vain = [a.arguments for a in ledger.attempts if a.answer and a.name == name and since < a.turn <= progress]
    return canonical(arguments) in map(canonical, vain)
