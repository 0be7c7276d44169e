"""Interpreters perform effects: each is a coroutine function from an effect to its outcome."""

from collections.abc import Awaitable, Callable
from typing import assert_never

from forge.callbacks import Asker
from forge.connection import Sender
from stages.decoding import sound_struct
from stages.effect import Ask, Effect, Execute, Outcome, Results, Send, Unanswered

Interpreter = Callable[[Effect], Awaitable[Outcome]]
Runner = Callable[[Execute], Awaitable[Results]]


async def nobody(ask: Ask) -> Unanswered:
    """The asker for runs without a person: the run ends (fail-closed)."""
    return Unanswered(digest=ask.digest, reason="nobody is there to ask")


def interpreter(send: Sender, execute: Runner, ask: Asker = nobody) -> Interpreter:
    """One interpreter for all effects, made of one per kind; lone surrogates in outcomes are replaced."""

    async def perform(effect: Effect) -> Outcome:
        match effect:
            case Send():
                return sound_struct(await send(effect))
            case Execute():
                return sound_struct(await execute(effect))
            case Ask():
                return sound_struct(await ask(effect))
            case _:
                assert_never(effect)

    return perform
