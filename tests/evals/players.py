"""Players: scripted models that read what they are shown, and the runs of scenarios that they play.

A player is a generator: it is given the user's message, yields calls or a text, and is sent what came of them, parsed
(None for a call that was refused). It knows the scenario, but not what a seed drew.
"""

import asyncio
import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any

import jsonschema_rs
import msgspec
from msgspec import Struct

from forge.connection import Connection, Setup
from forge.evals.configurations import Cell
from forge.evals.player import Player as Loop
from forge.evals.players import FORGE
from forge.evals.row import Configuration, Row
from forge.evals.scenario import Scenario, World
from forge.evals.series import SeriesOptions, row_of
from stages.effect import RawCall, Replied, Reply, Send, Usage
from stages.message import ToolCall
from stages.wire.prompted import JSON
from stages.wire.target import Mode


class Call(Struct, frozen=True):
    """A call that a player makes."""

    tool: str
    arguments: Mapping[str, Any]


class Worked(Struct, frozen=True):
    """A number with how it is worked out: the tool's schema says which of the two it takes."""

    calculation: str
    number: float


def call(tool: str, /, **arguments: Any) -> Call:
    return Call(tool, arguments)


class Say(Struct, frozen=True):
    """What the user is told: a text, or the argument of `respond` where the workflow has that tool."""

    text: str


LOOK = None
"""The move to read again what is shown, without a reply."""
Move = Call | Sequence[Call] | str | Say | None
Moves = Generator[Move, Any, None]
Player = Callable[[str], Moves]
"""Given the user's message. After a call that ends the run, or a text, it is sent the user's next message."""


