"""One event loop for the life of a worker, so that connections stay open between runs."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")

_loop = asyncio.new_event_loop()


def wait(awaited: Coroutine[object, object, T]) -> T:
    """The result of the coroutine."""
    return _loop.run_until_complete(awaited)
