"""Runs, workflows and events as callers of the API see them. Pure."""

from typing import TypeVar

from msgspec import Raw, Struct
from msgspec.structs import asdict, replace

from forge.durable.runs import Run, Served, workflow_of
from forge.errors import explain
from forge.journal.records import Journal
from forge.serve import api
from forge.workflow.checks import placeholders
from stages import effect as effects
from stages import events
from stages.events import Stamped
from stages.halt import BackendFailed, BadReplies, Halt
from stages.rules import required_tools
from stages.wire import deltas

_T = TypeVar("_T")


def run_view(run: Run) -> Run:
    """The run as callers of the API may see it: without what the model's server said."""
    problem = _explained(run.halt) if isinstance(run.halt, BackendFailed) else run.problem
    return replace(run, problem=problem, halt=_public(run.halt))


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
    events cover the rest), raw responses of the model's server and its errors, sealed reasoning, token probabilities,
    exceptions of tools, a paused tool's saved state, and results beyond the text that the model is shown, which can be
    far longer.
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
            explanation = _explained(halt)
        case _:
            pass
    event = _public(event)
    if isinstance(event, events.Notice):
        told = events.told(event)
        title, details = (told.title, told.details) if told.title else (told.label.capitalize(), told.text)
    whole = {**asdict(stamped), "event": event}
    return api.RunEvent(**whole, explanation=explanation, title=title, details=details)


def journal_view(journal: Journal) -> Journal:
    """The journal without what the model's server said in errors; it replays as before."""
    state = journal.header.state
    header = replace(journal.header, state=state.note(fallback=state.ledger.fallback and _NO_TOOLS))
    entries = tuple(
        replace(one, outcome=_public(one.outcome)) if isinstance(one.outcome, effects.Undelivered) else one
        for one in journal.entries
    )
    return replace(journal, header=header, entries=entries)


_LOGGED = "see the log of forge serve"
_NO_TOOLS = f"no tools; {_LOGGED}"


def _public(value: _T) -> _T:
    """The value without the fields that callers must not see, in whatever event it occurs."""
    match value:
        case effects.Reply():
            return replace(value, sealed="", tokens=())
        case deltas.ReasoningDelta():
            return replace(value, sealed="")
        case effects.Fault(kind=kind, status=status):  # its detail quotes the server, and names its address
            what = f"{kind.replace('_', ' ')}{f' {status}' if status else ''}"
            return replace(value, detail=f"{what}; {_LOGGED}", body="")
        case events.ModelFailed(attempts=attempts) if attempts:
            return replace(value, problem=f"no reply from the model; {_LOGGED}")
        case events.SummaryFailed():
            return replace(value, problem=_LOGGED)
        case events.FellBack():
            return replace(value, reason=_NO_TOOLS)
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


def _explained(halt: Halt) -> str:
    """The halt in a sentence, which may quote the model or a tool, but not the model's server."""
    return explain(_public(halt) if isinstance(halt, BackendFailed) else halt)
