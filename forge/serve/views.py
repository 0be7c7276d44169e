"""What is told of runs, workflows and events: forge's values as the structs of the API. Pure."""

from typing import assert_never

from msgspec.structs import replace

from forge.durable.runs import Run, Served, workflow_of
from forge.errors import explain
from forge.serve import api
from forge.workflow.checks import placeholders
from stages import effect as effects
from stages import events
from stages.events import Event, Stamped
from stages.halt import Halt
from stages.message import ToolCall
from stages.rules import required_tools
from stages.state import Completed, Ending
from stages.wire import deltas
from stages.wire.deltas import Delta


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
        outcome=None if run.outcome is None else _outcome(run.outcome),
        conversation=run.conversation,
        follows=run.follows,
        followed_by=run.followed_by,
    )


def workflow_view(served: Served) -> api.WorkflowView:
    """The workflow or agent, with what a form to start a run needs."""
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


def place(sequence: tuple[int, int]) -> str:
    """The id of the event of that sequence."""
    return f"{sequence[0]}.{sequence[1]}"


def event_view(stamped: Stamped) -> api.RunEvent | None:
    """The event; None for one that others tell as well (a message that is added)."""
    event = stamped.event
    match event:
        case (
            deltas.TextDelta()
            | deltas.ReasoningDelta()
            | deltas.Reclassified()
            | deltas.CallStarted()
            | deltas.CallDelta()
            | deltas.Ended()
            | deltas.Retry()
        ):
            told, known = _delta(event), ""
        case events.ToolProgressed():
            told, known = _event(event), ""
        case _:
            told, known = _event(event), place(stamped.sequence)
    within = (
        api.Within(agent=stamped.agent, run=stamped.run, parent=stamped.parent, call_id=stamped.call_id)
        if stamped.parent
        else None
    )
    return told and replace(told, id=known, time=stamped.time, turn=stamped.turn, within=within)


def _event(event: Event) -> api.RunEvent | None:
    match event:
        case events.RunStarted(message=message):
            return api.RunStartedEvent(message=message)
        case events.Connected(model=model, mode=mode, context_tokens=tokens):
            return api.ConnectedEvent(model=model, mode=mode, context_tokens=tokens)
        case events.TurnStarted():
            return api.TurnStartedEvent(
                prompt_tokens=event.prompt_tokens,
                context_tokens=event.context_tokens,
                calls_left=event.calls_left,
                target=event.target,
            )
        case events.ModelReplied(reply=reply):
            usage = reply.usage
            return api.ModelRepliedEvent(
                text=reply.text,
                reasoning=event.thought,
                calls=tuple(api.RawCallView(name=call.name, arguments=call.arguments) for call in reply.calls),
                finish=reply.finish,
                usage=None if usage is None else _usage(usage),
                seconds=event.seconds,
                attempts=event.attempts,
                summary=event.summary,
            )
        case events.ModelFailed(problem=problem, attempts=attempts):
            return api.ModelFailedEvent(problem=problem, attempts=attempts)
        case events.CallsAccepted(calls=calls, text=text):
            return api.CallsAcceptedEvent(calls=tuple(map(_call, calls)), text=text)
        case events.ApprovalAsked(call=call, in_doubt=in_doubt, problem=problem):
            return api.ApprovalAskedEvent(
                call=_call(call), in_doubt=None if in_doubt is None else _call(in_doubt), problem=problem
            )
        case events.ApprovalAnswered(call_id=call_id, approved=approved, arguments=arguments):
            return api.ApprovalAnsweredEvent(call_id=call_id, approved=approved, arguments=arguments)
        case events.ToolProgressed(call_id=call_id, name=name, text=text):
            return api.ToolProgressedEvent(call_id=call_id, name=name, text=text)
        case events.ToolsReturned(results=results):
            return api.ToolsReturnedEvent(results=tuple(map(_result, results)))
        case events.Nudged(kind=kind, text=text):
            return api.NudgedEvent(kind=kind.value, text=text)
        case events.Warned(kind=kind, text=text):
            return api.WarnedEvent(kind=kind.value, text=text)
        case events.Steered(text=text):
            return api.SteeredEvent(text=text)
        case events.HeldBack(tools=tools):
            return api.HeldBackEvent(tools=tools, why=event.why)
        case events.MessageAdded():
            return None
        case events.SummaryAsked(messages=messages):
            return api.SummaryAskedEvent(messages=messages)
        case events.SummaryFailed(problem=problem):
            return api.SummaryFailedEvent(problem=problem)
        case events.FellBack(reason=reason):
            return api.FellBackEvent(reason=reason)
        case events.HistoryCompacted(compaction=compaction):
            return api.CompactedEvent(
                tokens_before=compaction.tokens_before,
                tokens_after=compaction.tokens_after,
                messages_before=compaction.messages_before,
                messages_after=compaction.messages_after,
            )
        case events.PrefixLost(kept_tokens=kept, lost_tokens=lost, cause=cause):
            return api.PrefixLostEvent(kept_tokens=kept, lost_tokens=lost, cause=cause)
        case events.BackendReplaced(halt=halt):
            return api.BackendReplacedEvent(problem=explain(halt))
        case events.RunFinished(outcome=outcome):
            return api.FinishedEvent(outcome=_outcome(outcome))
        case events.RunHalted(halt=halt):
            return api.HaltedEvent(reason=_reason(halt), problem=explain(halt))
        case events.RunFailed(problem=problem):
            return api.FailedEvent(problem=problem)
        case _:
            assert_never(event)


