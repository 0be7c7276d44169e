"""A run of a scenario by a player, without a server, and its verdict."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any

from returns.result import Failure

from forge import Conversation, Workflow
from forge.evals.scenario import Attempt, Judged, PerformedCall, Scenario, World, judge
from forge.tools.decorator import Tool, tool
from stages.compaction import NoCompact
from stages.message import Kind, User
from stages.serialize import Mode
from stages.state import Ending
from tests.evals.players import Player, Table

Options = Mapping[str, Any]
ABLATIONS: Mapping[str, Options] = {
    "reforged": {},
    "no_rescue": {"rescue_enabled": False},
    "no_nudge": {"rescue_enabled": False, "max_retries_per_step": 0},
    "no_steps": {"required_steps": (), "order": ()},
    "no_recovery": {"max_tool_errors": 0},
    "no_compact": {"compactor": NoCompact(), "summarize": False},
}
ABLATIONS = {
    **ABLATIONS,
    "bare": {name: value for options in ABLATIONS.values() for name, value in options.items()} | {"grounded": None},
}


def played(
    scenario: Scenario, seed: int, player: Player, mode: Mode = "native", ablation: str = "reforged"
) -> "Played":
    """The run of the scenario by the player, whose tools note what they are called with."""
    world, calls = scenario.world(seed), list[PerformedCall]()
    workflow = replace(_noted(world.workflow, calls), **ABLATIONS[ablation])
    table = Table(scenario, world, player, mode)
    return asyncio.run(_played(world, workflow, table, calls))


class Played:
    """A run that is over: its verdict, its model calls, and the corrections that the model was given."""

    def __init__(self, attempt: Attempt, judged: Judged, table: Table, corrections: list[str]) -> None:
        self.attempt = attempt
        self.verdict, self.why = judged.verdict, judged.why
        self.requests, self.corrections = table.requests, corrections


async def _played(world: World, workflow: Workflow[Any], table: Table, calls: list[PerformedCall]) -> Played:
    talk, outcomes, corrections = Conversation(workflow, backend=table), list[Ending](), list[str]()
    for message in world.messages:
        table.hear(message)
        ended = await talk.say(message)
        state = talk.state
        assert state is not None
        corrections += [m.text for m in state.history if isinstance(m, User) and m.kind in _CORRECTIONS]
        if isinstance(ended, Failure):
            break
        outcomes.append(ended.unwrap().outcome)
    outcome = outcomes[-1] if len(outcomes) == len(world.messages) else None
    attempt = Attempt(outcome=outcome, calls=tuple(calls), outcomes=tuple(outcomes))
    return Played(attempt, judge(world, attempt), table, corrections)


_CORRECTIONS = {Kind.RETRY_NUDGE, Kind.STEP_NUDGE, Kind.PREREQUISITE_NUDGE, Kind.PROVENANCE_NUDGE}


def _noted(workflow: Workflow[Any], calls: list[PerformedCall]) -> Workflow[Any]:
    made = [one if isinstance(one, Tool) else tool(one) for one in workflow.tools]
    return replace(workflow, tools=[Tool(_noting(one.name, one.function, calls), one.spec) for one in made])


def _noting(name: str, function: Callable[..., object], calls: list[PerformedCall]) -> Callable[..., object]:
    @wraps(function)
    def run(**arguments: object) -> object:
        try:
            result = function(**arguments)
        except Exception as error:
            calls.append(PerformedCall(tool=name, arguments=arguments, error=str(error) or "failed"))
            raise
        calls.append(PerformedCall(tool=name, arguments=arguments, result=result))
        return result

    return run