class Table:
    """What a player sits at instead of a model: it is shown what came of its calls, its moves are written as replies.

    `calculates`: the tools take numbers that are to be worked out as calculations. `responds`: there may be a tool
    to answer in words with.
    """

    def __init__(self, world: World, player: Player, mode: Mode, *, calculates: bool, responds: bool) -> None:
        self._specs = {spec.name: spec for spec in world.workflow.rules.tools}
        self._messages, self._moves = [*world.messages], player(world.messages[0])
        self._mode, self._calculates = mode, calculates
        self._responds = responds and "respond" in self._specs and mode != "constrained"
        self._queue: list[Call] = []
        self._results: list[Any] = []
        self._batch = False
        self._said: Reply | None = None

    async def __call__(self, effect: Send) -> Replied:
        """The reply that is the player's next move."""
        new = _since_the_last_reply(effect)
        if self._said and any("Nothing has been done so far." in text for _, text in new):
            return self._counted(self._said, effect)  # asked once whether something was to be done: no
        if self._messages and any(self._messages[0] in text for _, text in new):
            message = self._messages.pop(0)
            move = self._moves.send(message if self._said else None)
        else:
            self._results += _results(new) or [None]
            if self._queue:
                return self._counted(self._written([self._queue.pop(0)]), effect)
            move = self._moves.send(self._results if self._batch else self._results[-1])
        while move is None:
            move = self._moves.send(_words(effect))
        if isinstance(move, Say):
            words = json.dumps({"answer": move.text}) if self._mode == "constrained" else move.text
            move = call("respond", message=move.text) if self._responds else words
        self._results, self._batch = [], not isinstance(move, Call | str)
        made = [move] if isinstance(move, Call) else [] if isinstance(move, str) else list(move)
        if self._mode != "native":
            made, self._queue = made[:1], made[1:]
        reply = Reply(text=move) if isinstance(move, str) else self._written(made)
        self._said = reply
        if self._mode == "constrained":
            made_so = [call(one.tool, **self._arguments(one)) for one in made]
            assert all(has_place_for(effect, one) for one in made_so), f"the request has no place for {made_so}"
        return self._counted(reply, effect)

    def _counted(self, reply: Reply, effect: Send) -> Replied:
        """The reply as from a server that counts four characters as a token; a schema of replies is no prompt."""
        tools = len(effect.request.tail) if self._mode == "native" else 0
        characters = sum(map(len, effect.request.messages)) + tools
        return Replied(reply=msgspec.structs.replace(reply, usage=Usage(prompt=characters // 4)))

    def _written(self, made: Sequence[Call]) -> Reply:
        written = [(one.tool, json.dumps(self._arguments(one))) for one in made]
        if self._mode == "native":
            calls = tuple(RawCall(id=f"c{n}", name=name, arguments=text) for n, (name, text) in enumerate(written))
            return Reply(calls=calls, finish="tool_calls")
        calls_as_text = tuple(ToolCall(id="c", name=name, arguments=text) for name, text in written)
        return Reply(text=JSON.encode_calls(calls_as_text))

    def _arguments(self, made: Call) -> dict[str, Any]:
        bound = self._specs[made.tool].calculated if made.tool in self._specs and self._calculates else ()
        calculated = {one.argument for one in bound}
        return {
            name: (value.calculation if name in calculated else value.number) if isinstance(value, Worked) else value
            for name, value in made.arguments.items()
        }


def has_place_for(effect: Send, made: Call) -> bool:
    """Whether the schema of the request takes the call, with null for the arguments that it leaves out."""
    schema = msgspec.json.decode(effect.request.tail)["response_format"]["json_schema"]["schema"]
    for properties in _properties(schema):
        if properties.get("tool") == {"const": made.tool}:
            kinds = properties["args"]
            args = {**dict.fromkeys(kinds.get("required", ())), **made.arguments}
            return jsonschema_rs.validator_for(kinds | {"$defs": schema.get("$defs", {})}).is_valid(args)
    return False


def _properties(part: Any) -> Iterator[Mapping[str, Any]]:
    """The properties of every object in a schema."""
    if isinstance(part, dict) and isinstance(own := part.get("properties"), dict):
        yield own
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _properties(inner)


def _shown(effect: Send) -> list[Mapping[str, Any]]:
    return [msgspec.json.decode(message) for message in effect.request.messages]


def _since_the_last_reply(effect: Send) -> list[tuple[str, str]]:
    """The role and the text of each message that the model has not answered yet."""
    shown = _shown(effect)
    last = max((n for n, message in enumerate(shown) if message["role"] == "assistant"), default=-1)
    return [(message["role"], message["content"]) for message in shown[last + 1 :]]


def _words(effect: Send) -> str:
    """All texts and calls of the conversation, as they are shown."""
    shown = _shown(effect)
    calls = [made for message in shown for made in message.get("tool_calls") or ()]
    return "\n".join([str(message.get("content") or "") for message in shown] + [str(made) for made in calls])


def _results(new: Sequence[tuple[str, str]]) -> list[Any]:
    """What the calls of the last reply returned, as the model is shown it."""
    native = [text for role, text in new if role == "tool"]
    prompted = [part.partition("\n")[2] for _, text in new for part in text.split("Result of ")[1:]]
    return [_parsed(text) for text in native or prompted]


def _parsed(text: str) -> Any:
    """An object or a list as its value, without what is noted after it; anything else as the text."""
    try:
        return json.JSONDecoder().raw_decode(text)[0] if text[:1] in "{[" else text
    except ValueError:
        return text


def talker(_: str) -> Moves:
    """Says that it has done what it was asked for."""
    while True:
        yield "All of that is done, as you asked. The result is 1, the answer is yes."


def guesser(world: World) -> Player:
    """Ends at once, with values of the types that are asked for."""
    tools = world.workflow.rules.tools
    spec = next((spec for spec in tools if spec.name in world.workflow.rules.terminal), tools[0])

    def guess(_: str) -> Moves:
        while True:
            yield Call(spec.name, _any_of(msgspec.json.decode(spec.parameters)))

    return guess


def _any_of(schema: Mapping[str, Any]) -> Any:
    """The first value that comes to mind of a schema."""
    if values := schema.get("enum"):
        return values[0]
    made: Mapping[str, Any] = {"string": "unknown", "integer": 1, "number": 1, "boolean": True, "array": []}
    if schema.get("type") != "object":
        return made[schema["type"]]
    properties = schema.get("properties", {})
    return {name: _any_of(properties[name]) for name in schema.get("required", ())}


def played(
    scenario: Scenario, seed: int, player: Player, *, mode: Mode = "native", ablation: str = "", loop: Loop = FORGE
) -> Row:
    """The row of the run, in which the player's moves are written and read as the mode has them."""
    configuration = Configuration(model="player", backend="none", player=loop.name, mode=mode, ablation=ablation)
    calculates = loop is FORGE and ablation not in {"no_calculation", "bare"}
    table = Table(scenario.world(seed), player, mode, calculates=calculates, responds=loop is FORGE)
    cell = Cell(configuration=configuration, scenario=scenario, seed=seed)
    connection = Connection(Setup(mode=mode, model="player"), table)
    return asyncio.run(row_of(cell, loop, connection, SeriesOptions(), asyncio.Lock()))
