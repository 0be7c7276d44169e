"""A model's chat template, rendered with synthetic messages: what its calls look like, found without knowing it."""

from collections.abc import Mapping
from typing import NoReturn

import msgspec
from jinja2 import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from stages.rescue.template import KEY, NAME, TEXT, VALUE, Markers, derive

SIZE = 200_000
"""Characters of a template that are looked at; a longer one is left alone."""

ASKED: Mapping[str, object] = {"role": "user", "content": "Go."}


def markers(chat_template: str) -> Markers | None:
    """The markers of the template's calls; None for one without tools, or one that cannot be rendered."""
    if NAME in chat_template or len(chat_template) > SIZE:
        return None
    # Templates disagree on whether arguments are an object or JSON text; a call must show its key either way.
    for arguments in ({KEY: VALUE}, msgspec.json.encode({KEY: VALUE}).decode()):
        call = {"id": "call_000000001", "type": "function", "function": {"name": NAME, "arguments": arguments}}
        with_call = _rendered(chat_template, ASKED, {"role": "assistant", "content": "", "tool_calls": [call]})
        with_text = _rendered(chat_template, ASKED, {"role": "assistant", "content": TEXT})
        if with_call and with_text and (found := derive(with_call, with_text)):
            return found
    return None


def alternates(chat_template: str) -> bool:
    """Whether the template refuses two messages of the user in a row, or one right after a tool's result."""
    if len(chat_template) > SIZE or _rendered(chat_template, ASKED) is None:
        return False
    if _rendered(chat_template, ASKED, ASKED) is None:
        return True
    for arguments in ({KEY: VALUE}, msgspec.json.encode({KEY: VALUE}).decode()):
        call = {"id": "call00001", "type": "function", "function": {"name": NAME, "arguments": arguments}}
        reply = {"role": "assistant", "content": "", "tool_calls": [call]}
        result = {"role": "tool", "name": NAME, "tool_call_id": "call00001", "content": TEXT}
        if _rendered(chat_template, ASKED, reply, result) is not None:
            return _rendered(chat_template, ASKED, reply, result, ASKED) is None
    return False


def _rendered(chat_template: str, *messages: Mapping[str, object]) -> str | None:
    """The conversation as the template writes it. Templates come from a server: they run in jinja2's sandbox."""
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.filters["tojson"] = lambda value, **_: msgspec.json.format(
        msgspec.json.encode(value), indent=0
    ).decode()
    parameters = {"type": "object", "properties": {}}
    tool = {"type": "function", "function": {"name": "other", "description": "", "parameters": parameters}}
    try:
        return environment.from_string(chat_template).render(
            messages=list(messages),
            tools=[tool],
            add_generation_prompt=False,
            bos_token="",
            eos_token="",
            raise_exception=_refuse,
            strftime_now=lambda _: "",
        )
    # A template is a program of somebody else's; whatever goes wrong in it, it has told us nothing.
    except (TemplateError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError):
        return None


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)
