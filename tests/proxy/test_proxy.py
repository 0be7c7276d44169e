"""The proxy between a real client and a scripted server: what passes as it came, what is judged, what is told."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import aiohttp
import msgspec
import pytest

from forge.backends import named
from forge.door.asgi import AsgiMessage, HttpRequest, Scope
from forge.errors import ForgeError
from forge.proxy import ProxyOptions, ProxyServer
from forge.proxy.app import NotedOutlet, ProxyApp, Route
from forge.proxy.info import count
from forge.proxy.policy_file import policy_from_toml
from forge.telemetry.prometheus import Metrics
from forge.testing import Scripted
from stages.options import OptionError
from tests.scripted_model import Line, ScriptedModel, chunk, completion, hanging, streamed, whole

LOOK: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look at a place.",
        "parameters": {"type": "object", "properties": {"at": {"type": "integer"}}, "required": ["at"]},
    },
}
ASK = {"role": "user", "content": "Look at place 4."}


class Behind:
    """A client, and the server behind the proxy."""

    def __init__(self, model: ScriptedModel, session: aiohttp.ClientSession, url: str) -> None:
        self.model, self.session, self.url = model, session, url

    async def post(self, path: str, body: object, **headers: str) -> tuple[int, bytes, dict[str, str]]:
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.post(self.url + path, data=io.BytesIO(data), headers=told) as answer:
            return answer.status, await answer.read(), {name.lower(): value for name, value in answer.headers.items()}

    async def get(self, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes, dict[str, str]]:
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.request(method, self.url + path, headers=told) as answer:
            return answer.status, await answer.read(), {name.lower(): value for name, value in answer.headers.items()}


@asynccontextmanager
async def behind(
    *script: Line, model: str = "", profile: str | None = None, slots: int = 8, pages: Any = None, **options: Any
) -> AsyncIterator[Behind]:
    async with (
        ScriptedModel(*script, slots=slots, **(pages or {})) as server,
        ProxyServer(named(server.url, model, profile=profile), ProxyOptions(port=0, **options)) as proxy,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
    ):
        yield Behind(server, session, proxy.url)


def asked(**more: object) -> dict[str, object]:
    return {"model": "tiny", "messages": [ASK], "tools": [LOOK], **more}


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "look"}}])
async def test_a_demanded_call_is_held_to_its_schema_from_the_first_correction_on(choice: object) -> None:
    """llama.cpp takes the demand and does not enforce it: the call comes as text, with padding to the limit."""
    padded = completion('{"name": "look", "arguments": {"at"' + " " * 40, finish="length")
    other = LOOK | {"function": LOOK["function"] | {"name": "other"}}
    script = (whole(padded), whole(completion('{"tool":"look","args":{"at":4}}')))
    async with behind(*script, profile="llama-server") as there:
        body = asked(tool_choice=choice) | {"tools": [LOOK, other]}
        status, answer, headers = await there.post("/v1/chat/completions", body)
        assert (status, headers["x-forge-outcome"]) == (200, "retried")
        (call,) = json.loads(answer)["choices"][0]["message"]["tool_calls"]
        assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("look", {"at": 4})
        first, second = (there.model.body(number) for number in (0, 1))
        assert "response_format" not in first
        allowed = json.dumps(second["response_format"])
        assert ('"other"' in allowed, "answer" in allowed) == (choice == "required", False)


async def test_a_clean_reply_passes_byte_for_byte_in_both_directions() -> None:
    """Blanks, fields that forge does not know, the order of fields: all stay."""
    body = b'{ "model":"tiny", "odd" : [1,  2], "messages":[{"role":"user","content":"hi"}],"tools":%b }'
    sent = body % msgspec.json.encode([LOOK])
    call = b'{"id":"x1", "type":"function","function":{"name":"look","arguments":"{\\"at\\":  4}"}}'
    message = b'{"role":"assistant","tool_calls":[%b]}' % call
    choice = b' {"index":0,"finish_reason":"tool_calls","message": %b}' % message
    frame = b'{ "choices": [%b], "id":"a","object":"chat.completion","model":"m","created":7, "timings": {} }'
    reply = frame % choice
    async with behind(whole(reply)) as there:
        status, got, headers = await there.post("/v1/chat/completions", sent)
        assert (status, got, there.model.asked) == (200, reply, [sent])
        assert (headers["x-forge-outcome"], headers["x-forge-attempts"]) == ("clean", "1")


@pytest.mark.parametrize(
    ("reply", "arguments"),
    [
        (completion('<tool_call>{"name": "look", "arguments": {"at": 4}}</tool_call>'), {"at": 4}),
        (completion(None, ("look", '{"at": "4"}')), {"at": 4}),
        (completion(None, ("look", '{"at": 4,}')), {"at": 4}),
    ],
    ids=["a call in the text", "a number as text", "a comma too many"],
)
async def test_a_call_that_can_be_repaired_is_repaired_without_another_request(reply: Any, arguments: Any) -> None:
    async with behind(whole(reply)) as there:
        status, got, headers = await there.post("/v1/chat/completions", asked())
        choice = msgspec.json.decode(got)["choices"][0]
        (call,) = choice["message"]["tool_calls"]
        assert (status, choice["finish_reason"], call["function"]["name"]) == (200, "tool_calls", "look")
        assert msgspec.json.decode(call["function"]["arguments"]) == arguments
        assert call["id"]
        assert headers["x-forge-outcome"] == "repaired"


async def test_what_is_wrong_is_asked_for_again_and_the_client_never_sees_it() -> None:
    bad = completion("Hm.", ("look", '{"at": "the door"}'))
    good = completion(None, ("look", '{"at": 4}'))
    async with behind(whole(bad), whole(good)) as there:
        status, got, headers = await there.post("/v1/chat/completions", asked(odd=1))
        assert (status, msgspec.json.decode(got)) == (200, good)
        assert (headers["x-forge-outcome"], headers["x-forge-attempts"]) == ("retried", "2")
        first, second = there.model.body(0), there.model.body(1)
        assert {**second, "messages": second["messages"][:1]} == first
        spoken, answer = second["messages"][1:]
        assert (spoken["role"], spoken["content"], answer["role"]) == ("assistant", "Hm.", "tool")
        assert answer["tool_call_id"] == spoken["tool_calls"][0]["id"]
        assert "integer" in answer["content"]


LIST: dict[str, Any] = {"type": "function", "function": {"name": "list", "parameters": {"type": "object"}}}
PATCH: dict[str, Any] = {"type": "custom", "custom": {"name": "patch"}}
BOTH = {"tool_choice": {"type": "function", "function": {"name": "look"}}}


@pytest.mark.parametrize(
    ("made", "more", "going"),
    [
        ([("look", '{"at":"the door"}')], {}, [("look", '{"at":"the door"}')]),
        ([("look", "{'at': 'the door',}")], {}, [("look", '{"at":"the door"}')]),
        ([("look", '{"oops": ')], {}, [("look", "{}")]),
        ([("look", "[4]")], {}, [("look", "{}")]),
        ([("fly", '{"to":1}')], {}, [("fly", '{"to":1}')]),
        ([("look", '{"at":4}'), ("look", '{"at":')], {}, [("look", '{"at":4}'), ("look", "{}")]),
        ([("look", '{"at":"a"}'), ("fly", "{}")], {"parallel_tool_calls": False}, [("look", '{"at":"a"}')]),
        ([("list", '{"oops": ')], {}, None),
        ([("patch", '{"oops": ')], {}, None),
        ([("look", '{"at":4}'), ("list", '{"oops": ')], {}, None),
        ([("list", "{}")], BOTH, None),
        ([("no name", "{}")], {}, None),
    ],
    ids=[
        "arguments that do not fit",
        "after a repair",
        "no JSON",
        "no object",
        "no such tool",
        "beside a call that is right",
        "one alone",
        "a tool that takes nothing",
        "a custom tool",
        "one that must not",
        "a tool that the client excluded",
        "a name that is none",
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_when_every_attempt_fails_the_clients_tools_say_what_is_wrong_unless_a_call_could_run(
    made: list[tuple[str, str]], more: dict[str, object], going: list[tuple[str, str]] | None, stream: bool
) -> None:
    """An agent takes words for the end of its work. Words are left to calls that could run and must not."""
    bad = whole(completion("Let me see.", *made))
    async with behind(bad, bad, max_retries=1) as there:
        body = asked(tools=[LOOK, LIST, PATCH], stream=stream, **more)
        status, got, headers = await there.post("/v1/chat/completions", body)
        message, finish = joined(got) if stream else told(got)
        calls = [(c["function"]["name"], c["function"]["arguments"]) for c in message.get("tool_calls", [])]
        assert (status, len(there.model.asked)) == (200, 2)
        assert (calls, finish) == (going or [], "tool_calls" if going else "stop")
        assert message["content"].startswith("Let me see.")
        assert ("[called" in message["content"]) == (going is None)
        if not stream:
            assert (headers["x-forge-outcome"], headers["x-forge-attempts"]) == ("exhausted", "2")


@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_that_the_policy_hides_is_not_handed_on_either(stream: bool) -> None:
    """The client has it, and would run it."""
    bad = whole(completion("Let me see.", ("list", "{}")))
    async with behind(bad, bad, max_retries=1, policy=policy_from_toml('hide_tools = ["list"]')) as there:
        _, got, _ = await there.post("/v1/chat/completions", asked(tools=[LOOK, LIST], stream=stream))
        message, finish = joined(got) if stream else told(got)
        assert (message.get("tool_calls") or [], finish) == ([], "stop")
        assert message["content"] == "Let me see.\n[called list: {}]"


def told(body: bytes) -> tuple[Any, str]:
    """The message of a whole reply, and why it ends."""
    choice = msgspec.json.decode(body)["choices"][0]
    return choice["message"], choice["finish_reason"]


def joined(stream: bytes) -> tuple[Any, str]:
    """The message that a stream adds up to, of calls that come in one piece, and why it ends."""
    message: dict[str, Any] = {"content": "", "tool_calls": []}
    finish = ""
    for event in stream.split(b"\n\n")[:-2]:
        for choice in msgspec.json.decode(event.removeprefix(b"data: "))["choices"]:
            message["content"] += choice["delta"].get("content") or ""
            finish = choice["finish_reason"] or finish
            for call in choice["delta"].get("tool_calls", ()):
                if call["index"] == len(message["tool_calls"]):
                    message["tool_calls"].append(call)
                else:
                    message["tool_calls"][-1]["function"]["arguments"] += call["function"]["arguments"]
    return message, finish


async def test_what_a_limit_of_tokens_has_cut_off_goes_on_in_words() -> None:
    cut = whole(completion("Let me see.", ("look", '{"at":'), finish="length"))
    async with behind(cut, cut, max_retries=1) as there:
        _, got, headers = await there.post("/v1/chat/completions", asked())
        message, finish = told(got)
        assert (message["content"], finish) == ('Let me see.\n[called look: {"at":]', "length")
        assert headers["x-forge-outcome"] == "exhausted"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_model_that_says_nothing_at_all_is_an_error_that_is_not_to_be_tried_again(stream: bool) -> None:
    nothing = whole(completion(""))
    async with behind(nothing, nothing, max_retries=1) as there:
        status, body, headers = await there.post("/v1/chat/completions", asked(stream=stream))
        assert (status, headers["x-should-retry"]) == (502, "false")
        assert b"no usable reply in 2 attempts" in body


@pytest.mark.parametrize(
    ("more", "posts"),
    [
        ({}, 1),
        ({"tool_choice": "none"}, 1),
        ({"tool_choice": "required"}, 2),
        ({"tool_choice": {"type": "function", "function": {"name": "look"}}}, 2),
    ],
)
async def test_a_text_is_an_answer_unless_a_call_is_demanded(more: dict[str, object], posts: int) -> None:
    script = (whole(completion("It is a tree.")), whole(completion(None, ("look", '{"at":4}'))))
    async with behind(*script) as there:
        status, _, _ = await there.post("/v1/chat/completions", asked(**more))
        assert (status, len(there.model.asked)) == (200, posts)


async def test_one_call_at_a_time_where_the_client_wants_no_more() -> None:
    two = completion(None, ("look", '{"at":1}'), ("look", '{"at":2}'))
    async with behind(whole(two), whole(two)) as there:
        _, both, _ = await there.post("/v1/chat/completions", asked())
        _, one, _ = await there.post("/v1/chat/completions", asked(parallel_tool_calls=False))
        counts = [len(msgspec.json.decode(b)["choices"][0]["message"]["tool_calls"]) for b in (both, one)]
        assert counts == [2, 1]


@pytest.mark.parametrize("more", [{"n": 2}, {"logprobs": True}, {"tools": []}])
async def test_what_is_not_judged_goes_straight_through(more: dict[str, object]) -> None:
    said = '{"index":%d,"finish_reason":"stop","message":{"role":"assistant","content":"<tool_call>{}"}}'
    frame = '{"id":"a","object":"chat.completion","created":7,"model":"m","choices":[ %s , %s]}'
    reply = (frame % (said % 0, said % 1)).encode()
    async with behind(whole(reply)) as there:
        assert (await there.post("/chat/completions", asked(**more)))[1] == reply


async def test_the_model_that_was_asked_for_by_name_replaces_the_clients_and_nothing_else() -> None:
    async with behind(whole(completion("hi")), model="named") as there:
        await there.post("/v1/chat/completions", asked(model="gpt-9", odd=None))
        assert there.model.body(0) == {**asked(), "model": "named", "odd": None}


async def test_a_client_of_anthropics_is_served_by_a_server_of_openais() -> None:
    tool = {"name": "look", "input_schema": LOOK["function"]["parameters"]}
    body = {"model": "claude-x", "max_tokens": 99, "system": "Be brief.", "messages": [ASK], "tools": [tool]}
    async with behind(whole(completion("Well.", ("look", '{"at": 4}')))) as there:
        status, got, _ = await there.post("/v1/messages", body, anthropic_version="2023-06-01")
        answer = msgspec.json.decode(got)
        assert (status, answer["stop_reason"], answer["model"]) == (200, "tool_use", "claude-x")
        assert [block["type"] for block in answer["content"]] == ["text", "tool_use"]
        assert answer["content"][1]["input"] == {"at": 4}
        sent = there.model.body(0)
        assert [message["role"] for message in sent["messages"]] == ["system", "user"]
        assert (sent["model"], sent["max_tokens"], sent["tools"][0]["function"]["name"]) == ("tiny", 99, "look")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_server_that_lists_no_models_is_asked_for_the_clients_and_an_error_says_how_to_name_one(
    path: str, stream: bool
) -> None:
    body = {"model": "gpt-9", "max_tokens": 9, "max_output_tokens": 99, "messages": [ASK], "input": "Look."}
    unknown = whole({"error": {"message": "no model gpt-9 here", "code": 404}}, 404)
    busy = whole({"error": {"message": "busy"}}, 503)
    async with behind(unknown, busy, pages={"v1/models": {"data": []}}) as there:
        status, told, _ = await there.post(path, body | {"stream": stream})
        assert there.model.body(0)["model"] == "gpt-9"
        message = msgspec.json.decode(told)["error"]["message"]
        assert (status, message.startswith("no model gpt-9 here. "), "--model NAME" in message) == (404, True, True)
        assert b"--model" not in (await there.post(path, body | {"stream": stream}))[1]
    async with behind(unknown, model="own") as there:
        assert b"--model" not in (await there.post(path, body | {"stream": stream}))[1]


@pytest.mark.parametrize("stream", [False, True])
async def test_what_a_backend_gets_a_few_words_for_is_said_in_a_header(stream: bool) -> None:
    picture = [{"type": "odd\r\nx-evil: 1"}, {"type": "input_image", "image_url": "data:,"}]
    items = [
        {"role": "user", "content": picture},
        {"type": "item_reference", "id": "msg_1"},
        {"role": "user", "content": "And now?"},
    ]
    async with behind(whole(completion("A tree.")), whole(completion("A tree."))) as there:
        body = {"model": "m", "input": items, "stream": stream}
        status, _, headers = await there.post("/v1/responses", body)
        assert (status, headers["x-forge-left-out"]) == (200, "other, input_image, item_reference")
        assert "x-evil" not in headers
        assert "[an earlier text left out]" in there.model.asked[0].decode()
        assert "x-forge-left-out" not in (await there.post("/v1/responses", body | {"input": "Look."}))[2]


async def test_any_backend_can_be_served() -> None:
    async with (
        ProxyServer(
            Scripted(['<tool_call>{"name":"look","arguments":{"at":4}}</tool_call>']), ProxyOptions(port=0)
        ) as proxy,
        aiohttp.ClientSession() as session,
        session.post(proxy.url + "/v1/chat/completions", json=asked()) as answer,
    ):
        assert (await answer.json())["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "look"


@pytest.mark.parametrize(
    ("line", "status", "headers", "words"),
    [
        (
            whole({"error": {"message": "slow down", "type": "x"}}, 429, retry_after="7"),
            429,
            {"retry-after": "7"},
            "slow down",
        ),
        (whole({"error": {"message": "no such model", "code": "model_not_found"}}, 404), 404, {}, "model_not_found"),
        (whole(b"<html>bad gateway</html>", 502), 502, {}, "a web page. Is this the address of a model's server?"),
        (
            Line(parts=(b"<p>hello",), headers=(("content-type", "text/html"),)),
            502,
            {},
            "its content type is 'text/html'",
        ),
        (
            whole(
                {
                    "error": {
                        "code": 400,
                        "message": "the request exceeds the available context size",
                        "n_prompt_tokens": 9000,
                        "n_ctx": 8192,
                    }
                },
                400,
            ),
            400,
            {"x-should-retry": "false"},
            "context_length_exceeded",
        ),
        (whole(b"no json"), 502, {}, "not a chat completion"),
    ],
)
async def test_a_fault_of_the_backend_keeps_its_status_and_its_words(
    line: Line, status: int, headers: dict[str, str], words: str
) -> None:
    for stream in (False, True) if line.status != 200 else (False,):
        async with behind(line) as there:
            got, body, told = await there.post("/v1/chat/completions", asked(stream=stream))
            assert (got, {name: told.get(name) for name in headers}) == (status, headers)
            assert words in body.decode()
            assert msgspec.json.decode(body)["error"]["message"]


async def test_a_backend_that_has_gone_is_a_502() -> None:
    async with behind() as there:
        there.model._server.close()  # not waited for: from Python 3.12 on that is until no connection is open
        status, body, _ = await there.post("/v1/chat/completions", asked())
        assert (status, "cannot connect" in body.decode() or "broke" in body.decode()) == (502, True)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_goes_away_frees_the_backends_slot_within_100_ms(stream: bool) -> None:
    async with behind(hanging(), hanging(b"data: {}\n\n"), slots=1) as there:
        for _ in range(2):
            there.model.left.clear()
            there.model.came.clear()
            asking = asyncio.create_task(there.post("/v1/chat/completions", asked(stream=stream)))
            await there.model.came.wait()
            asking.cancel()
            began = asyncio.get_running_loop().time()
            await there.model.left.wait()
            assert asyncio.get_running_loop().time() - began < 5  # 0.1 on a machine that does nothing else
        _, health, _ = await there.get("/forge/health")
        assert msgspec.json.decode(health)["working"] == 0


async def test_a_full_queue_is_429_and_who_waits_and_leaves_is_dequeued() -> None:
    async with behind(hanging(), whole(completion("hi")), slots=1, queue=1) as there:
        first = asyncio.create_task(there.post("/v1/chat/completions", asked()))
        await there.model.came.wait()
        second = asyncio.create_task(there.post("/v1/chat/completions", asked()))
        await until(there, waiting=1)
        status, body, headers = await there.post("/v1/chat/completions", asked())
        assert (status, headers["retry-after"]) == (429, "2")
        assert "busy" in msgspec.json.decode(body)["error"]["message"]
        second.cancel()
        await until(there, waiting=0)
        third = asyncio.create_task(there.post("/v1/chat/completions", asked()))
        await until(there, waiting=1)
        first.cancel()
        assert (await third)[0] == 200


async def test_who_waits_too_long_for_a_slot_is_refused() -> None:
    async with behind(hanging(), slots=1, queue_timeout=0.05) as there:
        first = asyncio.create_task(there.post("/v1/chat/completions", asked()))
        await there.model.came.wait()
        status, body, _ = await there.post("/v1/chat/completions", asked())
        assert (status, b"the server is busy: no slot was free for 0.05 seconds" in body) == (429, True)
        await until(there, waiting=0)
        first.cancel()


async def until(there: Behind, **wanted: int) -> None:
    """Ask the proxy until it says so."""
    while True:
        told = msgspec.json.decode((await there.get("/forge/health"))[1])
        if all(told[name] == value for name, value in wanted.items()):
            return


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/v1/chat/completions", b"{", 400, "not valid JSON"),
        ("/v1/chat/completions", b'{"messages":[]}', 400, "model"),
        ("/v1/chat/completions", b'{"model":"m","messages":[{"role":"user","content":7}]}', 400, "messages[0].content"),
        ("/v1/messages", b'{"model":"m","messages":[]}', 400, "max_tokens"),
        (
            "/v1/messages",
            b'{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}],"thread":{}}',
            400,
            "thread",
        ),
        ("/v1/nothing", b"{}", 404, "/nothing"),
        ("/v1/chat/completions", b" " * 2000, 413, "1000 bytes"),
    ],
)
async def test_a_request_that_is_wrong_is_refused_in_its_protocol(
    path: str, body: bytes, status: int, words: str
) -> None:
    async with behind(body_limit=1000) as there:
        got, told, _ = await there.post(path, body)
        answer = msgspec.json.decode(told)
        assert (got, answer.get("type")) == (status, "error" if path == "/v1/messages" else None)
        assert words in answer["error"]["message"]
        assert there.model.asked == []


def test_a_larger_body_than_any_protocol_reads_is_no_option() -> None:
    with pytest.raises(OptionError, match="body_limit"):
        ProxyOptions(body_limit=64 * 1024 * 1024)


@pytest.mark.parametrize("origin", ["mine.example", "https://mine.example/page"])
def test_what_no_browser_sends_as_an_origin_is_no_option(origin: str) -> None:
    with pytest.raises(OptionError, match=f"origins: '{origin}' is not a web origin; write scheme and host, as in"):
        ProxyOptions(origins=("https://mine.example", "*", origin))


async def test_methods_models_and_pages() -> None:
    async with behind() as there:
        status, _, headers = await there.get("/v1/chat/completions")
        assert (status, headers["allow"]) == (405, "POST")
        models = msgspec.json.decode((await there.get("/v1/models"))[1])
        assert models["data"][0]["id"] == "tiny"
        theirs = msgspec.json.decode((await there.get("/v1/models?limit=5", anthropic_version="2023-06-01"))[1])
        assert (theirs["data"][0]["type"], theirs["first_id"], theirs["has_more"]) == ("model", "tiny", False)
        assert msgspec.json.decode((await there.get("/v1/models/tiny"))[1])["id"] == "tiny"
        assert (await there.get("/models/other"))[0] == 404
        assert (await there.get("/v1/health"))[:2] == (200, b'{"status":"ok"}')
        assert (await there.get("/health"))[0] == 200
        assert msgspec.json.decode((await there.get("/props"))[1])["total_slots"] == 8
        assert (await there.get("/forge/usage"))[0] == 204
        assert b'forge_requests_total{path="/models",status="200"}' in (await there.get("/metrics"))[1]
        assert (await there.get("/api/hello", "HEAD"))[0] == 404


async def test_tokens_are_counted_by_the_server_or_estimated() -> None:
    body = {"model": "m", "messages": [ASK], "system": "Be brief."}
    counting = {"tokenize": {"tokens": [1] * 42}, "apply-template": {"prompt": "all of it"}}
    async with behind(pages=counting) as there:
        assert (await there.post("/v1/messages/count_tokens", body))[1] == b'{"input_tokens":42}'
    async with behind() as there:
        told = msgspec.json.decode((await there.post("/v1/messages/count_tokens", body))[1])
        assert 5 < told["input_tokens"] < 60


async def test_the_clients_credential_goes_on_and_no_other() -> None:
    hi = whole(completion("hi"))
    async with behind(hi, hi) as there:
        await there.post("/v1/chat/completions", asked(), authorization="Bearer client-key")
        await there.post("/v1/messages", {"model": "m", "max_tokens": 9, "messages": [ASK]}, x_api_key="other-key")
        told = [headers.get("authorization") for headers in there.model.headers]
        assert told == ["Bearer client-key", "Bearer other-key"]
    async with behind(hi, backend_api_key="own-key") as there:
        await there.post("/v1/chat/completions", asked(), authorization="Bearer client-key")
        assert there.model.headers[0]["authorization"] == "Bearer own-key"
    async with behind(hi, api_key="door-key") as there:
        assert (await there.post("/v1/chat/completions", asked(), authorization="Bearer wrong"))[0] == 401
        assert (await there.post("/v1/chat/completions", asked(), x_api_key="door-key"))[0] == 200
        assert "authorization" not in there.model.headers[0]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_key_that_the_backend_repeats_in_an_error_does_not_reach_the_client(stream: bool) -> None:
    """Whatever the status of the error, whole or as an event, before or after the first words."""
    told = {"error": {"message": "Incorrect API key provided: own-key-0123456789", "type": "auth"}}
    script = (whole(told, 401), whole(told), streamed(told), streamed(chunk({"content": "Hm"}), told))
    async with behind(*script, backend_api_key="own-key-0123456789") as there:
        for _ in script:
            body = (await there.post("/v1/chat/completions", asked(stream=stream, tools=[])))[1]
            assert b"own-key" not in body
            assert stream is False or b"Incorrect API key provided: ***" in body


def test_a_proxy_that_others_reach_needs_a_key_or_a_word() -> None:
    with pytest.raises(ForgeError, match="--insecure"):
        ProxyServer("http://127.0.0.1:1", ProxyOptions(host="::"))
    ProxyServer("http://127.0.0.1:1", ProxyOptions(host="::", insecure=True))
    ProxyServer("http://127.0.0.1:1", ProxyOptions(host="::", api_key="k"))


async def test_web_pages_of_this_machine_may_ask_and_others_are_refused() -> None:
    async with behind(whole(completion("hi")), origins=("https://mine.example",)) as there:
        status, _, headers = await there.get("/v1/models", "OPTIONS", origin="http://localhost:3000")
        assert (status, headers["access-control-allow-origin"]) == (204, "http://localhost:3000")
        assert (await there.post("/v1/chat/completions", asked(), origin="https://evil.example"))[0] == 403
        status, _, headers = await there.post("/v1/chat/completions", asked(), origin="https://mine.example")
        assert (status, headers["access-control-allow-origin"]) == (200, "https://mine.example")


async def test_a_port_that_is_taken_is_told_in_a_sentence() -> None:
    async with behind() as there:
        port = int(there.url.rpartition(":")[2])
        with pytest.raises(ForgeError, match=r"cannot listen on 127\.0\.0\.1.*; choose another port"):
            async with ProxyServer(there.model.url, ProxyOptions(port=port)):
                pass


@pytest.mark.parametrize("stream", [False, True])
async def test_a_damaged_call_in_the_history_does_not_end_the_conversation(stream: bool) -> None:
    """Llama.cpp answers 500 to such a history, and so it would for good: it is asked once more, with a valid one."""
    damaged = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": '}}
    history = [
        ASK,
        {"role": "assistant", "tool_calls": [damaged]},
        {"role": "tool", "tool_call_id": "c1", "content": "?"},
    ]
    refusal = whole({"error": {"message": "Failed to parse tool call arguments as JSON", "code": 500}}, 500)
    async with behind(refusal, whole(completion("It is a tree."))) as there:
        status, body, _ = await there.post("/v1/chat/completions", asked(messages=history, odd=1, stream=stream))
        assert (status, b"It is a tree." in body) == (200, True)
        first, second = there.model.body(0), there.model.body(1)
        assert first["messages"] == history
        assert {**second, "messages": history} == first
        assert all("tool_calls" not in message for message in second["messages"])


async def test_a_request_that_fails_within_is_answered_counted_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken(_: HttpRequest, __: NotedOutlet) -> None:
        raise LookupError("a fault of the proxy's own")

    sent: list[AsgiMessage] = []

    async def receive() -> AsgiMessage:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: AsgiMessage) -> None:
        sent.append(message)

    series = Metrics()
    app = ProxyApp({"/models": Route({"GET": broken})}, ProxyOptions(), partial(count, series))
    scope: Scope = {"type": "http", "method": "GET", "path": "/v1/models", "headers": [], "query_string": b""}
    await app(scope, receive, send)
    assert sent[0]["status"] == 500
    assert b"see its log" in sent[1]["body"]
    assert 'forge_requests_total{path="/models",status="500"} 1' in series.text().decode()
    assert [record.message for record in caplog.records if record.exc_info] == ["GET /models failed"]
