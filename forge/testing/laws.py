"""Reports of broken laws: which law, on which input, and what to do about it."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import FlakyFailure
from hypothesis.strategies import SearchStrategy

from stages.message import Assistant, History, Message, System, Tool

_T = TypeVar("_T")

_SHOWN = 60
"""Maximum characters of a text in a report; Hypothesis prints the complete example below it."""


class BrokenLawError(AssertionError):
    """A compactor, guard or stage breaks a law that forge relies on; `law` names it."""

    def __init__(self, law: str, found: str, remedy: str, *evidence: str) -> None:
        self.law = law
        super().__init__("\n".join((f"law broken: {law}", f"found: {found}", f"what to do: {remedy}", *evidence)))


def try_laws(cases: SearchStrategy[_T], laws: Callable[[_T], None], max_examples: int) -> None:
    """Test the laws on that many cases; a flaky failure is reported as the law that it broke.

    One report at a time, and no failures because of a slow machine.
    """

    @settings(
        max_examples=max_examples,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=(HealthCheck.too_slow,),
        phases=[phase for phase in settings().phases if phase is not Phase.explain],
    )
    @given(case=cases)
    def every_law(case: _T) -> None:
        laws(case)

    try:
        every_law()
    except FlakyFailure as flaky:
        broken = [error for error in flaky.exceptions if isinstance(error, BrokenLawError)]
        if not broken:
            raise
        broken[0].add_note("It broke on one try and not on the next, so the result depends on more than the input.")
        raise broken[0] from flaky


@contextmanager
def reseeded(given: bytes) -> Iterator[None]:
    """Another state of `random`, which Hypothesis seeds alike before each example: a number for each input."""
    before = random.getstate()
    random.seed(given)
    try:
        yield
    finally:
        random.setstate(before)


def listing(title: str, history: History) -> str:
    """The history, one numbered line per message."""
    lines = (f"  {number:>2} {line(message)}" for number, message in enumerate(history, start=1))
    return "\n".join((f"{title} ({len(history)} messages):", *lines))


def line(message: Message) -> str:
    """The message in one line."""
    if isinstance(message, System):
        return f"system_prompt {short_text(message.text)}"
    about = f"{message.kind} turn {message.turn}{' pinned' * message.pinned}"
    match message:
        case Tool(call_id=call_id, name=name, status=status):
            about = f"{about} {status}, answers {call_id} of {name!r}"
        case Assistant(calls=calls) if calls:
            about = (
                f"{about} calls {', '.join(f'{call.id} {call.name}({short_text(call.arguments)})' for call in calls)}"
            )
    return f"{about}: {short_text(message.text)}"


def short_text(text: str) -> str:
    """The shortened repr of the text."""
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}… ({len(text)} characters)"


def parted_call(history: History) -> str | None:
    """A sentence about the first call without its answer or answer without its call; None if there is none."""
    waiting: list[str] = []
    for message in history:
        if isinstance(message, Tool):
            if message.call_id not in waiting[:1]:
                expected = f"the answer of {waiting[0]} is due" if waiting else "no call is open there"
                return f"a result answers {message.call_id!r}, and {expected}"
            waiting = waiting[1:]
        elif waiting:
            return f"the call {waiting[0]!r} has no answer before the next message"
        elif isinstance(message, Assistant):
            waiting = [call.id for call in message.calls]
    return f"the call {waiting[0]!r} has no answer" if waiting else None


def assert_answered(history: History) -> None:
    """Assert that every call is answered directly after its message, and every answer has its call."""
    if found := parted_call(history):
        raise BrokenLawError(
            "a call is never parted from its result", found, "keep the two together", listing("history", history)
        )
