"""BFCL's conversations of several turns as scenarios: the functions are run, simulated by the package."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from forge.evals.bfcl.checker import Simulation
from forge.evals.bfcl.child_program import SimulatedCall
from forge.evals.bfcl.functions import function_tool
from forge.evals.scenario import Trajectory, World
from forge.workflow.workflow import Workflow

CONVERSATION = "bfcl_conversation"
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


def conversation_world(package: Path, entry: Mapping[str, Any], answer: object) -> World:
    """The world of an entry: its functions, that run on what was called before, and the package's judgement."""
    functions = [one for name in entry["involved_classes"] for one in _described(package, name)]
    names = tuple(one["name"] for one in functions)
    simulation = Simulation(package=package, entry=entry, names=names)
    messages = tuple(said["content"] for (said,) in entry["question"])

    def right(trajectory: Trajectory) -> str:
        return simulation.wrong(_turns(trajectory, len(messages)), answer)

    made: list[SimulatedCall] = []
    tools = [function_tool(one, partial(_run, simulation, made, one["name"])) for one in functions]
    workflow = Workflow(CONVERSATION, tools=tools, on_text="accept", max_iterations=_STEPS + 1)
    return World(workflow=workflow, messages=messages, right=right)


def _described(package: Path, name: str) -> list[Any]:
    file = package / "data" / "multi_turn_func_doc" / f"{_FUNCTIONS[name]}.json"
    return [msgspec.json.decode(line) for line in file.read_bytes().splitlines()]


def _run(simulation: Simulation, made: list[SimulatedCall], name: str, /, **arguments: object) -> str:
    """Run the call after those made; one that had to be stopped is not among them."""
    call = SimulatedCall(name=name, arguments=arguments)
    result = simulation.last_result([*made, call])
    made.append(call)
    return result


def _turns(trajectory: Trajectory, messages: int) -> list[list[SimulatedCall]]:
    """The calls for each message."""
    done = [call for call in trajectory.calls if not call.error]
    return [
        [SimulatedCall(name=call.tool, arguments={**call.arguments}) for call in done if call.message == number]
        for number in range(messages)
    ]
