"""Players that take one turn: forge in its modes, the server's own tool calls, and BFCL's prompt.

None runs a function: the calls of the first reply that has any are noted, and judged.
"""

import ast
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw
from returns.result import Failure, Success

from forge.evals.bfcl.checker import Checker
from forge.evals.player import Player, RunEnd, Task
from forge.evals.scenario import PerformedCall
from forge.runtime.advancing import advanced
from forge.workflow.turn import turn_of
from stages.deliver import deliver
from stages.effect import Execute, Reply, Request, Send, Undelivered
from stages.state import Awaiting, Done, Said, State
from stages.wire.openai.chat import encode_tools
from stages.wire.sampling import options


async def _forge(task: Task) -> RunEnd:
    """One turn of forge's, with the corrections that it takes."""
    turn = turn_of(task.workflow.compiled, task.connection.setup)
    state = task.workflow.start(task.messages[0])
    while True:
        match advanced(turn, state):
            case Success(State(phase=Awaiting(effect=Send() as effect)) as waiting):
                delivered = deliver(waiting, await task.connection.send(effect))
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


async def _server(task: Task) -> RunEnd:
    """The server's own tool calls, with nothing of forge's."""
    tools = Raw(b'{"tools":' + bytes(encode_tools(task.workflow.rules.tools)) + b"}")
    reply = await _asked(task, task.workflow.system_prompt, tools)
    if isinstance(reply, RunEnd):
        return reply
    return _noted(task, [(call.name, call.arguments) for call in reply.calls], reply.text)


async def _asked(task: Task, system: str, tail: Raw) -> Reply | RunEnd:
    setup = task.connection.setup
    said = [("system", system)] if system else []
    messages = [{"role": role, "content": text} for role, text in (*said, ("user", task.messages[0]))]
    fields = {**options(setup.sampling, setup.dialect.option_names), **setup.dialect.body, **setup.sampling.extra}
    head = Raw(msgspec.json.encode({"model": setup.model, **fields}))
    request = Request(head=head, messages=tuple(Raw(msgspec.json.encode(one)) for one in messages), tail=tail)
    outcome = await task.connection.send(Send(request=request, turn=1))
    return RunEnd("BackendFailed", outcome.fault.detail) if isinstance(outcome, Undelivered) else outcome.reply


def _prompting(checker: Checker) -> Player:
    async def play(task: Task) -> RunEnd:
        specs = task.workflow.rules.tools
        functions: list[Mapping[str, Any]] = [
            {"name": one.name, "description": one.description, "parameters": msgspec.json.decode(one.parameters)}
            for one in specs
        ]
        system = "\n\n".join(filter(None, (checker.prompt(functions), task.workflow.system_prompt)))
        reply = await _asked(task, system, Raw(b"{}"))
        return reply if isinstance(reply, RunEnd) else _noted(task, python_calls(reply.text), reply.text)

    return Player(name="bfcl-prompt", about="BFCL's own prompt, read as Python calls", play=play, wire="openai")


def python_calls(text: str) -> list[tuple[str, str]]:
    """The calls of `[f(a=1), g(b="x")]`, arguments as JSON; none where the text is anything else."""
    try:
        tree = ast.parse(text.strip().strip("`").strip(), mode="eval").body
        listed = tree.elts if isinstance(tree, ast.List | ast.Tuple) else [tree]
        return [_python_call(one) for one in listed]
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return []


def _python_call(node: ast.expr) -> tuple[str, str]:
    if not isinstance(node, ast.Call) or node.args:
        raise ValueError("no call by name")
    arguments = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords if keyword.arg}
    return ast.unparse(node.func).replace(".", "_"), msgspec.json.encode(arguments).decode()


def players(checker: Checker) -> dict[str, Player]:
    """The players by name."""
    forge = Player(name="forge", about="one turn of forge's, in the mode asked for", play=_forge)
    server = Player(name="server", about="the server's own tool calls", play=_server, wire="openai")
    return {player.name: player for player in (forge, server, _prompting(checker))}
