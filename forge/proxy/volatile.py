"""Volatile lines: parts of the system prompt that agents change in each request, which defeats prompt caches. Pure.

Only lines of system messages that begin as below are changed.
"""

import re
from collections.abc import Callable

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from stages.message import System
from stages.repair.decoding import decode
from stages.wire.server.request import ServerRequest, changed_messages, fields, with_fields

_object = msgspec.json.Decoder(dict[str, Raw])
_objects = msgspec.json.Decoder(list[Raw])
_text = msgspec.json.Decoder(str)

_BILLING = re.compile(r"^x-anthropic-billing-header:[^\n]{0,500}\n{0,3}", re.MULTILINE)
"""Claude Code's line for billing by Anthropic's API."""

_NOW = re.compile(
    r"^[ \t*#<>-]{0,8}(?:(?:the )?(?:current |today's |local |system )?(?:date and time|date & time|datetime|date|time|"
    r"timestamp)|now|today)(?: ?\([^)\n]{0,40}\))?\*{0,2}(?: is\b| ?[:=>])[^\n]{0,200}$",
    re.MULTILINE | re.IGNORECASE,
)
_CLOCK = re.compile(
    r"(?:(?<=\d)T|,? at |, | )?(?<![\d:.])(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?"
    r"(?: ?[AaPp]\.?[Mm]\b\.?)?(?: ?(?:Z\b|(?:UTC|GMT)?[+-]\d{2}:?\d{2}\b|UTC\b|GMT\b))?"
)
"""A time of day, with the separator before it and the time zone after it."""


_LINES = 64
"""Maximum lines of one message that are changed."""


def _stable(text: str) -> str:
    """The text with only the date in lines that tell the time, and without Claude Code's billing line."""
    return _NOW.sub(lambda line: _CLOCK.sub("", line[0]), _BILLING.sub("", text, _LINES), _LINES)


def without_volatile_lines(request: ServerRequest, *, same: bool) -> ServerRequest:
    """The request with stable system messages; a list of texts becomes one text, because agents write either."""
    history = tuple(replace(m, text=_stable(m.text)) if isinstance(m, System) else m for m in request.history)
    stable = replace(request, history=request.history if history == request.history else history)
    return _in_body(stable) if same else stable


_SYSTEM = frozenset({b'"system"', b'"developer"'})


def _in_body(request: ServerRequest) -> ServerRequest:
    """The request with the client's body changed likewise; unchanged if nothing volatile is in it."""
    given = fields(request)
    join = "\n".join if request.protocol == "chat" else _paragraphs
    changes = changed_messages(request, lambda message: _stable_message(message, join))
    if "system" in given and (system := _content(given["system"], join)) != given["system"]:
        changes["system"] = system
    return with_fields(request, changes) if changes else request


_Join = Callable[[list[str]], str]
"""Joins the texts of a message, as the protocol's decoder does."""


def _paragraphs(texts: list[str]) -> str:
    return "\n\n".join(filter(None, texts))


def _stable_message(message: dict[str, Raw], join: _Join) -> dict[str, Raw]:
    if bytes(message.get("role", b"")) not in _SYSTEM or "content" not in message:
        return message
    return message | {"content": _content(message["content"], join)}


def _content(content: Raw, join: _Join) -> Raw:
    """A text, or the texts of a list joined; parts with cache marks stay separate."""
    given = bytes(content)
    if given.startswith(b'"'):
        text = decode(_text, given)
        return content if (now := _stable(text)) == text else Raw(msgspec.json.encode(now))
    if not given.startswith(b"["):
        return content
    parts = [decode(_object, bytes(part)) for part in decode(_objects, given)]
    if not all(bytes(part.get("type", b"")) == b'"text"' for part in parts):
        return content
    texts = [decode(_text, bytes(part["text"])) for part in parts]
    if all(part.keys() == {"type", "text"} for part in parts):
        return Raw(msgspec.json.encode(_stable(join(texts))))
    if all(_stable(text) == text for text in texts):
        return content
    stable = ((part, _stable(text)) for part, text in zip(parts, texts, strict=True))
    return Raw(msgspec.json.encode([part | {"text": text} for part, text in stable if text] or ""))
