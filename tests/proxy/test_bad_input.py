"""Bad input of every kind, from clients and from servers, in each protocol: an answer that the client can show."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from stages.effect import RawCall, Reply, Usage
from tests.hostile_schemas import hostile_schemas
from tests.property import servers
from tests.property.test_stream_laws import SERVERS
from tests.proxy.test_faulty_servers import BACKENDS, OLLAMA_WHOLE, WHOLE
from tests.proxy.test_proxy import LOOK, Behind, behind
from tests.scripted_model import Line, completion, streamed, whole

Told = tuple[str, ...]
"""A message: who says it, and what."""

DEEP = "[" * 5000 + "]" * 5000


def _reads_deep() -> bool:
    """Whether the JSON library reads past what is nested so deeply: nobody but the backend wants it, so it goes on.

    That depends on how much of C's stack the interpreter allows, which differs between releases of one version.
    """
    try:
        msgspec.json.decode(DEEP)
    except RecursionError:
        return False
    return True


DEEPLY = '{"at": ' + DEEP + "}"

CALL: Told = ("call", "c1", "look", '{"at": 4}')
RESULT: Told = ("result", "c1", "A tree.")
ASKED: Told = ("user", "Look.")

HISTORIES: dict[str, list[Told]] = {
    "a call without a result": [ASKED, CALL, ("user", "Well?")],
    "a call at the end": [ASKED, CALL],
    "a result without a call": [ASKED, RESULT, ("user", "Well?")],
    "a result of another call": [ASKED, CALL, ("result", "c9", "A tree.")],
    "two results of one call": [ASKED, CALL, RESULT, RESULT],
    "two calls of one id": [ASKED, CALL, ("call", "c1", "look", '{"at": 5}'), RESULT, ("result", "c1", "A door.")],
    "the same id twice": [ASKED, CALL, RESULT, CALL, RESULT],
    "an empty id": [ASKED, ("call", "", "look", "{}"), ("result", "", "A tree.")],
    "a damaged call": [ASKED, ("call", "c1", "look", '{"at": '), RESULT],
    "arguments that are no object": [ASKED, ("call", "c1", "look", "[4]"), RESULT],
    "arguments that are nested deeply": [
        ASKED,
        ("call", "c1", "look", '{"at":' + "[" * 5000 + "]" * 5000 + "}"),
        RESULT,
    ],
    "halves of characters in arguments": [ASKED, ("call", "c1", "look", '{"at": "\\ud800"}'), RESULT],
    "a number out of range": [ASKED, ("call", "c1", "look", '{"at": 1e999}'), RESULT],
    "a tool that is not offered": [ASKED, ("call", "c1", "fly", "{}"), RESULT],
    "a name that no server takes": [ASKED, ("call", "c1", "look at!", "{}"), RESULT],
    "a name that is very long": [ASKED, ("call", "c1", "l" * 3000, "{}"), RESULT],
    "nothing but a reply": [("assistant", "I am here.")],
    "replies in a row": [ASKED, ("assistant", "One."), ("assistant", "Two.")],
    "nothing but the system's": [("system", "Be brief.")],
    "the system's at the end": [ASKED, ("system", "Be brief.")],
    "blank words": [("user", ""), ("assistant", ""), ("user", " \n")],
    "odd characters": [("user", "\x00\x1b[2J\u2028 \ufffe")],
}

SCHEMA = LOOK["function"]["parameters"]


def chat(history: list[Told]) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    for kind, *said in history:
        match kind:
            case "call":
                call_id, name, arguments = said
                made = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
                if not messages or "tool_calls" not in messages[-1]:
                    messages.append({"role": "assistant", "content": None, "tool_calls": []})
                messages[-1]["tool_calls"].append(made)
            case "result":
                messages.append({"role": "tool", "tool_call_id": said[0], "content": said[1]})
            case role:
                messages.append({"role": role, "content": said[0]})
    return {"model": "m", "messages": messages, "tools": [LOOK]}


def messages(history: list[Told]) -> dict[str, Any]:
    told: list[dict[str, Any]] = []

    def add(role: str, block: dict[str, Any]) -> None:
        if not told or told[-1]["role"] != role:
            told.append({"role": role, "content": []})
        told[-1]["content"].append(block)

    for kind, *said in history:
        match kind:
            case "call":
                call_id, name, arguments = said
                add("assistant", {"type": "tool_use", "id": call_id, "name": name, "input": loosely(arguments)})
            case "result":
                add("user", {"type": "tool_result", "tool_use_id": said[0], "content": said[1]})
            case role:
                add(role, {"type": "text", "text": said[0]})
    tool = {"name": "look", "input_schema": SCHEMA}
    return {"model": "m", "max_tokens": 99, "messages": told, "tools": [tool]}


def loosely(arguments: str) -> object:
    """The arguments as a value; those that are none as a text."""
    try:
        return arguments if "e999" in arguments else json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def responses(history: list[Told]) -> dict[str, Any]:
    items: list[dict[str, Any]] = []
    for kind, *said in history:
        match kind:
            case "call":
                call_id, name, arguments = said
                items.append({"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments})
            case "result":
                items.append({"type": "function_call_output", "call_id": said[0], "output": said[1]})
            case role:
                items.append({"role": role, "content": said[0]})
    return {"model": "m", "input": items, "tools": [{"type": "function", "name": "look", "parameters": SCHEMA}]}


PROTOCOLS: dict[str, Callable[[list[Told]], dict[str, Any]]] = {
    "/v1/chat/completions": chat,
    "/v1/messages": messages,
    "/v1/responses": responses,
}
REPLIES: dict[str, Any] = {"chat": completion("It is a tree."), "messages": WHOLE, "ollama": OLLAMA_WHOLE}
TAKES: dict[str, Callable[[servers.Wire], None]] = {
    "chat": servers.openai,
    "messages": servers.anthropic,
    "ollama": servers.ollama,
}
SERVED_BY = {"chat": "openai", "messages": "anthropic", "ollama": "ollama"}
SAME = {("/v1/chat/completions", "chat"), ("/v1/messages", "messages")}
UNFIT = {"nothing but a reply", "nothing but the system's"}
"""Conversations that nobody has begun: the server says what it thinks of them."""
REFUSAL = {"type": "error", "error": {"message": "the conversation is refused", "type": "invalid_request_error"}}

BETWEEN = [*((path, "chat") for path in PROTOCOLS), ("/v1/messages", "messages"), ("/v1/responses", "ollama")]
"""Each protocol of clients before one server, and each kind of server behind one client."""

each_path = pytest.mark.parametrize("path", PROTOCOLS)
each_pair = pytest.mark.parametrize(("path", "kind"), BETWEEN)


def body(path: str, history: list[Told], **more: object) -> bytes:
    """The request as JSON, which Python's own library writes however deep it is nested."""
    fields = PROTOCOLS[path](history) | more
    try:
        return json.dumps(fields).encode()
    except RecursionError:
        pytest.fail("a case that no client could write")


