"""Refused calls: what each call of a batch is told when there are objections to some of them."""

from collections.abc import Callable, Sequence

from stages.effect import Refused
from stages.message import ToolCall
from stages.nudges.rendering import render_beside
from stages.objection import Objection
from stages.policy.mistakes import mistake_of


def refusals(
    objections: Sequence[Objection], calls: Sequence[ToolCall], say: Callable[[Objection], str], *, whole: bool
) -> tuple[Refused, ...]:
    """The answers to the calls that are objected to, and, where the batch is refused `whole`, to those beside them."""
    against: dict[str, list[Objection]] = {}
    for objection in objections:
        if objection.call is not None:
            against.setdefault(objection.call.id, []).append(objection)
    return tuple(
        _answer(call, mine, "\n".join(map(say, mine)))
        if (mine := against.get(call.id))
        else _answer(call, objections, render_beside(call.name, objections[0]))
        for call in calls
        if whole or call.id in against
    )


def _answer(call: ToolCall, because: Sequence[Objection], text: str) -> Refused:
    return Refused(call_id=call.id, text=text, kind=mistake_of(because[0].wrong).kind)
