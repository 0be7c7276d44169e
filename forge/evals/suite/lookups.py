"""Looking things up: tools that only read, registers that say what they do not have, and who is asked to use them."""

from collections.abc import Mapping
from typing import TypeVar

from forge import ToolResolutionError, tool

_T = TypeVar("_T")

SYSTEM = "You are a careful assistant. Use the tools to do what the user asks."

read = tool(effect="read")
"""Makes a tool that only reads of a function."""


def found(register: Mapping[str, _T], key: str, what: str) -> _T:
    """The entry with this key, whatever its case. ToolResolutionError, which the model is told, if there is none."""
    for name, entry in register.items():
        if name.casefold() == key.strip().casefold():
            return entry
    raise ToolResolutionError(f"There is no {what} {key!r}.")
