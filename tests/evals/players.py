"""Players: scripted models that read what they are shown, and the runs of scenarios that they play.

A player is a generator: it is given the user's message, yields calls or a text, and is sent what came of them, parsed
(None for a call that was refused). It knows the scenario, but not what a seed drew.
"""

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import jsonschema_rs
import msgspec
from msgspec import Struct

from forge.evals.scenario import World
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


def say(text: str) -> Say:
    return Say(text)


class Look(Struct, frozen=True):
    """Read again what is shown, without a reply."""


LOOK = Look()
Move = Call | Sequence[Call] | str | Say | Look
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
        self._messages, self._player = [*world.messages], player
        self._mode, self._calculates = mode, calculates
        self._responds = responds and "respond" in self._specs
        self._moves: Moves | None = None
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
            move = self._heard(self._messages.pop(0))
        else:
            self._results += _results(new) or [None]
            if self._queue:
                return self._counted(self._written([self._queue.pop(0)]), effect)
            move = self._resumed(self._results if self._batch else self._results[-1])
        while isinstance(move, Look):
            move = self._resumed(_words(effect))
        if isinstance(move, Say):
            move = call("respond", message=move.text) if self._responds else move.text
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

    def _heard(self, message: str) -> Move:
        if self._moves is None:
            self._moves = self._player(message)
            return next(self._moves)
        return self._resumed(message)

    def _resumed(self, seen: Any) -> Move:
        assert self._moves is not None
        return self._moves.send(seen)

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
    inner = [part.get("items", part) for part in schema["anyOf"]]
    for one in (call for part in inner for call in part.get("anyOf", [part])):
        kinds = one["properties"].get("args")
        if kinds and one["properties"]["tool"]["const"] == made.tool:
            args = {**dict.fromkeys(kinds.get("required", ())), **made.arguments}
            return jsonschema_rs.validator_for(kinds | {"$defs": schema.get("$defs", {})}).is_valid(args)
    return False


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
    return [_parsed(text) for text in native or (part.partition("\n")[2] for _, text in new for part in _parts(text))]


def _parts(text: str) -> list[str]:
    return text.split("Result of ")[1:]


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
