"""Asking the model with the messages of a chat, as other players than forge do."""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Raw

from forge.evals.player import RunEnd, Task
from forge.interpreters import Interpreter
from stages.effect import Replied, Reply, Request, Send, Undelivered
from stages.wire.deltas import options

ChatMessage = Mapping[str, object]


async def asked(task: Task, perform: Interpreter, messages: Sequence[ChatMessage], tail: Raw) -> Reply | RunEnd:
    """The reply, or how the run ended without one; `tail` is what the request says after its messages."""
    setup = task.connection.setup
    fields = {**options(setup.sampling, setup.dialect.option_names), **setup.dialect.body, **setup.sampling.extra}
    head = Raw(msgspec.json.encode({"model": setup.model, **fields}))
    request = Request(head=head, messages=tuple(Raw(msgspec.json.encode(one)) for one in messages), tail=tail)
    match await perform(Send(request=request, turn=1)):
        case Replied(reply=reply):
            return reply
        case Undelivered(fault=fault):
            return RunEnd("BackendFailed", fault.detail)
        case other:
            raise TypeError(f"a request was answered with {type(other).__name__}")
