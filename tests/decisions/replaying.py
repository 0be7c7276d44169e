"""What differs between the records and what the code does now."""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import zip_longest

import msgspec

from stages.effect import Request
from tests.decisions.records import Asked, Run, Said, Turn
from tests.decisions.running import replayed
from tests.decisions.turning import turned


def now(runs: Sequence[Run], turns: Sequence[Turn]) -> tuple[list[Run], list[Turn]]:
    """The records as they go now, with all their replies, those too that are not taken any more."""
    with asyncio.Runner() as runner:
        return [replayed(run, runner) for run in runs], [turned(turn) for turn in turns]


def differences(
    runs: Sequence[Run], runs_now: Sequence[Run], turns: Sequence[Turn], turns_now: Sequence[Turn]
) -> list[tuple[str, str]]:
    """The names of records that differ, each with where it first does and in what."""
    first = [
        (run.name, f"{run.scenario} {run.mode}", _differing(run, again))
        for run, again in zip(runs, runs_now, strict=True)
    ]
    first += [
        (turn.name, f"{turn.protocol} {turn.kind}", _turned_out(turn, again))
        for turn, again in zip(turns, turns_now, strict=True)
    ]
    return [(name, f"{group}, {what}") for name, group, what in first if what]


def _differing(before: Run, after: Run) -> str:
    for number, (was, now_is) in enumerate(zip_longest(before.asked, after.asked), 1):
        if was != now_is:
            return f"call {number}: {_what(was, now_is)}"
    return "" if before.end == after.end else f"end: {_changed(before.end, after.end)}"


def _what(was: Asked | None, now_is: Asked | None) -> str:
    if was is None or now_is is None:
        return "not asked before" if was is None else "not asked any more"
    parts = []
    if was.tools != now_is.tools:
        before, after = was.tools.split(), now_is.tools.split()
        gone, come = [one for one in before if one not in after], [one for one in after if one not in before]
        parts.append(" ".join(["offer", *(f"-{one}" for one in gone), *(f"+{one}" for one in come)]))
    elif was.request != now_is.request:
        parts.append("request")
    if was.events != now_is.events:
        before, after = was.events.split(), now_is.events.split()
        pairs = zip_longest(before, after, fillvalue="nothing")
        parts.append("events: " + next(_changed(one, other) for one, other in pairs if one != other))
    return ", ".join(parts)


def _changed(before: str, after: str) -> str:
    """Both words; only what both begin with where the rest is a digest."""
    (was, *_), (now_is, *_) = before.split(), after.split()
    return f"another {was}" if was == now_is else f"{was} -> {now_is}"


def _turned_out(before: Turn, after: Turn) -> str:
    for number, (was, now_is) in enumerate(zip_longest(before.asked, after.asked), 1):
        if was != now_is:
            return f"call {number}: {'request' if was and now_is else 'asked' if now_is else 'not asked any more'}"
    return "" if before.end == after.end else f"end: {_changed(before.end, after.end)}"


def shown(run: Run) -> Iterator[str]:
    """The record as it goes now, to be read."""
    lines = [run.name]

    def watch(number: int, request: Request, reply: Said | None) -> None:
        lines.append(f"\n=== call {number}")
        lines.extend(bytes(message).decode() for message in request.messages)
        lines.append(msgspec.json.format(bytes(request.tail), indent=1).decode())
        lines.append("--- reply")
        lines.append(msgspec.json.encode(reply).decode() if reply else "none is recorded")

    with asyncio.Runner() as runner:
        after = replayed(run, runner, watch)
    for number, asked in enumerate(after.asked, 1):
        lines.append(f"call {number}: {asked.request} [{asked.tools}] {asked.events}")
    lines.append(after.end)
    yield from lines
