"""The official clients on faults, schemas and reminders; every layer of theirs is in test_layers."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anthropic
import openai
import pytest
from pydantic import BaseModel

from tests.chat_templates import applied
from tests.proxy.test_proxy import ASK, LOOK, Behind, behind
from tests.scripted_model import Line, completion, whole

TOOL: Any = LOOK
SCHEMA = LOOK["function"]["parameters"]
THEIRS: Any = {"name": "look", "description": "Look.", "input_schema": SCHEMA}
RESPONSES: Any = {"type": "function", "name": "look", "parameters": SCHEMA, "strict": False}
MESSAGES: Any = [ASK]


NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Whom the clients trust: to read all authorities takes each longer than a whole test."""


class Clients(Behind):
    """Both official clients of that proxy."""

    def __init__(self, there: Behind) -> None:
        super().__init__(there.model, there.session, there.url)
        own, theirs = openai.DefaultAsyncHttpxClient(verify=NOBODY), anthropic.DefaultAsyncHttpxClient(verify=NOBODY)
        self.own = openai.AsyncOpenAI(base_url=f"{there.url}/v1", api_key="none", max_retries=0, http_client=own)
        self.theirs = anthropic.AsyncAnthropic(base_url=there.url, api_key="none", max_retries=0, http_client=theirs)


@asynccontextmanager
async def clients(*script: Line, **options: Any) -> AsyncIterator[Clients]:
    async with behind(*script, **options) as there:
        made = Clients(there)
        async with made.own, made.theirs:
            yield made


class Place(BaseModel):
    name: str
    number: int


@pytest.mark.parametrize("profile", ["vllm", "openai-compatible"])
async def test_structured_output_is_asked_of_the_backend_and_parsed(profile: str) -> None:
    line = whole(completion('{"name": "door", "number": 4}'))
    async with clients(line, line, line, profile=profile) as there:
        parsed = await there.own.chat.completions.parse(model="m", messages=MESSAGES, response_format=Place)
        assert parsed.choices[0].message.parsed == Place(name="door", number=4)
        answer = await there.own.responses.parse(model="m", input="Where?", text_format=Place)
        assert answer.output_parsed == Place(name="door", number=4)
        message = await there.theirs.messages.parse(model="m", max_tokens=9, messages=MESSAGES, output_format=Place)
        assert message.parsed_output == Place(name="door", number=4)
        for number in range(3):
            assert '"number"' in there.model.asked[number].decode()
        # The strict mode has rules of its own, and is asked for by who writes its schemas.
        assert [b'"strict":true' in body for body in there.model.asked] == [True, True, False]


TURNS = """
{%- for m in messages %}
{%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{%- endif %}
{{ m.content }}{%- endfor %}"""


@pytest.mark.parametrize("alternating", [False, True])
async def test_a_reminder_in_the_middle_stays_there_as_the_users_word(alternating: bool) -> None:
    """Claude Code puts system messages between the others; many templates take one at the beginning alone."""
    history: Any = [ASK, {"role": "assistant", "content": "Where?"}, {"role": "system", "content": "Be brief."}, ASK]
    refusal = whole({"error": {"message": "Conversation roles must alternate", "code": 500}}, 500)
    props = {
        "default_generation_settings": {"n_ctx": 8192},
        "chat_template_caps": {"supports_tools": True, "supports_tool_calls": True},
        "chat_template": TURNS if alternating else "",
    }
    pages = {"props": props, "apply-template": applied(TURNS)}
    async with clients(whole(completion("A.")), refusal, whole(completion("B.")), pages=pages) as there:
        await there.theirs.messages.create(model="m", max_tokens=9, messages=history)
        await there.own.chat.completions.create(model="m", messages=history)
        for number in (0, 2):
            sent = there.model.body(number)["messages"]
            assert [one["role"] for one in sent] == ["user", "assistant", *["user"] * (1 if alternating else 2)]
            assert sent[2]["content"].startswith("Be brief.")
