"""What a law says when it is broken: which one, by what, on which history, and what to do about it."""

from collections.abc import Callable

from hypothesis import HealthCheck, Phase, settings
from hypothesis.errors import FlakyFailure

from stages.message import Assistant, History, Message, System, Tool

_SHOWN = 60
"""Characters of a text that a report shows; Hypothesis prints the whole example below it."""


class BrokenLawError(AssertionError):
    """A compactor, a guard or a stage does not do what forge counts on. `law` is the one that it breaks."""

    def __init__(self, law: str, found: str, remedy: str, *evidence: str) -> None:
        self.law = law
        super().__init__("\n".join((f"law broken: {law}", f"found: {found}", f"what to do: {remedy}", *evidence)))


def trying(max_examples: int) -> settings:
    """How Hypothesis tries laws: one report at a time, and a busy machine is nobody's fault."""
    return settings(
        max_examples=max_examples,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=(HealthCheck.too_slow,),
        phases=[phase for phase in settings().phases if phase is not Phase.explain],
    )


def try_every(laws: Callable[[], None]) -> None:
    """Run the test that Hypothesis made; what breaks only now and then is reported as what it broke."""
    try:
        laws()
    except FlakyFailure as flaky:
        broken = [error for error in flaky.exceptions if isinstance(error, BrokenLawError)]
        if not broken:
            raise
        broken[0].add_note("It broke on one try and not on the next: it does not depend on its input alone.")
        raise broken[0] from flaky


def listing(title: str, history: History) -> str:
    """The history, a numbered line for each message."""
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
    """The text as Python would write it, cut to its beginning."""
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}… ({len(text)} characters)"
