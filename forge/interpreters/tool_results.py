"""What a tool returned or raised, as a value: rendered safely and truncated."""

import msgspec
from msgspec import Raw

from forge.errors import ToolFailed, ToolResolutionError
from stages import nudges
from stages.effect import Failed, HandOff, NeedsInput, Said, Succeeded, Unresolved
from stages.repair.decoding import nested, sound
from stages.tool import RESULT_LIMIT

_DEEPEST = 100
"""Levels of nesting of a result: fewer than are decoded at all, for journals hold it within some of their own."""


class UnshownResultError(TypeError):
    """A tool returned what is neither text nor JSON, and has no words of its own."""


def failed(call_id: str, error: Exception, limit: int = RESULT_LIMIT) -> Unresolved | Failed:
    """What the model is told of a tool that raised, at most `limit` characters, and whether it counts."""
    words = words_of(error, limit)
    match error:
        case ToolResolutionError():
            return Unresolved(call_id=call_id, message=words)
        case ToolFailed():
            return Failed(call_id=call_id, error="ToolFailed", message=words, counted=False)
        case _:
            return Failed(call_id=call_id, error=type(error).__name__, message=words)


def succeeded(call_id: str, value: object, limit: int = RESULT_LIMIT, *, tool: str = "the tool") -> Succeeded:
    """What the model is shown of what a tool returned, at most `limit` characters, and all of it as JSON.

    Raises UnshownResultError for what would be shown as the name and the address of an object.
    """
    # The call's own arguments are in the history: what ended the run is not said twice.
    ends = value if isinstance(value, NeedsInput | HandOff | Said) else None
    try:
        encoded = _json(value)
    except UnshownResultError as error:
        raise UnshownResultError(f"{tool} ran, but {error}") from None
    if ends is not None:
        return Succeeded(call_id=call_id, text=nudges.ended(ends), value=encoded, ends=ends)
    # Plain text is what it says; any other has to be read back, for not all of it may have been JSON.
    text = value if type(value) is str and value.isascii() else _text(encoded)
    return Succeeded(call_id=call_id, text=_cut(text, limit), value=encoded, ends=ends)


def progress_text(value: object, limit: int) -> str:
    """The value as an observer is told it, at most `limit` characters."""
    try:
        return _cut(_text(_json(value)), limit)
    # How a value shows itself is a user's code; what fails there must not end the tool.
    except Exception:  # noqa: BLE001
        return f"(a {type(value).__name__} that cannot be shown)"


def words_of(error: BaseException, limit: int) -> str:
    """What the exception says, if it can say it."""
    try:
        return _cut(sound(str(error)), limit)
    # An exception's own __str__ is a user's code too.
    except Exception:  # noqa: BLE001
        return "(its message cannot be shown)"


def _text(value: Raw) -> str:
    """A string as it is, anything else as JSON."""
    text = bytes(value).decode()
    return msgspec.json.decode(value, type=str) if text.startswith('"') else text


def _json(value: object) -> Raw:
    """The value as JSON; what JSON cannot hold, or cannot be read back from it, becomes a string."""
    try:
        encoded = msgspec.json.encode(value, enc_hook=_plain)
    except UnshownResultError:
        raise
    except (TypeError, ValueError, RecursionError):
        return Raw(msgspec.json.encode(sound(str(value))))
    return Raw(msgspec.json.encode(sound(str(value))) if nested(encoded, _DEEPEST) else encoded)


def _plain(value: object) -> object:
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    kind = type(value)
    if kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__:
        name = f"{kind.__module__}.{kind.__qualname__}"
        raise UnshownResultError(
            f"its result has a value of the type {name}, which is neither text nor JSON and has no __str__ of its own; "
            f"return a str, a number, a dict, a list or a dataclass, or give {kind.__name__} a __str__"
        )
    return str(value)


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[Cut — {len(text) - limit} chars more]"
