"""Runs, workflows and events as callers of the API see them. Pure."""

from typing import TypeVar

from msgspec import Raw, Struct
from msgspec.structs import asdict, replace

from forge.durable.runs import Run, Served, workflow_of
from forge.errors import explain
from forge.serve import api
from forge.workflow.checks import placeholders
from stages import effect as effects
from stages import events
from stages.events import Stamped
from stages.halt import BadReplies, Halt
from stages.rules import required_tools
from stages.wire import deltas

T = TypeVar("T")


def run_view(run: Run) -> api.RunView:
    """The run."""
    return api.RunView(
        id=run.id,
        workflow=run.workflow,
        state=run.state,
        begun=run.begun,
        updated=run.updated,
        owner=run.owner,
        message=run.message,
        problem=run.problem,
        reason=_reason(run.halt) if run.halt else "",
        question=None if run.question is None else _question(run.question, run.until),
        outcome=run.outcome,
        in_doubt=run.in_doubt,
        conversation=run.conversation,
        follows=run.follows,
        followed_by=run.followed_by,
    )


def workflow_view(served: Served) -> api.WorkflowView:
    """The workflow or agent, with all that a form to start a run needs."""
    workflow = workflow_of(served)
    rules, required = workflow.rules, required_tools(workflow.rules)
    return api.WorkflowView(
        name=workflow.name,
        agent=served is not workflow,
        variables=tuple(sorted(placeholders(workflow.system_prompt))),
        tools=tuple(
            api.ToolView(
                name=spec.name,
                description=spec.description,
                effect=spec.effect,
                approval=spec.approval,
                required=spec.name in required,
                parameters=spec.parameters,
            )
            for spec in rules.tools
        ),
        calls=workflow.budget.calls,
        tokens=workflow.budget.tokens,
    )


def event_view(stamped: Stamped) -> api.RunEvent | None:
    """The event as callers of the API may see it; None if they may not.

    All redaction for the API is here. Left out are messages of the history (they include the system prompt, and other
    events cover the rest), raw responses of the model's server, sealed reasoning, token probabilities, exceptions of
    tools, a paused tool's saved state, and results beyond the text that the model is shown, which can be far longer.
    """
    event, explanation, title, details = stamped.event, "", "", ""
    match event:
        case events.MessageAdded() | deltas.Ended() | deltas.ReasoningDelta(text=""):
            return None
        case events.ModelReplied(reply=reply):
            event = replace(event, reply=replace(reply, reasoning=event.thought))
        case events.HeldBack(why=why):
            explanation = why
        case events.BackendReplaced(halt=halt) | events.RunHalted(halt=halt):
            explanation = explain(halt)
        case _:
            pass
    if isinstance(event, events.Notice):
        told = events.told(event)
        title, details = (told.title, told.details) if told.title else (told.label.capitalize(), told.text)
    whole = {**asdict(stamped), "event": _public(event)}
    return api.RunEvent(**whole, explanation=explanation, title=title, details=details)


def _public(value: T) -> T:
    """The value without the fields that callers must not see, in whatever event it occurs."""
    match value:
        case effects.Reply():
            return replace(value, sealed="", tokens=())
        case deltas.ReasoningDelta():
            return replace(value, sealed="")
        case effects.Fault():
            return replace(value, body="")
        case BadReplies():
            return replace(value, raw="")
        case effects.Succeeded():
            return replace(value, value=Raw(b"null"))
        case effects.Failed():
            return replace(value, error="")
        case effects.Paused():
            return replace(value, saved="", answer="")
        case Struct():
            inner = {name: _public(part) for name, part in asdict(value).items() if isinstance(part, Struct | tuple)}
            return replace(value, **inner) if inner else value
        case tuple():
            return type(value)(map(_public, value))
        case _:
            return value


def _question(asks: effects.Ask, until: str) -> api.Question:
    return api.Question(
        digest=asks.digest,
        call=asks.call,
        in_doubt=asks.in_doubt,
        problem=asks.problem,
        until=until,
    )


def _reason(halt: Halt) -> str:
    return str(halt.__struct_config__.tag)
