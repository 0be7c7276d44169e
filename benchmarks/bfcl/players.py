"""BFCL's categories as scenarios, of one turn and of several."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Raw
from returns.result import Failure, Success

from benchmarks.bfcl.checker import Checker, Simulation, python_calls
from benchmarks.bfcl.child_program import SimulatedCall
from benchmarks.bfcl.data import function_tool, question_world
from forge.evals.player import Player, RunEnd, Task
from forge.evals.players import PLAIN, ChatMessage, asked, play_forge, tools_tail
from forge.evals.scenario import PerformedCall, Scenario, Trajectory, World
from forge.interpreters import Interpreter
from forge.workflow.turn import advanced, compiled_turn
from forge.workflow.workflow import Workflow
from stages.deliver import deliver
from stages.effect import Execute, Failed, Reply, Results, Said, Send, Succeeded
from stages.halt import BadReplies, ToolsFailing
from stages.message import ToolCall
from stages.rules import Limits
from stages.state import Awaiting, Done, State

# One turn on a question, by forge in its modes, by the server's own tool calls, and by BFCL's prompt.
#
# None runs a function: the calls of the first reply that has any are noted, and judged.


async def forge_turn(task: Task) -> RunEnd:
    """One turn of forge's, with the corrections that it takes."""
    turn = compiled_turn(task.workflow.compiled, task.connection.setup)
    state = task.workflow.start(task.messages[0])
    with task.answering(0, task.workflow) as perform:
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
        try:
            members = msgspec.json.decode(arguments, type=dict[str, object])
        except msgspec.DecodeError:
            members = {}
        task.record.calls.append(PerformedCall(tool=name, arguments=members))
    task.record.outcomes.append(Said(text=text))
    return RunEnd("calls" if calls else "Said")


async def _server_turn(task: Task) -> RunEnd:
    """The server's own tool calls, with nothing of forge's."""
    reply = await _reply(task, task.workflow.system_prompt, tools_tail(task.workflow))
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


# BFCL's conversations of several turns as scenarios: the functions are run, simulated by the package.

_CONVERSATION = "bfcl_conversation"
"""The name of the workflows whose functions are run."""

_STEPS = 20
"""Replies with calls for each message, as the package has it; the next ends the turn, or the model has failed."""

_FUNCTIONS: Mapping[str, str] = MappingProxyType(
    {
        "GorillaFileSystem": "gorilla_file_system",
        "MathAPI": "math_api",
        "MessageAPI": "message_api",
        "TicketAPI": "ticket_api",
        "TradingBot": "trading_bot",
        "TravelAPI": "travel_booking",
        "TwitterAPI": "posting_api",
        "VehicleControlAPI": "vehicle_control",
    }
)
"""The file that describes the functions of each class."""


def _conversation_world(package: Path, entry: Mapping[str, Any], answer: object) -> World:
    """The world of an entry: its functions, that run on what was called before, and the package's judgement."""
    files = (_FUNCTIONS[name] for name in entry["involved_classes"])
    functions = [one for file in files for one in _lines(package / "data" / "multi_turn_func_doc" / f"{file}.json")]
    names = tuple(one["name"] for one in functions)
    simulation = Simulation(package=package, entry=entry, names=names)
    messages = tuple(said["content"] for (said,) in entry["question"])

    def right(trajectory: Trajectory) -> str:
        done = [call for call in trajectory.calls if not call.error]
        by_message = ([call for call in done if call.message == number] for number in range(len(messages)))
        turns = [
            [SimulatedCall(name=call.tool, arguments={**call.arguments}) for call in calls] for calls in by_message
        ]
        return simulation.wrong(turns, answer)

    made: list[SimulatedCall] = []
    tools = [function_tool(one, partial(_run, simulation, made, one["name"])) for one in functions]
    workflow = Workflow(_CONVERSATION, tools=tools, on_text="accept", limits=Limits(max_iterations=_STEPS + 1))
    return World(workflow=workflow, messages=messages, right=right)


def _run(simulation: Simulation, made: list[SimulatedCall], name: str, /, **arguments: object) -> str:
    """Run the call after those made; one that had to be stopped is not among them."""
    call = SimulatedCall(name=name, arguments=arguments)
    result = simulation.last_result([*made, call])
    made.append(call)
    return result


# Conversations of several turns, by forge in its modes and by BFCL's prompt.
#
# With the server's own tool calls they are the plain player's: it calls what is asked for, until there is text.


