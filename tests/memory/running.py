"""Async tests without a plugin."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import ParamSpec

_P = ParamSpec("_P")


def asynchronous(test: Callable[_P, Coroutine[object, object, None]]) -> Callable[_P, None]:
    """The coroutine function as a plain test, with a loop of its own."""

    @wraps(test)
    def tested(*args: _P.args, **kwargs: _P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return tested
