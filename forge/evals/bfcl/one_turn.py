"""One turn on a question, by forge in its modes, by the server's own tool calls, and by BFCL's prompt.

None runs a function: the calls of the first reply that has any are noted, and judged.
"""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Raw
from returns.result import Failure, Success

from forge.evals.bfcl.asking import ChatMessage, asked
from forge.evals.bfcl.python_calls import python_calls
from forge.evals.player import RunEnd, Task
from forge.evals.scenario import PerformedCall
from forge.interpreters import Interpreter
from forge.runtime.advancing import advanced
from forge.workflow.turn import turn_of
from stages.deliver import deliver
from stages.effect import Execute, Reply, Said, Send
from stages.state import Awaiting, Done, State
from stages.wire.openai.chat import encode_tools


async def forge_turn(task: Task) -> RunEnd:
    """One turn of forge's, with the corrections that it takes."""
    with task.answering(0, task.workflow) as perform:
        return await _forge_turn(task, perform)


async def _forge_turn(task: Task, perform: Interpreter) -> RunEnd:
    turn = turn_of(task.workflow.compiled, task.connection.setup)
    state = task.workflow.start(task.messages[0])
    while True:
        match advanced(turn, state):
            case Success(State(phase=Awaiting(effect=Send() as effect)) as waiting):
                delivered = deliver(waiting, await perform(effect))
                if isinstance(delivered, Failure):
                    return RunEnd(type(delivered.failure()).__name__, "the model could not be asked")
                state = delivered.unwrap()
            case Success(State(phase=Awaiting(effect=Execute(), batch=batch))):
                return _noted(task, [(call.name, call.arguments) for call in batch.said.calls])
            case Success(State(phase=Done(outcome=outcome))):
                task.record.outcomes.append(outcome)
                return RunEnd(type(outcome).__name__)
            case Success(moved):
                state = moved
            case Failure(halt):
                return RunEnd(type(halt).__name__, "no reply could be used")
            case other:
                raise TypeError(f"a turn ended in {type(other).__name__}")


def _noted(task: Task, calls: Sequence[tuple[str, str]], text: str = "") -> RunEnd:
    """The turn's calls in the record; one whose arguments are no object is noted without any."""
    for name, arguments in calls:
        task.record.calls.append(PerformedCall(tool=name, arguments=_members(arguments)))
    task.record.outcomes.append(Said(text=text))
    return RunEnd("calls" if calls else "Said")


def _members(arguments: str) -> Mapping[str, object]:
    try:
        return msgspec.json.decode(arguments, type=dict[str, object])
    except msgspec.DecodeError:
        return {}


async def server_turn(task: Task) -> RunEnd:
    """The server's own tool calls, with nothing of forge's."""
    tools = Raw(b'{"tools":' + bytes(encode_tools(task.workflow.rules.tools)) + b"}")
    reply = await _reply(task, task.workflow.system_prompt, tools)
    if isinstance(reply, RunEnd):
        return reply
    return _noted(task, [(call.name, call.arguments) for call in reply.calls], reply.text)


async def prompted_turn(task: Task, prompt: str) -> RunEnd:
    """The calls of a reply to BFCL's prompt."""
    system = "\n\n".join(filter(None, (prompt, task.workflow.system_prompt)))
    reply = await _reply(task, system, Raw(b"{}"))
    return reply if isinstance(reply, RunEnd) else _noted(task, python_calls(reply.text), reply.text)


async def _reply(task: Task, system: str, tail: Raw) -> Reply | RunEnd:
    said = [("system", system)] if system else []
    messages: list[ChatMessage] = [
        {"role": role, "content": text} for role, text in (*said, ("user", task.messages[0]))
    ]
    with task.answering(0, task.workflow) as perform:
        return await asked(task, perform, messages, tail)
