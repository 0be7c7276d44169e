"""Rendering: objections in forge's own words, for the model; `stages.nudges.wording` puts a user's in their place."""

from stages.nudges.beside import beside_a_refused_call, beside_a_skipped_step
from stages.nudges.forbidden import text_for_forbidden
from stages.nudges.replies import text_for_reply
from stages.nudges.unfit import text_for_unfit
from stages.objection import NoCall, Objection, StepsPending, Unfit
from stages.policy.mistakes import mistake_of


def render(objection: Objection) -> str:
    """What the model is told, with the prefix of its kind."""
    return prefixed(objection, unprefixed(objection))


def unprefixed(objection: Objection) -> str:
    """The same without the prefix."""
    wrong = objection.wrong
    if isinstance(wrong, NoCall):
        return text_for_reply(wrong)
    if isinstance(wrong, Unfit):
        return text_for_unfit(objection.tool, wrong)
    return text_for_forbidden(objection.tool, wrong)


def prefixed(objection: Objection, text: str) -> str:
    """Such a text with the prefix of the objection's kind, such as `[StepEnforcementError]`, if it has one."""
    prefix = mistake_of(objection.wrong).prefix
    return f"[{prefix}] {text}" if prefix else text


def render_beside(name: str, first: Objection) -> str:
    """What is told of a call that there is nothing against, in a batch that is refused; `first` says why."""
    if isinstance(first.wrong, StepsPending):
        return beside_a_skipped_step(name, first.tool)
    return beside_a_refused_call(name)
