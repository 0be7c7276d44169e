"""RunServer: a worker of durable runs and its HTTP API as an async context."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from forge import durable
from forge.connection import AnyBackend
from forge.door.access import is_loopback
from forge.door.listening import Listening, listening_socket, running, url_of
from forge.durable import Rhythm, Runs, Served
from forge.durable.runs import workflow_of
from forge.durable.worker import all_of
from forge.errors import ForgeError
from forge.observation import observe_with
from forge.serve.app import App
from forge.serve.following import Followings
from forge.serve.options import ServeOptions
from forge.telemetry.prometheus import Metrics


class RunServer:
    """Serves runs of workflows and agents: `async with RunServer(desk, database="runs.db", backend=…) as server: …`.

    `database`, `backend`, `concurrency`, `slots`, `per_minute`, `answer_within` and `rhythm` are those of
    `forge.durable.worker`, which it is at the same time; `url` is its address. ForgeError for an address that others
    reach without keys, for a port that is taken, and for a database or keys that cannot be read.
    """

    def __init__(
        self,
        workflows: Served | Sequence[Served],
        *,
        database: str | Path,
        backend: AnyBackend | None = None,
        options: ServeOptions | None = None,
        concurrency: int = 16,
        slots: int | None = None,
        per_minute: int | None = None,
        answer_within: float = 7 * 86400.0,
        rhythm: Rhythm = Rhythm(),  # noqa: B008 - frozen
    ) -> None:
        self._workflows = all_of(workflows)
        self._database, self._backend, self._options = database, backend, options or ServeOptions()
        self._concurrency, self._slots, self._per_minute = concurrency, slots, per_minute
        self._answer_within, self._rhythm = answer_within, rhythm
        if not (is_loopback(self._options.host) or self._options.keys):
            raise ForgeError(
                f"{self._options.host} can be reached from other machines, and anybody there could start runs. Give "
                "callers keys: forge key OWNER --key-file FILE, then forge serve --key-file FILE"
            )
        self._open = AsyncExitStack()
        self._followings = Followings()
        self._stopping = asyncio.Event()
        self.url = ""

    async def __aenter__(self) -> Self:
        """Open the database, take up runs, and listen."""
        told = self._options
        where = Listening(
            host=told.host,
            port=told.port,
            request_timeout=told.request_timeout,
            stall_timeout=told.stall_timeout,
            grace=told.grace,
        )
        async with AsyncExitStack() as opening:
            listening = opening.enter_context(listening_socket(where))
            runs: Runs = await opening.enter_async_context(
                durable.worker(
                    self._workflows,
                    database=self._database,
                    backend=self._backend,
                    concurrency=self._concurrency,
                    slots=self._slots,
                    per_minute=self._per_minute,
                    answer_within=self._answer_within,
                    rhythm=self._rhythm,
                    drain=told.grace,
                    on_event=self._followings.heard,
                )
            )
            await opening.enter_async_context(self._followings.watching(runs))
            served = {workflow_of(one).name: one for one in self._workflows}
            metrics = Metrics()
            opening.callback(observe_with(metrics))
            app = App(served, runs, self._followings, told, metrics)
            self._server = await opening.enter_async_context(running(app, listening, where))
            self.url, self.runs = url_of(listening), runs
            self._open = opening.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop: readers leave, requests and then runs under way have a moment to end; the rest goes on elsewhere."""
        self._followings.closing.set()
        await self._open.__aexit__(kind, error, trace)

    def stop(self) -> None:
        """Take no more requests; said twice, those that are under way are cut off."""
        self._server.force_exit = self._stopping.is_set()
        self._server.should_exit = True
        self._followings.closing.set()
        self._stopping.set()

    async def stopped(self) -> None:
        """Wait until it was told to stop."""
        await self._stopping.wait()
