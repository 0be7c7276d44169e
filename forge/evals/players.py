"""Players: forge's own loop, and a plain loop to compare it with."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import msgspec
from msgspec import Raw, structs
from returns.result import Failure, Success

from forge.connection import OpenBackend
from forge.evals.configurations import ABLATIONS
from forge.evals.player import Player, RunEnd, Task
from forge.interpreters import Interpreter
from forge.runtime.conversation import Conversation
from forge.runtime.watching import Watching
from forge.workflow.workflow import Workflow
from stages.effect import Execute, RawCall, Replied, Reply, Request, Results, Said, Send, Succeeded, Undelivered
from stages.halt import Halt
from stages.message import ToolCall
from stages.state import Completed, Ending
from stages.wire.openai.chat import encode_tools
from stages.wire.sampling import options

# Forge as a player: runs the workflow as any user would.


async def play_forge(task: Task, goes_on: tuple[type[Halt], ...] = ()) -> RunEnd:
    """Each message is a run that continues the previous one; after a Halt in `goes_on`, the next message follows."""
    conversation, end = Conversation(task.workflow, backend=OpenBackend(task.connection)), ""
    for number, message in enumerate(task.messages):
        task.record.message = number
        watching: Watching = {"on_event": task.record.observe, "journal": task.journal_of(number)}
        match await conversation.say(message, **watching):
            case Success(run):
                outcome = run.outcome
            case Failure(halted) if isinstance(halted.halt, goes_on):
                outcome = Said(text="")
            case Failure(halted):
                return RunEnd(type(halted.halt).__name__, str(halted))
        task.record.outcomes.append(outcome)
        end = type(outcome).__name__
    return RunEnd(end)


FORGE = Player(name="forge", about="forge's own loop, in the mode asked for", play=play_forge)


# A plain loop, as in the documentation of chat completions: perform the requested calls until there is text.
#
# It knows the system prompt, the tools, and which of them ends the run. Tool errors are returned to the model as text.
# Nothing is corrected, enforced or shortened.

ChatMessage = Mapping[str, object]


async def asked(
    task: Task, perform: Interpreter, messages: Iterable[ChatMessage], tail: Raw, turn: int = 1
) -> Reply | RunEnd:
    """The reply, or how the run ended without one; `tail` is the part of the request after its messages."""
    setup = task.connection.setup
    fields = {**options(setup.sampling, setup.dialect.option_names), **setup.dialect.body, **setup.sampling.extra}
    head = Raw(msgspec.json.encode({"model": setup.model, **fields}))
    request = Request(head=head, messages=tuple(Raw(msgspec.json.encode(one)) for one in messages), tail=tail)
    match await perform(Send(request=request, turn=turn)):
        case Replied(reply=reply):
            return reply
        case Undelivered(fault=fault):
            return RunEnd("BackendFailed", fault.detail)
        case other:
            raise TypeError(f"a request was answered with {type(other).__name__}")


def tools_tail(workflow: Workflow[Any]) -> Raw:
    """The tools of the workflow as a part of a request."""
    tools = workflow.rules.tools
    return Raw(b'{"tools":' + bytes(encode_tools(tools)) + b"}") if tools else Raw(b"{}")


def unguarded(workflow: Workflow[Any]) -> Workflow[Any]:
    """The workflow without anything specific to forge: an answer in words is text."""
    words = "accept" if workflow.on_text == "respond" else workflow.on_text
    bare = ABLATIONS["bare"](workflow)
    return replace(bare, on_text=words, context=structs.replace(bare.context, recall=False))


async def _play_plainly(task: Task) -> RunEnd:
    workflow, last = unguarded(task.workflow), ""
    system = workflow.system_prompt
    messages: list[ChatMessage] = [{"role": "system", "content": system}] if system else []
    for number, message in enumerate(task.messages):
        messages.append({"role": "user", "content": message})
        with task.answering(number, workflow) as perform:
            outcome = await _answered(task, workflow, perform, messages)
        if isinstance(outcome, RunEnd):
            return outcome
        if isinstance(outcome, Said) and workflow.on_text == "nudge":
            return RunEnd("text", f"it ended with text, which is not an outcome here: {outcome.text[:200]!r}")
        task.record.outcomes.append(outcome)
        last = type(outcome).__name__
    return RunEnd(last)


async def _answered(
    task: Task, workflow: Workflow[Any], perform: Interpreter, messages: list[ChatMessage]
) -> Ending | RunEnd:
    """The outcome of the last message, or how the loop ended without one. `messages` grows by what is said and done."""
    tail = tools_tail(workflow)
    for turn in range(workflow.budget.calls):
        replied = await asked(task, perform, messages, tail, turn)
        if isinstance(replied, RunEnd):
            return replied
        made = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in replied.calls
        ]
        calls = {"tool_calls": made} if made else {}
        messages.append({"role": "assistant", "content": replied.text, **calls})
        if not replied.calls:
            return Said(text=replied.text)
        for call in replied.calls:
            result = await _result(task, workflow, perform, call)
            told = result if isinstance(result, str) else result.text
            messages.append({"role": "tool", "tool_call_id": call.id, "content": told})
            if not isinstance(result, str) and call.name in workflow.rules.terminal:
                return result.ends or Completed(tool=call.name, value=result.value)
    return RunEnd("iterations", f"no end after {workflow.budget.calls} model calls")


async def _result(task: Task, workflow: Workflow[Any], perform: Interpreter, call: RawCall) -> Succeeded | str:
    """What the call returned, or the error as the model is told it."""
    if call.name not in workflow.functions:
        return f"Error: there is no tool {call.name!r}"
    made = ToolCall(id=call.id, name=call.name, arguments=call.arguments or "{}")
    match await perform(Execute(calls=(made,), run="plain")):
        case Results(results=(Succeeded() as result,)):
            return result
        case Results(results=(result,)):
            task.record.tool_errors += 1
            return f"Error: {getattr(result, 'message', '') or getattr(result, 'reason', '')}"
        case other:
            raise TypeError(f"a call was answered with {type(other).__name__}")


PLAIN = Player(
    name="plain",
    about="an ordinary loop over chat completions: calls what is asked for, until there is text",
    play=_play_plainly,
    wire="openai",
)