async def _prompted_conversation(task: Task, prompt: str) -> RunEnd:
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
    for _ in range(task.workflow.budget.calls):
        reply = await asked(task, perform, messages, Raw(b"{}"))
        if isinstance(reply, RunEnd):
            return reply
        messages.append({"role": "assistant", "content": reply.text})
        calls = python_calls(reply.text)
        if not calls:
            return Said(text=reply.text)
        told: list[ChatMessage] = []
        for name, arguments in calls:
            call = ToolCall(id=f"call_{len(told)}", name=name, arguments=arguments)
            result = await _result(task, perform, call)
            told.append({"role": "tool", "name": f"{name}({arguments})", "content": result})
        messages.append({"role": "user", "content": str(told)})
    return RunEnd("iterations", f"no end after {task.workflow.budget.calls} model calls")


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


# The categories of BFCL as scenarios: one question a seed, in an order that a seed does not choose.

CATEGORIES: Mapping[str, str] = MappingProxyType(
    {
        "simple_python": "one function, one call",
        "multiple": "several functions, one call of the right one",
        "parallel": "one function, several calls in one reply",
        "parallel_multiple": "several functions, several calls in one reply",
        "irrelevance": "no function fits: no call",
        "live_simple": "as simple, asked by users",
        "live_multiple": "as multiple, asked by users",
        "live_parallel": "as parallel, asked by users",
        "live_parallel_multiple": "as parallel_multiple, asked by users",
        "live_irrelevance": "as irrelevance, asked by users",
        "live_relevance": "a function fits: at least one call, whichever",
        "multi_turn_base": "conversations of several turns, whose functions are run, simulated",
    }
)


def scenarios(checker: Checker, categories: Iterable[str]) -> tuple[Scenario, ...]:
    """These categories; a seed from 1 on is the number of a question."""
    return tuple(_scenario(checker, name) for name in categories)


def _scenario(checker: Checker, name: str) -> Scenario:
    folder = checker.package / "data"
    # In the order of a hash, so that the first hundred are a fair sample.
    every = _lines(folder / f"BFCL_v4_{name}.json")
    entries = sorted(every, key=lambda entry: hashlib.sha256(entry["id"].encode()).digest())
    file = folder / "possible_answer" / f"BFCL_v4_{name}.json"
    answers = {answer["id"]: answer["ground_truth"] for answer in _lines(file)} if file.exists() else {}
    several_turns = name == "multi_turn_base"

    def world(seed: int) -> World:
        entry = entries[seed - 1]
        answer = answers.get(entry["id"])
        if several_turns:
            return _conversation_world(checker.package, entry, answer)
        return question_world(checker, name, entry, answer)

    return Scenario(
        name=f"bfcl/{name}",
        about=CATEGORIES[name],
        world=world,
        # The mean conversation has 3.7 turns: a reply with calls, then one with words.
        ideal_calls=7 if several_turns else 1,
        tags=frozenset({"bfcl"}),
        # Up to 39 functions take 5,000 tokens.
        context_tokens=16384 if several_turns else 8192,
        seeds=len(entries),
    )


def _lines(file: Path) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line, type=dict[str, Any]) for line in file.read_bytes().splitlines()]


# The players of BFCL: forge in its modes, the server's own tool calls, and BFCL's prompt.


def players(checker: Checker) -> dict[str, Player]:
    """The players by name; each plays a question of one turn, and a conversation."""

    def converses(task: Task) -> bool:
        return task.workflow.name == _CONVERSATION

    async def forge(task: Task) -> RunEnd:
        # In BFCL a reply that cannot be read ends its turn and not the conversation, so here does a run that halts on
        # its model's replies.
        return await (play_forge(task, (BadReplies, ToolsFailing)) if converses(task) else forge_turn(task))

    async def server(task: Task) -> RunEnd:
        return await (PLAIN.play if converses(task) else _server_turn)(task)

    async def prompted(task: Task) -> RunEnd:
        specs = task.workflow.rules.tools
        prompt = checker.prompt(
            [
                {"name": one.name, "description": one.description, "parameters": msgspec.json.decode(one.parameters)}
                for one in specs
            ]
        )
        return await (_prompted_conversation if converses(task) else prompted_turn)(task, prompt)

    made = (
        Player(name="forge", about="forge, in the mode asked for", play=forge),
        Player(name="server", about="the server's own tool calls", play=server, wire="openai"),
        Player(name="bfcl-prompt", about="BFCL's own prompt, read as Python calls", play=prompted, wire="openai"),
    )
    return {player.name: player for player in made}