def shown(status: int, answer: bytes, path: str) -> str:
    """What a client shows of an answer: an error of its protocol, or a reply."""
    told = json.loads(answer)
    if status >= 400:
        assert "type" in told or path != "/v1/messages"
        message = told["error"]["message"]
        assert isinstance(message, str)
        return message
    match path:
        case "/v1/chat/completions":
            said = told["choices"][0]["message"]
            return str(said["content"] or said["tool_calls"][0]["function"]["name"])
        case "/v1/messages":
            return "".join(str(block) for block in told["content"])
        case _:
            return "".join(str(item) for item in told["output"])


@each_pair
@pytest.mark.parametrize("case", HISTORIES)
async def test_a_history_that_servers_would_refuse(path: str, kind: str, case: str) -> None:
    """Written for a server of another protocol it is one that it takes; one of the same is asked a second time."""
    reply, same = whole(REPLIES[kind]), (path, kind) in SAME
    script = (whole(REFUSAL, 400), reply) if same else (reply,)
    async with behind(*script, **BACKENDS[kind]) as there:
        status, answer, _ = await there.post(path, body(path, HISTORIES[case]))
        assert shown(status, answer, path)
        assert status == 200 or same, answer
        if status == 200 and case not in UNFIT:
            TAKES[kind](there.model.body(len(script) - 1)["messages"])


