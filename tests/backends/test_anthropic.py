"""Anthropic's API through its SDK: runs, thinking, counts, faults; against a strict server process.

The shapes are those of the API's documentation; nothing was recorded from the API itself.
"""

import asyncio
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator

import pytest
from anthropic import APIRequest, AsyncAnthropic, AsyncAPIResponse, AsyncCallNext

from forge import run_sync
from forge.backends import Anthropic, Server, named
from forge.errors import ForgeError
from stages.effect import Reply
from stages.halt import BackendFailed
from stages.message import Assistant, System, Tool, ToolCall, User
from stages.retry import Backoff
from stages.wire.anthropic import messages as anthropic
from stages.wire.openai import chat as openai
from stages.wire.sampling import Sampling
from tests.flows import Desk, connected
from tests.foreign import serving
from tests.misbehaving import misbehaving

THINKS = Sampling(max_tokens=4096, extra={"thinking": {"type": "enabled", "budget_tokens": 2048}})
DONE = ["look a", "write a", "finish"]
BLOCKS = '[{"type":"thinking","thinking":"Hm.","signature":"sig0"},{"type":"redacted_thinking","data":"xyz"}]'
ONCE = Backoff(attempts=1)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving() as address:
        yield f"{address}/anthropic"


@pytest.mark.parametrize("sampling", [Sampling(), THINKS])
def test_the_workflow_passes_with_and_without_thinking(server: str, sampling: Sampling) -> None:
    """The server demands each signature back, with the call that it came with."""
    desk = Desk()
    result = run_sync(
        desk.workflow, "Go.", backend=Anthropic("m", api_key="the-key", base_url=server, sampling=sampling)
    )
    assert result.unwrap().value == "7"
    assert desk.log == DONE


def test_thinking_goes_back_over_plain_http_too(server: str) -> None:
    desk = Desk()
    backend = Server(f"{server}/v1", profile="anthropic", model="m", api_key="the-key", sampling=THINKS)
    assert run_sync(desk.workflow, "Go.", backend=backend).unwrap().value == "7"


def test_the_context_is_what_the_api_says(server: str) -> None:
    assert connected(Anthropic("m", api_key="the-key", base_url=server)).setup.context_tokens == 1_000_000
    assert connected(Anthropic("other", api_key="the-key", base_url=server)).setup.context_tokens == 200_000
    assert connected(Anthropic("m", api_key="the-key", base_url=server, context_tokens=5)).setup.context_tokens == 5


def test_the_first_prompt_is_counted_by_the_api(server: str) -> None:
    async def count() -> int | None:
        async with Anthropic("m", api_key="the-key", base_url=server).connect() as connection:
            assert connection.count is not None
            return await connection.count(b'{"max_tokens":5,"cache_control":{"type":"ephemeral"},"messages":[]}')

    assert asyncio.run(count()) == 77


def test_a_refusal_keeps_its_status_and_hides_the_key(server: str) -> None:
    backend = Anthropic("m", api_key="wrong-secret", base_url=server, context_tokens=5000)
    halted = run_sync(Desk().workflow, "Go.", backend=backend).failure()
    assert isinstance(halted.halt, BackendFailed)
    assert (halted.halt.fault.status, halted.halt.attempts) == (401, 1)
    assert "authentication_error" in halted.halt.fault.body
    assert "wrong-secret" not in repr(halted)


@pytest.mark.parametrize(
    ("how", "kind", "attempts"),
    [("wrong", "status", 1), ("reset", "interrupted", 3), ("html", "malformed", 2), ("huge", "too_large", 1)],
)
def test_faults_of_the_transport_are_forges_own(how: str, kind: str, attempts: int) -> None:
    """The SDK's retries are off: they would multiply."""
    with misbehaving() as strange:
        backend = Anthropic(
            "m",
            api_key="the-key",
            base_url=f"{strange}/{how}",
            context_tokens=5000,
            retry=Backoff(attempts=3, first=0.001),
        )
        halted = run_sync(Desk().workflow, "Go.", backend=backend).failure()
    assert isinstance(halted.halt, BackendFailed)
    assert (halted.halt.fault.kind, halted.halt.attempts) == (kind, attempts)


@pytest.mark.parametrize(("how", "kind"), [("refusal", "too_large"), ("charge", "status")])
def test_an_error_body_without_end_is_read_to_a_bound_and_never_unpacked(how: str, kind: str) -> None:
    """The SDK alone reads all of it: 130 MB of the one, a gigabyte of the other."""
    tracemalloc.start()
    with misbehaving() as strange:
        backend = Anthropic("m", api_key="the-key", base_url=f"{strange}/{how}", context_tokens=5000, retry=ONCE)
        halted = run_sync(Desk().workflow, "Go.", backend=backend).failure()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(halted.halt, BackendFailed)
    assert halted.halt.fault.kind == kind
    assert peak < 100_000_000


def test_middleware_of_the_users_own_sees_every_response(server: str) -> None:
    seen: list[int] = []

    async def watch(request: APIRequest, call_next: AsyncCallNext) -> AsyncAPIResponse[object]:
        response: AsyncAPIResponse[object] = await call_next(request)
        seen.append(response.status_code)
        return response

    for key in ("the-key", "wrong"):
        client = AsyncAnthropic(api_key=key, base_url=server, middleware=[watch])
        run_sync(Desk().workflow, "Go.", backend=Anthropic("m", client=client, context_tokens=5000))
        asyncio.run(client.close())
    assert {*seen} == {200, 401}


def test_nobody_there_is_unreachable() -> None:
    backend = Anthropic("m", api_key="the-key", base_url="http://127.0.0.1:1")
    halted = run_sync(Desk().workflow, "Go.", backend=backend).failure()
    assert isinstance(halted.halt, BackendFailed)
    assert halted.halt.fault.kind == "unreachable"


def test_a_name_on_the_command_line_is_the_sdk_and_an_address_is_not() -> None:
    assert isinstance(named("anthropic:claude-x"), Anthropic)
    assert isinstance(named("anthropic:http://127.0.0.1:1", "m"), Server)
    with pytest.raises(ForgeError, match="anthropic:MODEL"):
        named("anthropic")
    with pytest.raises(ForgeError, match="native alone"):
        named("anthropic:m", mode="prompted")
    with pytest.raises(ForgeError, match="anthropic has no headers"):
        named("anthropic:m", headers={"a": "b"})


def test_the_sdk_is_imported_on_first_use_alone() -> None:
    code = "import sys, forge, forge.backends; assert 'anthropic' not in sys.modules and 'httpx2' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_thinking_is_sealed_by_the_codec_and_opened_by_it_alone() -> None:
    call = ToolCall(id="call_000000001", name="look", arguments="{}")
    uses = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
    body = json.dumps({"content": [*json.loads(BLOCKS), uses], "stop_reason": "tool_use"}, separators=(",", ":"))
    reply = anthropic.decode_reply(body.encode())
    assert isinstance(reply, Reply)
    assert (reply.sealed, reply.reasoning) == (BLOCKS, "Hm.")
    history = (
        System(text="s"),
        User(text="u"),
        Assistant(calls=(call,), sealed=reply.sealed),
        Tool(call_id=call.id, name="look", text="7"),
        Assistant(text="from elsewhere", sealed="{no JSON"),
    )
    sent = [json.loads(bytes(m)) for m in openai.encode_messages(anthropic.encode_history(history))]
    assert sent[1]["content"][:2] == json.loads(BLOCKS)
    assert sent[1]["content"][2]["type"] == "tool_use"
    assert sent[3]["content"] == [{"type": "text", "text": "from elsewhere"}]
