"""A loop of somebody's own with forge's rules in it: the middleware is told of replies and results, and says more."""

import inspect
from collections.abc import Callable

import msgspec
from msgspec import Raw

from forge.evals.player import RunEnd, Task
from forge.guardrails import Action, AskPerson, Call, CallModel, Finished, Guardrails, Halted, RunCalls
from forge.tools.definition import Tool, tool
from stages.effect import Replied, Request, Send
from tests.decisions.records import digest

Tell = Callable[[str], None]


async def play_in_a_loop(task: Task, tell: Tell) -> RunEnd:
    """A run of the first of the messages; `tell` is told of each action."""
    guardrails = Guardrails(task.workflow, message=task.messages[0])
    functions: dict[str, Callable[..., object]] = {made.name: made.function for made in _tools(task)}
    functions.setdefault("respond", lambda message: message)
    shown: list[object] = [{"role": "user", "content": task.messages[0]}]
    tail = Raw(msgspec.json.encode({"tools": guardrails.openai_tools()}))
    action: Action = CallModel(added=())
    while True:
        match action:
            case CallModel(nudges=nudges):
                for nudge in nudges:
                    tell(f"nudge({nudge.kind}:{nudge.tier})")
                shown += action.openai()
                request = Request(messages=tuple(Raw(msgspec.json.encode(one)) for one in shown), tail=tail)
                outcome = await task.connection.send(Send(request=request, turn=1))
                if not isinstance(outcome, Replied):
                    return RunEnd("refused", outcome.fault.detail)
                action = guardrails.check(outcome.reply)
            case RunCalls(calls=calls):
                tell(f"RunCalls({','.join(f'{call.name}:{digest(call.text.encode())[:6]}' for call in calls)})")
                done = [(call.id, await _result(functions[call.name], call)) for call in calls]
                action = guardrails.record(
                    {each: value for each, value in done if not isinstance(value, Exception)},
                    {each: value for each, value in done if isinstance(value, Exception)},
                )
            case AskPerson():
                tell("AskPerson")
                action = guardrails.reject("not today")
            case Finished(outcome=ended):
                return RunEnd(type(ended).__name__, msgspec.json.encode(ended, enc_hook=repr).decode())
            case Halted():
                return RunEnd(type(action.halt).__name__, str(action))


def _tools(task: Task) -> list[Tool[..., object]]:
    return [made if isinstance(made, Tool) else tool(made) for made in task.workflow.tools]


async def _result(function: Callable[..., object], call: Call) -> object:
    try:
        value = function(**call.arguments)
        return await value if inspect.isawaitable(value) else value
    except Exception as error:  # noqa: BLE001 - what tools raise is what the middleware is told of
        return error