SIZE = 12 * 1024 * 1024


def with_tools(path: str, tools: list[tuple[str, object]]) -> list[dict[str, Any]]:
    match path:
        case "/v1/chat/completions":
            return [{"type": "function", "function": {"name": n, "parameters": p}} for n, p in tools]
        case "/v1/messages":
            return [{"name": n, "input_schema": p} for n, p in tools]
        case _:
            return [{"type": "function", "name": n, "parameters": p} for n, p in tools]


REQUESTS: dict[str, tuple[int, Callable[[str], bytes]]] = {
    "ten thousand tools": (
        200,
        lambda path: body(path, [ASKED], tools=with_tools(path, [(f"tool_{n}", SCHEMA) for n in range(10_000)])),
    ),
    "two tools of one name": (200, lambda path: body(path, [ASKED], tools=with_tools(path, [("look", SCHEMA)] * 2))),
    "a schema that is none": (
        200,
        lambda path: body(path, [ASKED], tools=with_tools(path, [("look", {"type": "array", "properties": 7})])),
    ),
    "a tool without a name": (400, lambda path: body(path, [ASKED], tools=with_tools(path, [("", SCHEMA)]))),
    "a schema that is a word": (400, lambda path: body(path, [ASKED], tools=with_tools(path, [("look", "any")]))),
    "arguments of 12 MiB": (
        200,
        lambda path: body(path, [ASKED, ("call", "c1", "look", json.dumps({"at": "x" * SIZE})), RESULT]),
    ),
    "a body of 17 MiB": (413, lambda path: body(path, [("user", "x" * 17 * 1024 * 1024)])),
    "a result that is nested deeply": (200, lambda path: body(path, [ASKED, CALL, ("result", "c1", DEEP)])),
    "a body that is nested deeply": (
        200 if _reads_deep() else 400,
        lambda path: body(path, [ASKED]).replace(b'"model"', b'"odd":' + DEEP.encode() + b',"model"'),
    ),
    "a million of brackets": (
        413,
        lambda path: body(path, [ASKED]).replace(b'"model"', b'"odd":[' + b"{}," * 500_000 + b'1],"model"'),
    ),
    "a field that is nested beyond what forge reads": (
        200,
        lambda path: body(path, [ASKED]).replace(b'"model"', b'"odd":' + b"[" * 300 + b"]" * 300 + b',"model"'),
    ),
    "no JSON": (400, lambda path: body(path, [ASKED])[:-3]),
    "no object": (400, lambda _: b"[1]"),
    "nothing": (400, lambda _: b""),
    "not UTF-8": (400, lambda path: body(path, [ASKED]).replace(b"Look.", b"L\xff\xfeok")),
    "no messages": (400, lambda path: body(path, [])),
    "no model": (400, lambda path: body(path, [ASKED]).replace(b'"model"', b'"modal"')),
    "a temperature out of range": (400, lambda path: body(path, [ASKED], temperature=-3)),
    "a temperature that is a word": (400, lambda path: body(path, [ASKED], temperature="hot")),
    "a choice of no tool": (400, lambda path: body(path, [ASKED], tool_choice={"type": "tool", "name": "fly"})),
}


@each_path
@pytest.mark.parametrize("case", REQUESTS)
async def test_a_request_that_is_wrong_or_huge(path: str, case: str) -> None:
    status, made = REQUESTS[case]
    async with behind(whole(REPLIES["chat"])) as there:
        got, answer, _ = await there.post(path, made(path))
        assert (got, bool(shown(got, answer, path))) == (status, True)
        assert len(there.model.asked) == (status == 200)
        await healthy(there)


