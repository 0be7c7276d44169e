"""Names of sessions and spaces, checked before a store sees them."""

from forge.errors import DefinitionError

_LONGEST = 200


def checked_name(name: str, what: str) -> str:
    """The name, if it is printable text of 1 to 200 characters; DefinitionError, in words, if it is not.

    A name is shown in terminals and lists, so it holds no control characters. Everything else is data to a store:
    quotes, slashes and dots mean nothing.
    """
    if not isinstance(name, str):
        raise DefinitionError((f"the name of {what} is {name!r:.200}; it must be a string",))
    if not 0 < len(name) <= _LONGEST:
        raise DefinitionError((f"the name of {what} has {len(name)} characters; it must have 1 to {_LONGEST}",))
    if strange := [one for one in name if not (one.isprintable() or one in _JOINERS)]:
        raise DefinitionError(
            (f"the name of {what}, {name!a}, has the character {strange[0]!a}, which cannot be printed",)
        )
    if not name.strip():
        raise DefinitionError((f"the name of {what} is blank",))
    return name


_JOINERS = "\u200d\ufe0f"
"""Characters inside emoji, which Python does not call printable."""