def _delta(delta: Delta) -> api.RunEvent | None:
    match delta:
        case deltas.TextDelta(text=text):
            return api.TextDeltaEvent(text=text)
        case deltas.ReasoningDelta(text=text):
            return api.ReasoningDeltaEvent(text=text) if text else None
        case deltas.Reclassified(to_reasoning=to_reasoning, to_text=to_text):
            return api.ReclassifiedEvent(to_reasoning=to_reasoning, to_text=to_text)
        case deltas.CallStarted(index=index, name=name):
            return api.CallStartedEvent(index=index, name=name)
        case deltas.CallDelta(index=index, arguments=arguments):
            return api.CallDeltaEvent(index=index, arguments=arguments)
        case deltas.Ended():
            return None
        case deltas.Retry(fault=fault, attempt=attempt, seconds=seconds):
            return api.RetriedEvent(problem=fault.detail, attempt=attempt, seconds=seconds)
        case _:
            assert_never(delta)


def _question(asks: effects.Ask, until: str) -> api.Question:
    return api.Question(
        digest=asks.digest,
        call=_call(asks.call),
        in_doubt=None if asks.in_doubt is None else _call(asks.in_doubt),
        problem=asks.problem,
        until=until,
    )


def _usage(usage: effects.Usage) -> api.UsageView:
    return api.UsageView(prompt=usage.prompt, completion=usage.completion, cached=usage.cached)


def _call(call: ToolCall) -> api.CallView:
    return api.CallView(id=call.id, name=call.name, arguments=call.arguments, origin=call.origin, repairs=call.repairs)


def _result(result: effects.CallResult) -> api.ResultView:
    match result:
        case effects.Succeeded(call_id=call_id, text=text):
            return api.ResultView(call_id=call_id, status="succeeded", text=text)
        case effects.Unresolved(call_id=call_id, message=text):
            return api.ResultView(call_id=call_id, status="unresolved", text=text)
        case effects.Failed(call_id=call_id, message=text):
            return api.ResultView(call_id=call_id, status="failed", text=text)
        case effects.NotRun(call_id=call_id, reason=text):
            return api.ResultView(call_id=call_id, status="not_run", text=text)
        case effects.InDoubt(call_id=call_id, reason=text):
            return api.ResultView(call_id=call_id, status="in_doubt", text=text)
        case effects.Refused(call_id=call_id, text=text):
            return api.ResultView(call_id=call_id, status="refused", text=text)
        case effects.Paused(call_id=call_id, asks=asks):
            return api.ResultView(call_id=call_id, status="paused", text=asks.question)
        case _:
            assert_never(result)


def _outcome(outcome: Ending) -> api.Outcome:
    match outcome:
        case Completed(tool=tool, value=value):
            return api.CompletedOutcome(tool=tool, value=value)
        case effects.Said(text=text):
            return api.SaidOutcome(text=text)
        case effects.NeedsInput(question=question, suggestions=suggestions):
            return api.NeedsInputOutcome(question=question, suggestions=suggestions)
        case effects.HandOff(to=to, payload=payload):
            return api.HandOffOutcome(to=to, payload=payload)
        case _:
            assert_never(outcome)


def _reason(halt: Halt) -> str:
    return str(halt.__struct_config__.tag)