def calling(kind: str, arguments: str, *, stream: bool) -> Line:
    """A reply with that call, whole or as a stream with the arguments in parts of 64 KiB."""
    call = RawCall(id="c0", name="look", arguments=arguments)
    reply, server = Reply(calls=(call,), finish="tool_calls", usage=Usage(prompt=11, completion=7)), SERVERS[kind]
    if not stream:
        return whole(server.whole(reply))
    return streamed(server.stream(reply, lambda text: [text[at : at + 65536] for at in range(0, len(text), 65536)]))


ARGUMENTS: dict[str, tuple[Callable[[], str], bool]] = {
    "of 12 MiB": (lambda: '{"at": 4, "why": "%s"}' % ("x" * SIZE), True),
    "of 17 MiB": (lambda: '{"at": 4, "why": "%s"}' % ("x" * 17 * 1024 * 1024), False),
    "nested deeply": (lambda: DEEPLY, False),
    "of many members": (lambda: json.dumps({f"a{n}": n for n in range(4_000)}), False),
    "of a number out of range": (lambda: '{"at": 1e999}', False),
    "that name a member twice": (lambda: '{"at": 5, "at": 4}', True),
}
HUGE = {"of 12 MiB", "of 17 MiB", "of many members"}


@pytest.mark.parametrize(
    ("path", "kind", "case"),
    [(*pair, case) for pair in BETWEEN for case in ARGUMENTS if pair == ("/v1/messages", "chat") or case not in HUGE],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_reply_with_arguments_of_any_size_and_shape(path: str, kind: str, case: str, stream: bool) -> None:
    arguments, fits = ARGUMENTS[case]
    line = calling(SERVED_BY[kind], arguments(), stream=stream)
    async with behind(line, line, max_retries=1, **BACKENDS[kind]) as there:
        status, answer, _ = await there.post(path, body(path, [ASKED], stream=stream))
        if stream and status == 200:
            assert ended(answer, path)
        else:
            assert shown(status, answer, path)
        assert not fits or (status == 200 and b"look" in answer)
        await healthy(there)


def ended(stream: bytes, path: str) -> bool:
    """Whether a stream comes to an end, or to an error, of its protocol."""
    last = [event for event in stream.split(b"\n\n") if event.strip()][-1]
    match path:
        case "/v1/chat/completions":
            return last == b"data: [DONE]" or b'"error"' in last
        case "/v1/messages":
            return last.startswith((b"event: message_stop", b"event: error"))
        case _:
            return last.startswith((b"event: response.completed", b"event: response.failed"))


async def healthy(there: Behind) -> None:
    """Nothing is left of the request."""
    told = json.loads((await there.get("/forge/health"))[1])
    assert (told["status"], told["working"]) == ("ok", 0)


async def test_a_hostile_schema_stops_no_other_client(caplog: pytest.LogCaptureFixture) -> None:
    """A tool's schema comes from anybody's server. Its check took for ever, on the loop that serves all clients."""
    chain = next(each for each in hostile_schemas() if each.name == "30 times anyOf")
    costly = {"type": "string", "pattern": "[a-z]?" * 1_000}
    schema = {**chain.schema, "properties": {"a": {"$ref": "#/$defs/d0"}, "sku": costly}}
    tool = LOOK | {"function": LOOK["function"] | {"parameters": schema}}
    wrong, right = (completion(None, ("look", arguments)) for arguments in ('{"a":"x"}', '{"a":4,"sku":"7"}'))
    async with behind(whole(wrong), whole(right), whole(wrong), whole(right)) as there:
        for _ in range(2):
            body = {"model": "tiny", "messages": [{"role": "user", "content": "Look."}], "tools": [tool]}
            status, answer, headers = await there.post("/v1/chat/completions", body)
            assert (status, headers["x-forge-outcome"]) == (200, "retried")
            (call,) = json.loads(answer)["choices"][0]["message"]["tool_calls"]
            assert json.loads(call["function"]["arguments"]) == {"a": 4, "sku": "7"}
    (told,) = [one.getMessage() for one in caplog.records if "costs too much" in one.getMessage()]
    assert told.startswith("the tool look: ")
    assert told.endswith("any value fits there: properties.sku.pattern")
