"""Begun look-ups: of several values that were given together, those that a tool has not been called with yet."""

from collections.abc import Iterator

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from stages.grounding.matching import leaves, named_values
from stages.message import Kind, Tool, User
from stages.policy.untried_values import only_text_argument, values_to_try
from stages.state import State
from stages.tool import ToolSpec

_READ = 256
"""Messages above which a history is not read for them: a turn must not take longer, the longer a run is."""

_LONGEST = 80
"""Maximum characters of a value."""


def begun_lookups(tool: ToolSpec, state: State) -> tuple[str, ...]:
    """Values beside one that the tool has succeeded with, unused by it and by calls that succeeded, in their order.

    Beside is under the same name in the same result, or alike in the same message of the user's: `B-18` beside `A-17`.
    Empty for a tool that does not only read, or takes more than one text, and in a long history.
    """
    argument = only_text_argument(tool) if tool.effect == "read" else None
    if argument is None or len(state.history) > _READ:
        return ()
    ledger = state.ledger
    given = (_argument(success.arguments, argument) for success in ledger.successes if success.name == tool.name)
    good = {value for value in given if value}
    # A write that was refused for a value that nobody has looked at does not make it one that was looked at.
    vain = (attempt.arguments for attempt in ledger.attempts if attempt.name == tool.name)
    made = [*(success.arguments for success in ledger.successes), *vain]
    used = {value for arguments in made for value in leaves(arguments)}
    found = _beside(tool, state, good) if good else ()
    return tuple(dict.fromkeys(value for value in found if value not in used))


def _beside(tool: ToolSpec, state: State, good: set[str]) -> Iterator[str]:
    for message in state.history:
        match message:
            case Tool(kind=Kind.TOOL_RESULT, status="succeeded", text=text):
                yield from _members_beside(text, good)
            case User(kind=Kind.USER_INPUT, text=text) if any(value in text for value in good):
                yield from reversed(values_to_try(tool, replace(state, history=(message,), cleared=())))
            case _:
                pass


def _members_beside(text: str, good: set[str]) -> Iterator[str]:
    members: dict[str, list[str]] = {}
    for name, value in named_values(text):
        if isinstance(value, str) and 0 < len(value) <= _LONGEST:
            members.setdefault(name, []).append(value)
    for values in members.values():
        if not good.isdisjoint(values):
            yield from reversed(values)  # as they are written: they are found from the end


def _argument(arguments: str, name: str) -> str | None:
    value = msgspec.json.decode(msgspec.json.decode(arguments, type=dict[str, Raw]).get(name, Raw(b"null")))
    return value if isinstance(value, str) else None
