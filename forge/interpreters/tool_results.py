"""What a tool returned or raised, as a value: rendered safely and truncated."""

import msgspec
from msgspec import Raw

from forge.errors import ToolFailed, ToolResolutionError
from stages.effect import Failed, HandOff, NeedsInput, Said, Succeeded, Unresolved
from stages.nudges import outcomes
from stages.repair.decoding import nested, sound
from stages.tool import RESULT_LIMIT

_DEEPEST = 100
"""Levels of nesting of a result: fewer than are decoded at all, for journals hold it within some of their own."""


def failed(call_id: str, error: Exception, limit: int = RESULT_LIMIT) -> Unresolved | Failed:
    """What the model is told of a tool that raised, at most `limit` characters, and whether it counts."""
    words = _words(error, limit)
    match error:
        case ToolResolutionError():
            return Unresolved(call_id=call_id, message=words)
        case ToolFailed():
            return Failed(call_id=call_id, error="ToolFailed", message=words, counted=False)
        case _:
            return Failed(call_id=call_id, error=type(error).__name__, message=words)


def succeeded(call_id: str, value: object, limit: int = RESULT_LIMIT) -> Succeeded:
    """What the model is shown of what a tool returned, at most `limit` characters, and all of it as JSON."""
    # The call's own arguments are in the history: what ended the run is not said twice.
    ends = value if isinstance(value, NeedsInput | HandOff | Said) else None
    encoded = _json(value)
    if ends is not None:
        return Succeeded(call_id=call_id, text=outcomes.ended(ends), value=encoded, ends=ends)
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


def _words(error: Exception, limit: int) -> str:
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
    except (TypeError, ValueError, RecursionError):
        return Raw(msgspec.json.encode(sound(str(value))))
    return Raw(msgspec.json.encode(sound(str(value))) if nested(encoded, _DEEPEST) else encoded)


def _plain(value: object) -> object:
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) else str(value)


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[Cut — {len(text) - limit} chars more]"
