"""Reaching: the backend of a run, connected to and asked what there is to know, unless the run is cancelled first."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from msgspec.structs import replace
from returns.result import Success

from forge.backends.routing import reached
from forge.connection import AnyBackend, Connection
from forge.errors import CallbackError, ForgeError
from forge.runtime.watching import Watching
from forge.workflow.turn import asked_first
from forge.workflow.workflow import Workflow
from stages.effect import Send
from stages.state import Awaiting, State
from stages.tokens import STARTING_RATE, Report, calibrated
from stages.wire.sampling import Sampling
from stages.wire.wires import wire


class ConnectCancelled(Exception):  # noqa: N818 - nothing went wrong
    """The run was cancelled before its model was reached."""


@asynccontextmanager
async def connected(backend: AnyBackend, watching: Watching) -> AsyncIterator[Connection]:
    """The connection of a run, with the run's own sampling. ConnectCancelled if `cancel` is set before it stands."""
    async with AsyncExitStack() as opened:
        async with unless(watching.get("cancel")):
            found = await opened.enter_async_context(reached(backend).connect())
        yield with_sampling(found, watching.get("sampling"))


@asynccontextmanager
async def unless(cancel: asyncio.Event | None) -> AsyncIterator[None]:
    """What is awaited in here is cancelled when `cancel` is set, and ConnectCancelled is raised for it."""
    if cancel is None:
        yield
        return
    try:
        async with asyncio.timeout(None) as limit:

            async def expire() -> None:
                await cancel.wait()
                limit.reschedule(asyncio.get_running_loop().time())

            waiting = asyncio.ensure_future(expire())
            try:
                yield
            finally:
                waiting.cancel()
    except TimeoutError:
        if not limit.expired():
            raise
        raise ConnectCancelled from None


def with_sampling(connection: Connection, sampling: Sampling | None) -> Connection:
    """The connection with a run's own options over the backend's. ForgeError for one that the backend has not."""
    if sampling is None:
        return connection
    setup = connection.setup
    try:
        wire(setup.dialect).head(setup.model, sampling, ())
    except ValueError as error:
        raise ForgeError(f"sampling: {error}") from None
    return replace(connection, setup=replace(setup, sampling=sampling.over(setup.sampling)))


async def counted(workflow: Workflow, state: State, connection: Connection) -> State:
    """The state with what is known of the model's tokens: what its own run has learnt, else what the server says."""
    ledger, setup = state.ledger, connection.setup
    if ledger.model == setup.model and (ledger.model or ledger.report.tokens):
        return state
    rate = setup.tokens_per_character or STARTING_RATE
    known = state.note(model=setup.model, tokens_per_character=rate, report=Report())
    if connection.count is None:
        return known
    try:
        asked = asked_first(workflow.compiled, known, setup)
    except CallbackError:
        return known  # the turn fails in the same way; its error holds the state, and the journal has begun
    match asked:
        case Success(State(phase=Awaiting(effect=Send(request=request))) as first):
            report = Report(characters=first.ledger.prompt_size, tokens=await connection.count(request.body) or 0)
            return known.note(report=calibrated(rate, Report(), report, first.prompt.size)[1])
        case _:
            return known
