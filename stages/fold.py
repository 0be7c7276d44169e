"""The stage `fold`: choose what the model is shown; the record itself never changes."""

from typing import Literal

from msgspec.structs import replace
from returns.result import Result, Success

from stages.compaction.exchange import exchanges, join
from stages.halt import Halt
from stages.message import Assistant, History, Message
from stages.pipeline import Stage, on
from stages.state import Folded, Ready, State

Reasoning = Literal["none", "keep-last", "full"]
"""How much of its earlier reasoning a model is shown again (D27)."""

FailedAttempts = Literal["keep", "collapse"]
"""Whether attempts that failed are still shown after a later success (D5)."""


def fold(reasoning: Reasoning = "none", failed_attempts: FailedAttempts = "keep") -> Stage:
    """Put the view of a Ready state's history into the phase."""

    @on(Ready)
    def stage(state: State, _: Ready) -> Result[State, Halt]:
        view = _collapsed(state.history) if failed_attempts == "collapse" else state.history
        return Success(state.to(Folded(view=_thinking(view, reasoning))))

    return stage


def _thinking(history: History, policy: Reasoning) -> History:
    """Reasoning in front of the text that followed it, as policy has it (seed; B48: the text stays).

    No wire sends the field `reasoning` by itself, so with `none` the history is the view as it is.
    """
    if policy == "none":
        return history
    thoughts = [i for i, m in enumerate(history) if isinstance(m, Assistant) and m.reasoning]
    shown = frozenset(thoughts if policy == "full" else thoughts[-1:])
    return tuple(_aloud(m) if i in shown else m for i, m in enumerate(history))


def _aloud(message: Message) -> Message:
    if not isinstance(message, Assistant):
        return message
    return replace(message, reasoning="", text="\n\n".join(filter(None, (message.reasoning, message.text))))


def _collapsed(history: History) -> History:
    """The history without the failed attempts that a success followed."""
    parts = exchanges(history)
    last = max((i for i, part in enumerate(parts) if len(part.messages) > 1 and not part.failed), default=0)
    return join(tuple(part for i, part in enumerate(parts) if i >= last or part.protected or not part.failed))
