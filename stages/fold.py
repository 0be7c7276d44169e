"""The stage `fold`: choose what the model is shown. The history itself does not change."""

from itertools import chain
from typing import Literal

from msgspec.structs import replace

from stages.compaction.history import exchanges, is_protected
from stages.halt import Halt
from stages.message import Assistant, History, Kind, Tool, User, is_nudge
from stages.options import checked
from stages.pipeline import Stage, on
from stages.state import Folded, Ready, State

Reasoning = Literal["none", "keep-last", "full"]
"""Which of its earlier reasoning a model is shown again: none, that of its last reply with any, or all."""

FailedAttempts = Literal["keep", "collapse"]
"""Whether failed attempts stay in view after a later success; `collapsed` has the rules."""


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


def collapsed(history: History, *, over: bool = False) -> History:
    """The history without attempts that a later success made irrelevant; pinned messages stay.

    Calls that never ran, and their corrections, are dropped after any success, and once the run is over; a call that
    raised is dropped once the same tool has succeeded. Final answers (no such data, a final failure, a person's
    rejection) stay.
    """
    kept: list[History] = []
    worked: set[str] = set()
    for start, end in reversed(exchanges(history)):
        part = history[start:end]
        if any(map(is_protected, part)) or not ((over or worked) and _failed(part, worked)):
            kept.append(part)
        results = (m for m in part if isinstance(m, Tool) and m.kind is Kind.TOOL_RESULT)
        worked.update(result.name for result in results if result.status == "succeeded")
    return tuple(chain.from_iterable(reversed(kept)))


def _failed(part: History, worked: set[str]) -> bool:
    """Whether the exchange brought only corrections, or errors of tools that succeeded later."""
    answers = [m for m in part if not isinstance(m, Assistant)]
    return bool(answers) and all(
        is_nudge(m) or (isinstance(m, Tool) and m.status == "failed" and m.name in worked) for m in answers
    )


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
