"""Saved states: which of them this forge can go on from."""

from msgspec.structs import replace

from stages.effect import Send
from stages.state import SCHEMA_VERSION, Awaiting, Edited, Executed, State, Vetted


def current(state: State) -> State:
    """The state in today's version. ValueError, in words, for one that this forge cannot go on from.

    Version 2 had the calls under way in another form: such a state is read unless it has some.
    """
    if state.version == SCHEMA_VERSION:
        return state
    if state.version != 2:
        raise ValueError(f"the state is of version {state.version}, and this forge reads version {SCHEMA_VERSION}")
    match state.phase:
        case Vetted() | Edited() | Executed():
            raise ValueError(_UNDER_WAY)
        case Awaiting(effect=effect) if not isinstance(effect, Send):
            raise ValueError(_UNDER_WAY)
        case _:
            return replace(state, version=SCHEMA_VERSION)


_UNDER_WAY = (
    "the state is of version 2 and has tool calls under way, which this forge does not read; go on from it with the "
    f"forge that saved it until they are done (version {SCHEMA_VERSION} is read here)"
)
