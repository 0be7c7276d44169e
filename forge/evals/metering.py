"""Metering: a connection whose model calls are counted, given a sampling seed each, and held to a context."""

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from forge.connection import Connection
from forge.evals.record import Record
from stages.confidence.decide import LARGER
from stages.effect import Fault, Price, Replied, Send, Undelivered
from stages.wire.wires import Dialect

_SEEDS_PER_RUN = 1000
"""The seeds of two runs do not overlap, as long as no run has more model calls."""


def metered(connection: Connection, record: Record, *, seed: int, price: Price, context_tokens: int) -> Connection:
    """The connection of one run with that seed. What its replies take is added to the record.

    A prompt of more than `context_tokens` is refused, as a server with that context would have refused it.
    """
    known = connection.setup

    async def send(effect: Send) -> Replied | Undelivered:
        record.asked += 1
        record.asked_larger += effect.target == LARGER
        record.said(effect.request.body)
        setup = known.targets.get(effect.target, known)
        outcome = await connection.send(seeded(effect, setup.dialect, request_seed(seed, record.asked)))
        if isinstance(outcome, Replied):
            usage, record.fault = outcome.reply.usage, None
            record.said(msgspec.json.encode(outcome.reply))
            record.spend(usage, price)
            if usage is not None and usage.prompt > context_tokens:
                return _refused(usage.prompt, context_tokens, outcome.seconds)
        else:
            record.fault = outcome.fault
        return outcome

    return replace(connection, setup=replace(known, context_tokens=context_tokens), send=send, stream=None)


def request_seed(seed: int, number: int) -> int:
    """The sampling seed of a run's n-th model call, from 1: the same for every player."""
    return seed * _SEEDS_PER_RUN + number


def seeded(effect: Send, dialect: Dialect, seed: int) -> Send:
    """The request with that sampling seed, where its wire has a field for one."""
    head = msgspec.json.decode(effect.request.head, type=dict[str, Raw])
    number = Raw(str(seed).encode())
    match dialect.wire:
        case "openai" if name := dialect.option_names.get("seed", "seed"):
            head[name] = number
        case "ollama":
            options = msgspec.json.decode(head.get("options", Raw(b"{}")), type=dict[str, Raw])
            head["options"] = Raw(msgspec.json.encode({**options, "seed": number}))
        case _:
            return effect
    return replace(effect, request=replace(effect.request, head=Raw(msgspec.json.encode(head))))


def _refused(prompt: int, context: int, seconds: float) -> Undelivered:
    said = f"the prompt has {prompt} tokens, and the context of this scenario {context}"
    return Undelivered(fault=Fault(kind="status", status=400, detail=said), seconds=seconds)
