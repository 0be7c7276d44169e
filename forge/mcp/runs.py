"""Runs that a client of ours asked for: it is told of their progress, and its cancellation ends them in order."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress

from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from returns.result import Result

from forge.outcome import Finished, Halted
from forge.runtime.watching import Watching
from stages import events

_UNTOLD = 256
"""Maximum pieces of progress that wait to be told; more are dropped."""

_GRACE = 10.0
"""Seconds that runs have to end in order once the client is gone."""

Run = Coroutine[object, object, Result[Finished, Halted]]
Begin = Callable[[Watching], Run]


class Runs:
    """The runs that go on."""

    def __init__(self) -> None:
        self._tasks = set[asyncio.Task[Result[Finished, Halted]]]()

    async def done(self, begin: Begin, session: ServerSession) -> Result[Finished, Halted]:
        """The end of a run. Cancelled, this returns at once, and the run is cancelled, which may take a while."""
        untold, cancel = asyncio.Queue[str](_UNTOLD), asyncio.Event()

        def watch(event: events.Event) -> None:
            with suppress(asyncio.QueueFull):
                if text := _progress(event):
                    untold.put_nowait(text)

        running = asyncio.ensure_future(begin({"observer": watch, "cancel": cancel}))
        self._tasks.add(running)
        running.add_done_callback(self._tasks.discard)
        telling = asyncio.create_task(_tell(untold, session))
        try:
            return await asyncio.shield(running)
        finally:
            cancel.set()
            telling.cancel()

    async def ended(self) -> None:
        """Wait for those that were cancelled; not for long."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_GRACE)


async def _tell(untold: asyncio.Queue[str], session: ServerSession) -> None:
    """Tell the client; how much there is to do nobody knows."""
    done = 0
    with suppress(MCPError):
        while True:
            text = await untold.get()
            done += 1
            await session.report_progress(done, None, text)


def _progress(event: events.Event) -> str:
    """What a client is told of the event; empty: nothing."""
    match event:
        case events.TurnStarted(turn=turn):
            return f"asks the model, {turn}"
        case events.CallsAccepted(calls=calls):
            return f"runs {', '.join(call.name for call in calls)}"
        case events.ToolProgressed(name=name, text=text):
            return f"{name}: {text}"
        case _:
            return ""
