"""Functions from users' code, looked at before they are called: async ones, and those of other arguments."""

import inspect
from collections.abc import Callable


def unfit_function(given: Callable[..., object], *arguments: str) -> str | None:
    """Why that cannot be called with these arguments for an answer at once, as a sentence; None where it may be."""
    name = getattr(given, "__name__", type(given).__name__)
    if is_async(given):
        return f"{name} is async; it is asked for its answer at once, so define it with `def`"
    try:
        inspect.signature(given).bind(*arguments)
    except ValueError:  # some functions written in C have no signature
        return None
    except TypeError as error:
        return f"{name} cannot be called as {name}({', '.join(arguments)}): {error}"
    return None


def is_async(given: Callable[..., object]) -> bool:
    """Whether calling it gives something to await instead of its answer."""
    kinds = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return any(kind(function) for kind in kinds for function in (given, type(given).__call__))
