"""Conversation: runs of one workflow, each continuing what was said before."""

from collections.abc import Mapping
from typing import Generic, Unpack

from returns.result import Failure, Result

from forge.connection import AnyBackend
from forge.errors import ForgeError, checked_options
from forge.outcome import Finished, Halted, R_co
from forge.runtime.runs import follow, run, synchronously
from forge.runtime.watching import Watching
from forge.workflow.workflow import Workflow
from stages.state import State


class Conversation(Generic[R_co]):
    """A workflow that is run for one message after another. Corrections and failed attempts are not carried over.

    `state` is the last run's, None before the first: a value that can be saved as JSON. Pass it to another
    Conversation to continue there. Each message has its own steps and budget; the history and the results that can be
    recalled are shared.
    """

    @checked_options
    def __init__(
        self,
        workflow: Workflow[R_co],
        *,
        backend: AnyBackend,
        prompt_vars: Mapping[str, str] | None = None,
        state: State | None = None,
    ) -> None:
        self._workflow = workflow
        self._backend = backend
        self._prompt_vars = prompt_vars
        self._running = False
        self.state = state

    def __repr__(self) -> str:
        """The workflow's name and the state."""
        return f"Conversation({self._workflow.name!r}, {self.state!r})"

    @checked_options
    async def say(self, message: str, **watching: Unpack[Watching]) -> Result[Finished[R_co], Halted]:
        """Run the workflow for this message; options as in `forge.run`. ForgeError if another is still running."""
        if self._running:
            raise ForgeError("the conversation is still running another message; await it, or cancel it")
        self._running = True
        try:
            flow, backend = self._workflow, self._backend
            if self.state is None:
                ended = await run(flow, message, backend=backend, prompt_vars=self._prompt_vars, **watching)
            else:
                ended = await follow(flow, self.state, message, backend=backend, **watching)
        except ForgeError as error:
            self.state = error.state or self.state  # keep what was done before it
            raise
        finally:
            self._running = False
        self.state = ended.failure().state if isinstance(ended, Failure) else ended.unwrap().state
        return ended

    @checked_options
    def say_sync(self, message: str, **watching: Unpack[Watching]) -> Result[Finished[R_co], Halted]:
        """`say`, for code without an event loop."""
        return synchronously(self.say(message, **watching), "await conversation.say(…)")
