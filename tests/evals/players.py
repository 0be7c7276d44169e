"""Players: scripted models that read what they are shown, and the runs of scenarios that they play.

A player is a generator: it is given the user's message, yields calls or a text, and is sent what came of them, parsed
(None for a call that was refused). It knows the scenario, but not what a seed drew.
"""

import json
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from msgspec import Struct

from forge.connection import Connection, Setup
from forge.evals.scenario import Scenario, World
from stages.effect import RawCall, Replied, Reply, Send
from stages.message import ToolCall
from stages.serialize import Mode
from stages.wire.prompted.json_calls import encode_calls


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


Move = Call | Sequence[Call] | str
Moves = Generator[Move, Any, None]
Player = Callable[[str], Moves]
"""Given the user's message. After a call that ends the run, or a text, it is sent the user's next message."""


class Table:
    """A backend at which a player sits: shows it what came of its calls, and writes its moves as the mode has them."""

    def __init__(self, scenario: Scenario, world: World, player: Player, mode: Mode) -> None:
        self._world, self._player, self._mode = world, player, mode
        self._context = scenario.context_tokens
        self._moves: Moves | None = None
        self._queue: list[Call] = []
        self._results: list[Any] = []
        self._batch = False
        self._message: str | None = None
        self.requests: list[bytes] = []

    def hear(self, message: str) -> None:
        """The user says something: the next move answers it."""
        self._message = message

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        yield Connection(Setup(mode=self._mode, model="player", context_tokens=self._context), self._send)

    async def _send(self, effect: Send) -> Replied:
        self.requests.append(effect.request.body)
        if self._message is not None:
            move = self._begun(self._message)
            self._message = None
        else:
            shown = [msgspec.json.decode(bytes(message)) for message in effect.request.messages]
            self._results += _results(shown) or [None]
            if self._queue:
                return self._reply([self._queue.pop(0)])
            assert self._moves is not None
            move = self._moves.send(self._results if self._batch else self._results[-1])
        self._results, self._batch = [], not isinstance(move, Call | str)
        if isinstance(move, str):
            return Replied(reply=Reply(text=move))
        made = [move] if isinstance(move, Call) else list(move)
        if self._mode != "native":
            made, self._queue = made[:1], made[1:]
        return self._reply(made)

    def _begun(self, message: str) -> Move:
        if self._moves is None:
            self._moves = self._player(message)
            return next(self._moves)
        return self._moves.send(message)

    def _reply(self, made: Sequence[Call]) -> Replied:
        written = [(one.tool, json.dumps(self._arguments(one))) for one in made]
        if self._mode == "native":
            calls = tuple(RawCall(name=name, arguments=arguments) for name, arguments in written)
            return Replied(reply=Reply(calls=calls, finish="tool_calls"))
        calls_as_text = tuple(ToolCall(id="c", name=name, arguments=arguments) for name, arguments in written)
        return Replied(reply=Reply(text=encode_calls(calls_as_text)))

    def _arguments(self, made: Call) -> dict[str, Any]:
        spec = next((spec for spec in self._world.workflow.rules.tools if spec.name == made.tool), None)
        calculated = {bound.argument for bound in spec.calculated} if spec else set()
        return {
            name: (value.calculation if name in calculated else value.number) if isinstance(value, Worked) else value
            for name, value in made.arguments.items()
        }


def _results(shown: Sequence[Mapping[str, Any]]) -> list[Any]:
    """What the calls of the last reply returned, as the model is shown it."""
    last = max((n for n, message in enumerate(shown) if message["role"] == "assistant"), default=-1)
    new = shown[last + 1 :]
    tools = [message["content"] for message in new if message["role"] == "tool"]
    told = tools or [text.partition("\n")[2] for message in new for text in message["content"].split("Result of ")[1:]]
    return [_parsed(text) for text in told]


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
    spec = next(spec for spec in world.workflow.rules.tools if spec.name in world.workflow.rules.terminal)

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
