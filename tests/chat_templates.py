"""Chat templates as llama.cpp renders them at /apply-template, for tests without one."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, NoReturn

import httpx
from jinja2 import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from forge.backends.template import Template, examined


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)


_ENVIRONMENT = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
_ENVIRONMENT.filters["tojson"] = lambda value, **_: json.dumps(value, ensure_ascii=False)
_ENVIRONMENT.globals |= {"raise_exception": _refuse, "strftime_now": lambda _: ""}


def applied(template: str) -> Callable[[dict[str, Any]], object]:
    """What the server answers to a request there; None for a refusal."""

    def answer(body: dict[str, Any]) -> object:
        try:
            for message in body["messages"]:
                for call in message.get("tool_calls", ()):
                    if "arguments | tojson" in template:
                        call["function"]["arguments"] = json.loads(call["function"]["arguments"])
            return {"prompt": _ENVIRONMENT.from_string(template).render(body, bos_token="", eos_token="")}
        except TemplateError:
            return None

    return answer


def seen(template: str) -> Template:
    """What such a server's template reveals."""

    def handle(request: httpx.Request) -> httpx.Response:
        said = applied(template)(json.loads(request.content))
        return httpx.Response(400 if said is None else 200, stream=httpx.ByteStream(json.dumps(said).encode()))

    async def go() -> Template:
        async with httpx.AsyncClient(transport=httpx.MockTransport(handle)) as client:
            return await examined(client, "http://127.0.0.1:8080", "m", template)

    return asyncio.run(go())
