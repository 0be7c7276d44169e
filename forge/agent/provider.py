"""Provider: a model without tools: messages in, one reply out, complete or streamed."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

from msgspec.structs import replace
from returns.result import Failure, Result, Success

from forge.backends.routing import reached
from forge.connection import AnyBackend, Setup
from forge.errors import DefinitionError, checked_options
from forge.runtime.event_stream import EventQueue, streamed
from forge.runtime.reaching import ConnectCancelled, unless
from stages import fold, pipeline, reasoning, send, serialize
from stages.decoding import sound_struct
from stages.effect import Fault, Replied, Reply, Send, Undelivered
from stages.message import History, Message, User
from stages.rules import Rules
from stages.state import Awaiting, State
from stages.wire.deltas import Delta
from stages.wire.target import Target
from stages.wire.wires import wire

_Prompt = str | Message | tuple[Message, ...] | list[Message]
"""The user's text, or a conversation as a history of `stages.message`."""


class Provider:
    """A model behind any backend: `complete` and `stream`. Agents do not need it; it is for other uses."""

    @checked_options
    def __init__(self, backend: AnyBackend) -> None:
        self._backend = backend

    @checked_options
    async def complete(self, messages: _Prompt) -> Result[Reply, Fault]:
        """The model's reply, with reasoning separate from text; or the fault, after retries.

        DefinitionError without a message, ForgeError if the backend cannot be reached.
        """
        history = _history(messages)
        async with reached(self._backend).connect() as connection:
            return _reply(await connection.send(_request(history, connection.setup)))

    @checked_options
    async def stream(self, messages: _Prompt) -> AsyncGenerator[Delta | Reply | Fault, None]:
        """The deltas of the reply as they arrive; last, the `Reply` or the `Fault`.

        Leaving the loop closes the request. Raises what `complete` raises.
        """
        history = _history(messages)

        async def start(line: EventQueue[Delta | Reply | Fault], stop: asyncio.Event) -> None:
            async def on_chunk(delta: Delta) -> None:
                line.put(delta)
                await line.room()

            with suppress(ConnectCancelled):
                async with unless(stop), reached(self._backend).connect() as connection:
                    ended = _reply(await connection.told(on_chunk)(_request(history, connection.setup)))
                    line.put(ended.unwrap() if isinstance(ended, Success) else ended.failure())

        async with aclosing(streamed(start, lambda *_: False)) as told:
            async for one in told:
                yield one


def _history(messages: _Prompt) -> History:
    """The messages. DefinitionError if there are none, or one is empty."""
    match messages:
        case str():
            history: History = (User(text=messages),) if messages.strip() else ()
        case tuple() | list():
            history = tuple(messages)
        case _:
            history = (messages,)
    if not history:
        raise DefinitionError(("there is no message; say something to the model",))
    return tuple(map(sound_struct, history))


_NO_TOOLS = Rules(tools=(), on_text="accept")


def _request(history: History, setup: Setup) -> Send:
    """The request that an agent without tools would send for that history, by the same stages."""
    target = Target(model=setup.model, sampling=setup.sampling, wire=wire(setup.dialect), alternating=setup.alternating)
    asked = pipeline(fold(), serialize(_NO_TOOLS, target), send(_NO_TOOLS))(State(history=history)).unwrap()
    if not isinstance(asked.phase, Awaiting) or not isinstance(asked.phase.effect, Send):
        raise TypeError(f"a request was to be sent, and the state is {asked!r}")
    return asked.phase.effect


def _reply(outcome: Replied | Undelivered) -> Result[Reply, Fault]:
    if isinstance(outcome, Undelivered):
        return Failure(outcome.fault)
    reply = sound_struct(outcome.reply)
    thought, text = reasoning.split_reasoning(reply.text)
    return Success(replace(reply, reasoning=reply.reasoning or thought.strip(), text=text.strip()))
