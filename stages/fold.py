"""The stage `fold`: choose what the model is shown. The history itself does not change."""

from typing import Literal

from msgspec.structs import replace

from stages.halt import Halt
from stages.message import Assistant, History, Kind, User
from stages.options import checked
from stages.pipeline import Stage, on
from stages.state import Folded, Ready, State
from stages.view.collapse import collapsed

Reasoning = Literal["none", "keep-last", "full"]
"""Which of its earlier reasoning a model is shown again: none, that of its last reply with any, or all."""

FailedAttempts = Literal["keep", "collapse"]
"""Whether failed attempts stay in view after a later success; `stages.view.collapse` has the rules."""


@checked
def fold(reasoning: Reasoning = "none", failed_attempts: FailedAttempts = "keep") -> Stage:
    """Put the view of a Ready state's history into the phase, with the request for a summary, if any, at its end."""

    @on(Ready)
    def stage(state: State, phase: Ready) -> State | Halt:
        history = state.history
        view = collapsed(history) if failed_attempts == "collapse" else history
        shown = view if reasoning == "none" else _thinking(view, reasoning)
        if order := phase.summary:
            shown = (*shown, User(text=order.text, kind=Kind.SUMMARY, turn=state.ledger.turn))
        return replace(state, phase=Folded(view=shown, summary=phase.summary, target=phase.target))

    return stage


def _thinking(history: History, policy: Literal["keep-last", "full"]) -> History:
    """The history with reasoning moved into the text that followed it, in the last reply or in all.

    It must be text, because no wire sends the field `reasoning`; for the same reason, `none` need not remove anything.
    """
    view = [*history]
    thoughts = [(i, m) for i, m in enumerate(history) if isinstance(m, Assistant) and m.reasoning]
    for place, said in thoughts if policy == "full" else thoughts[-1:]:
        if not said.sealed:  # the server gets sealed reasoning back anyway
            view[place] = replace(said, reasoning="", text="\n\n".join(filter(None, (said.reasoning, said.text))))
    return tuple(view)
