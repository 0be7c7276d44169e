"""RunServer: a worker of durable runs and its HTTP API as an async context."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from forge import durable
from forge.connection import AnyBackend
from forge.door.access import is_loopback
from forge.door.listening import AppServer
from forge.durable import Rhythm, Runs, Served
from forge.durable.runs import workflow_of
from forge.durable.worker import all_of
from forge.errors import ForgeError
from forge.observation import observe_with
from forge.serve.app import App
from forge.serve.following import Followings
from forge.serve.options import ServeOptions
from forge.telemetry.prometheus import Metrics


class RunServer(AppServer):
    """Serves runs of workflows and agents: `async with RunServer(desk, database="runs.db", backend=…) as server: …`.

    `database`, `backend`, `concurrency`, `slots`, `per_minute`, `answer_within` and `rhythm` are those of
    `forge.durable.worker`: the server is a worker as well. `url` is its address. ForgeError for an address that other
    machines can reach without keys, a port in use, or a database or key file that cannot be read.
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
        self._workflows, self._options = all_of(workflows), options or ServeOptions()
        if not (is_loopback(self._options.host) or self._options.keys):
            raise ForgeError(
                f"{self._options.host} can be reached from other machines, and anybody there could start runs. Create "
                "keys: forge key OWNER --key-file FILE, then forge serve --key-file FILE"
            )
        super().__init__(self._options)
        self._followings = Followings(self._stopping)
        self._worker = partial(
            durable.worker,
            self._workflows,
            database=database,
            backend=backend,
            concurrency=concurrency,
            slots=slots,
            per_minute=per_minute,
            answer_within=answer_within,
            rhythm=rhythm,
            drain=self._options.grace,
            on_event=self._followings.heard,
        )

    async def _application(self, opening: AsyncExitStack) -> App:
        self.runs: Runs = await opening.enter_async_context(self._worker())
        await opening.enter_async_context(self._followings.watching(self.runs))
        served = {workflow_of(one).name: one for one in self._workflows}
        metrics = Metrics()
        opening.callback(observe_with(metrics))
        return App(served, self.runs, self._followings, self._options, metrics)
