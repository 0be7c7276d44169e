"""Conversations of several turns, by forge in its modes and by BFCL's prompt.

With the server's own tool calls they are the plain player's: it calls what is asked for, until there is text.
"""

from collections.abc import Sequence

from msgspec import Raw
from returns.result import Failure

from forge.evals.bfcl.asking import ChatMessage, asked
from forge.evals.bfcl.python_calls import python_calls
from forge.evals.forge_player import Connected
from forge.evals.player import RunEnd, Task
from forge.interpreters import Interpreter
from forge.runtime.conversation import Conversation
from stages.effect import Execute, Failed, Results, Said, Succeeded
from stages.halt import BadReplies, ToolsFailing
from stages.message import ToolCall


async def forge_conversation(task: Task) -> RunEnd:
    """Each message is a run that continues the one before.

    In BFCL a reply that cannot be read ends its turn and not the conversation, so a run that halts on its model's
    replies does the same.
    """
    conversation = Conversation(task.workflow, backend=Connected(task.connection))
    for number, message in enumerate(task.messages):
        task.record.message = number
        result = await conversation.say(message, observer=task.record.observe, journal=task.journal_of(number))
        if not isinstance(result, Failure):
            task.record.outcomes.append(result.unwrap().outcome)
        elif isinstance(halt := result.failure().halt, BadReplies | ToolsFailing):
            task.record.outcomes.append(Said(text=""))
        else:
            return RunEnd(type(halt).__name__, str(result.failure()))
    return RunEnd("Said")


async def prompted_conversation(task: Task, prompt: str) -> RunEnd:
    """BFCL's prompt, and what calls returned as messages of the user, until a reply holds no call."""
    messages: list[ChatMessage] = [{"role": "system", "content": prompt}]
    for number, message in enumerate(task.messages):
        messages.append({"role": "user", "content": message})
        with task.answering(number, task.workflow) as perform:
            outcome = await _prompted_turn(task, perform, messages)
        if isinstance(outcome, RunEnd):
            return outcome
        task.record.outcomes.append(outcome)
    return RunEnd("Said")


async def _prompted_turn(task: Task, perform: Interpreter, messages: list[ChatMessage]) -> Said | RunEnd:
    for _ in range(task.workflow.max_iterations):
        reply = await asked(task, perform, messages, Raw(b"{}"))
        if isinstance(reply, RunEnd):
            return reply
        messages.append({"role": "assistant", "content": reply.text})
        calls = python_calls(reply.text)
        if not calls:
            return Said(text=reply.text)
        messages.append({"role": "user", "content": str(await _results(task, perform, calls))})
    return RunEnd("iterations", f"no end after {task.workflow.max_iterations} model calls")


async def _results(task: Task, perform: Interpreter, calls: Sequence[tuple[str, str]]) -> list[ChatMessage]:
    told: list[ChatMessage] = []
    for name, arguments in calls:
        result = await _result(task, perform, ToolCall(id=f"call_{len(told)}", name=name, arguments=arguments))
        told.append({"role": "tool", "name": f"{name}({arguments})", "content": result})
    return told


async def _result(task: Task, perform: Interpreter, call: ToolCall) -> str:
    if call.name not in task.workflow.functions:
        return f"Error during execution: name {call.name!r} is not defined"
    match await perform(Execute(calls=(call,), run="bfcl-prompt")):
        case Results(results=(Succeeded(text=text),)):
            return text
        case Results(results=(Failed(message=message),)):
            return f"Error during execution: {message}"
        case other:
            raise TypeError(f"a call was answered with {type(other).__name__}")
