"""Stuck detection: whether a reply brought anything new, and which calls only repeat themselves."""

import hashlib
from collections.abc import Iterable
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace

from stages.message import Status, ToolCall
from stages.schema.canonical_json import canonical
from stages.state import Attempt, JudgedResult, Ledger, Success

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
"""Bytes of a digest. To search `Ledger.seen` for them costs next to nothing, however long the run is."""


def digests(done: Iterable[Success]) -> bytes:
    """What `Ledger.seen` grows by with these successes."""
    return bytes.fromhex("".join([success.answer for success in done]))


def replies_without_progress(ledger: Ledger) -> int:
    """How many replies in a row brought nothing new, not counting a requested summary."""
    summary = ledger.summary_turn > ledger.progress
    return max(0, ledger.turn - ledger.progress - summary)


class RepeatPolicy(Struct, frozen=True, kw_only=True):
    """The tools whose successes count as new by a rule of their own.

    Those that are `free` may repeat themselves. The same call of `once` is nothing new, whatever it answers.
    """

    free: frozenset[str] = frozenset()
    once: frozenset[str] = frozenset()


def with_calls(ledger: Ledger, done: tuple[Success, ...], vain: tuple[Attempt, ...], tools: RepeatPolicy) -> Ledger:
    """The ledger after calls that succeeded and others that did not.

    All successes are kept in `successes`, new or not: steps are judged by them.
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
    """The successes that brought nothing new, as attempts: they, or their answers, are among what was `seen` before."""
    again = [
        success
        for success in done
        if success.name not in tools.free and halves(success)[success.name in tools.once] in seen
    ]
    return tuple([Attempt(name=s.name, arguments=s.arguments, answer=s.answer, turn=s.turn) for s in again])


def halves(success: Success) -> tuple[bytes, bytes]:
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
