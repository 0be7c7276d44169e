"""A run of a record: the suite's workflow, asked and answered without a model."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as changed

import msgspec
from msgspec.structs import replace

from forge.connection import Connection, Setup
from forge.evals.configurations import Cell
from forge.evals.player import RunEnd
from forge.evals.players import FORGE
from forge.evals.record import RunRecord
from forge.evals.row import Configuration
from forge.evals.scenario import Scenario
from forge.evals.series import task_of
from forge.evals.suite import SUITES
from stages import events
from stages.confidence.measure import AskLarger, StopRun, ThinkFirst, Vote, WhenUnsure
from stages.effect import Replied, Request, Send
from stages.wire.deltas import Delta
from tests.decisions.middleware import play_in_a_loop
from tests.decisions.plain_worlds import WORLDS
from tests.decisions.records import Asked, Run, Said, digest

SCENARIOS: Mapping[str, Scenario] = {scenario.name: scenario for scenario in (*SUITES["all"], *WORLDS)}
_BELOW = 0.6
UNSURE: Mapping[str, WhenUnsure] = {
    "measure": WhenUnsure(below=0.0, then=()),
    "stop": WhenUnsure(below=_BELOW, then=StopRun()),
    "think": WhenUnsure(below=_BELOW, then=ThinkFirst()),
    "vote": WhenUnsure(below=_BELOW, then=Vote()),
    "larger": WhenUnsure(below=_BELOW, then=AskLarger()),
}
Watcher = Callable[[int, Request, Said | None], None]


class Over(Exception):  # noqa: N818 - what happened is in the name
    """Nobody answers any more."""


@dataclass
class Noting(RunRecord):
    """The record of an eval, which also writes down what happened after each model call."""

    happened: list[list[str]] = field(default_factory=list)

    def observe(self, stamped: events.Stamped) -> None:
        if what := _told(stamped.event):
            self.tell(what)
        super().observe(stamped)

    def tell(self, what: str) -> None:
        """What happens before the first model call follows from the task alone, and is left out."""
        if self.happened:
            self.happened[-1].append(what)


def replayed(record: Run, runner: asyncio.Runner, watch: Watcher = lambda *_: None) -> Run:
    """The record as it goes now with its own replies."""
    configuration = Configuration(
        model="m", backend="none", mode=record.mode, ablation=record.ablation, compact=record.compact
    )
    cell = Cell(configuration=configuration, scenario=SCENARIOS[record.scenario], seed=record.seed)
    noting, requests, left = Noting(), list[Request](), iter(record.replies)

    async def send(effect: Send) -> Replied:
        requests.append(effect.request)
        noting.happened.append([])
        reply = next(left, None)
        watch(len(requests), effect.request, reply)
        if reply is None:
            raise Over
        return Replied(reply=reply.reply(measured=bool(record.unsure)))

    world = cell.scenario.world(record.seed)
    if record.unsure:
        world = changed(world, workflow=changed(world.workflow, unsure=UNSURE[record.unsure]))
    setup = Setup(mode=record.mode, model="m", logprobs=bool(record.unsure))
    if record.unsure.startswith("larger"):
        setup = replace(setup, targets={"larger": Setup(mode=setup.mode, model="l", logprobs=True)})
    task = task_of(cell, world, Connection(setup, send), noting)
    played = play_in_a_loop(task, noting.tell) if record.source == "middleware" else FORGE.play(task)
    try:
        ended = runner.run(_played(played))
    except Over:
        end = "unanswered"
    else:
        outcomes = msgspec.json.encode(noting.outcomes, enc_hook=repr)
        end = f"{ended.end} {digest(ended.why.encode(), outcomes)}"
    asked = tuple(
        Asked(request=digest(*request.messages, request.tail), tools=offered(request), events=" ".join(happened))
        for request, happened in zip(requests, noting.happened, strict=True)
    )
    return replace(record, asked=asked, end=end)


async def _played(played: Awaitable[RunEnd]) -> RunEnd:
    return await played


def offered(request: Request) -> str:
    """The names of the tools that the request takes calls of. Empty where only the prompt names them."""
    tail = msgspec.json.decode(request.tail)
    names = [one["function"]["name"] for one in tail.get("tools", ())]
    if "response_format" in tail:
        schema = tail["response_format"]["json_schema"]["schema"]
        inner = [part.get("items", part) for part in schema.get("anyOf", [schema])]
        calls = [call["properties"] for part in inner for call in part.get("anyOf", [part]) if "properties" in call]
        tools = [call["tool"] for call in calls if "tool" in call]
        names = names or [tool.get("const") or tool["enum"][0] for tool in tools]
    return " ".join(dict.fromkeys(names))


def _told(event: events.Event | Delta) -> str:
    """The event's name; of accepted calls what they are, in short. Empty for what follows from the others."""
    name = type(event).__name__
    match event:
        case events.RunStarted() | events.Connected() | events.ModelReplied(summary=True) | events.ModelFailed():
            return ""
        case events.ApprovalAnswered() | events.Steered() | events.RunFailed():
            return ""
        case events.CallsAccepted(calls=calls):
            made = (f"{call.name}:{digest(call.arguments.encode())[:6]}" for call in calls)
            return f"{name}({','.join(made)})"
        case events.Nudged(kind=kind):
            return f"{name}({kind})"
        case _:
            return name
