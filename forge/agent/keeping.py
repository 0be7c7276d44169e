"""Keeping: what an agent asks of its memory, and the state that it goes on from."""

import inspect
from typing import Protocol

from forge.errors import DefinitionError, ForgeError, UnrecordedError
from forge.workflow.template import fill
from forge.workflow.workflow import Workflow
from stages.message import System
from stages.state import State


class Keeper(Protocol):
    """What an agent asks of its memory; a `forge.agent.memory.Session` is one."""

    async def load(self) -> State | None:
        """The state that was last saved; None: there is none."""

    async def save(self, state: State) -> None:
        """Save the state. ForgeError if it cannot: the agent then stops before it does anything more."""


def refuse_store(memory: Keeper | None) -> None:
    """DefinitionError for a whole store in the place of one conversation in it, or for another object without one."""
    if memory is None:
        return
    for method, arguments in ((memory.load, ()), (memory.save, ("state",))):
        try:
            inspect.signature(method).bind(*arguments)
        except TypeError:
            name = type(memory).__name__
            said = f"memory is {memory!r}, which is no conversation; of a store, name one: Session({name}(…), 'ann')"
            raise DefinitionError((said,)) from None


async def saving(memory: Keeper, state: State) -> None:
    """Save the state. UnrecordedError if that fails, by which a run ends before it does anything more."""
    try:
        await memory.save(state)
    except ForgeError as error:
        raise UnrecordedError(f"{memory!r} could not save the conversation: {error}") from error


def prompted(state: State | None, workflow: Workflow) -> State | None:
    """The state with the workflow's system prompt of today; None: there is no state."""
    if state is None:
        return None
    history = state.history
    prompt = fill(workflow.system_prompt, {})
    system = (System(text=prompt),) if prompt else ()
    first = history[:1] if history and isinstance(history[0], System) else ()
    return state if first == system else state.reshape((*system, *history[len(first) :]))
