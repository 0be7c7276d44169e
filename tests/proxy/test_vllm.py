"""The official clients on the proxy before vLLM as it starts by default: it takes no tools, and counts to its limit."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anthropic
import httpx
import msgspec
import openai
import pytest
from msgspec.structs import replace

from forge.backends import named
from forge.cli import main
from forge.proxy import ProxyOptions, ProxyServer
from forge.proxy.exchange import MOST_CUTS
from forge.proxy.model import ToolFallback
from stages.effect import Fault
from stages.wire.server.request import ServerRequest
from stages.wire.server_wires import CHAT
from tests.decisions.turning import model_of
from tests.fake_vllm import QUESTION, fake_vllm, recorded, tokens_of
from tests.proxy.test_clients import NOBODY
from tests.proxy.test_proxy import behind
from tests.scripted_model import Line, completion, whole

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "unit": {"enum": ["celsius", "fahrenheit"]}},
    "required": ["city", "unit"],
}
WEATHER: Any = {
    "type": "function",
    "function": {"name": "get_weather", "description": "The weather.", "parameters": PARAMETERS},
}
SEARCH: Any = {
    "type": "function",
    "function": {
        "name": "search_docs",
        "description": "The documentation.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    },
}
TOOLS: Any = [WEATHER, SEARCH]
RESPONSES_TOOLS: Any = [{"type": "function", "strict": False, **tool["function"]} for tool in TOOLS]
MESSAGES_TOOLS: Any = [
    {
        "name": tool["function"]["name"],
        "description": tool["function"]["description"],
        "input_schema": tool["function"]["parameters"],
    }
    for tool in TOOLS
]
ASK: Any = [{"role": "user", "content": QUESTION}]
NAMED: Any = {"type": "function", "function": {"name": "search_docs"}}

IN_PARIS = ("get_weather", {"city": "Paris", "unit": "celsius"})
IN_TEXT = ("get_weather", json.dumps(IN_PARIS[1]))
LOOKED_UP = ("search_docs", {"query": "Paris"})


class Clients:
    """Both official clients of the proxy, and the server behind it."""

    def __init__(self, proxy: str, server: str) -> None:
        self.url, self.server = proxy, server
        own, theirs = openai.DefaultAsyncHttpxClient(verify=NOBODY), anthropic.DefaultAsyncHttpxClient(verify=NOBODY)
        self.own = openai.AsyncOpenAI(base_url=f"{proxy}/v1", api_key="none", max_retries=0, http_client=own)
        self.theirs = anthropic.AsyncAnthropic(base_url=proxy, api_key="none", max_retries=0, http_client=theirs)

    def asked(self) -> list[Any]:
        """The chat requests that the server has got."""
        found: list[Any] = httpx.get(f"{self.server}/asked").json()
        return found


@pytest.fixture
def vllm() -> Iterator[str]:
    with fake_vllm() as url:
        yield url


@asynccontextmanager
async def clients(server: str, base: str = "", **options: Any) -> AsyncIterator[Clients]:
    mode = options.pop("mode", "auto")
    async with (
        asyncio.timeout(60),
        ProxyServer(named(base or server, mode=mode), ProxyOptions(port=0, **options)) as proxy,
    ):
        made = Clients(proxy.url, server)
        async with made.own, made.theirs:
            yield made


Found = list[tuple[str, Any]]


def called_by(message: Any) -> Found:
    return [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or ()]


async def chat(there: Clients, **more: Any) -> Found:
    answer = await there.own.chat.completions.create(model="qwen05", messages=ASK, tools=TOOLS, **more)
    return called_by(answer.choices[0].message)


async def responses_streamed(there: Clients, **more: Any) -> Found:
    async with there.own.responses.stream(model="qwen05", input=QUESTION, tools=RESPONSES_TOOLS, **more) as stream:
        answer = await stream.get_final_response()
    return [(item.name, json.loads(item.arguments)) for item in answer.output if item.type == "function_call"]


async def messages(there: Clients, **more: Any) -> Found:
    answer = await there.theirs.messages.create(
        model="qwen05", max_tokens=99, messages=ASK, tools=MESSAGES_TOOLS, **more
    )
    return [(block.name, block.input) for block in answer.content if block.type == "tool_use"]


FREE = (chat, responses_streamed, messages)
DEMANDS: list[tuple[Callable[..., Awaitable[Found]], Any, Any]] = [
    (chat, "required", NAMED),
    (responses_streamed, "required", {"type": "function", "name": "search_docs"}),
    (messages, {"type": "any"}, {"type": "tool", "name": "search_docs"}),
]


@pytest.mark.parametrize("first", FREE, ids=lambda ask: ask.__name__)
async def test_tools_that_vllm_refuses_are_asked_for_in_the_prompt_and_the_server_is_remembered(
    vllm: str, first: Callable[[Clients], Awaitable[Found]], caplog: pytest.LogCaptureFixture
) -> None:
    async with clients(vllm) as there:
        for ask in (first, *FREE):
            assert await ask(there) == [IN_PARIS], ask.__name__
        # One request was refused; all others went the way that works.
        assert [asked["status"] for asked in there.asked()] == [400, 200, *[200] * len(FREE)]
        assert [name for name in ("tools", "tool_choice") for asked in there.asked()[1:] if name in asked] == []
    (line,) = [record.getMessage() for record in caplog.records if "refused" in record.getMessage()]
    assert "tools are written into the prompt from now on" in line
    assert "--tool-call-parser" in line


async def test_a_call_that_is_demanded_is_held_to_its_schema_where_tools_are_refused(vllm: str) -> None:
    """The model would rather ask for the weather, and the server obeys a schema."""
    for ask, required, by_name in DEMANDS:
        async with clients(vllm) as there:
            assert await ask(there, tool_choice=by_name) == [LOOKED_UP], ask.__name__
            assert await ask(there, tool_choice=required) == [IN_PARIS], ask.__name__
            assert [asked["status"] for asked in there.asked()[-3:]] == [400, 200, 200]
            assert all("response_format" in asked for asked in there.asked()[-2:])


async def test_what_needs_no_tools_passes_as_it_came_on_a_server_that_is_known_to_refuse_them(vllm: str) -> None:
    hello: Any = [{"role": "user", "content": "Hello?"}]
    async with clients(vllm) as there:
        assert await chat(there) == [IN_PARIS]
        answer = await there.own.chat.completions.create(model="qwen05", messages=hello, extra_body={"odd": [1]})
        assert (answer.choices[0].message.content, there.asked()[-1]["odd"]) == ("Hello!", [1])
        assert await chat(there, tool_choice="none") == []
        assert there.asked()[-1]["tools"] == TOOLS
        answer = await there.own.chat.completions.create(model="qwen05", messages=hello, tools=TOOLS)
        assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("Hello!", "stop")


async def test_a_conversation_with_results_goes_on_where_tools_are_refused(vllm: str) -> None:
    """The calls of the history become text too: no request has tools, so none may have calls."""
    function = {"name": "get_weather", "arguments": '{"city": "Oslo", "unit": "celsius"}'}
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "type": "function", "function": function}]}
    history: Any = [
        {"role": "user", "content": "Oslo?"}, call, {"role": "tool", "tool_call_id": "a", "content": "3"}, *ASK
    ]  # fmt: skip
    async with clients(vllm) as there:
        answer = await there.own.chat.completions.create(model="qwen05", messages=history, tools=TOOLS)
        assert called_by(answer.choices[0].message) == [IN_PARIS]
        sent = there.asked()[-1]["messages"]
        assert [message["role"] for message in sent] == ["system", "user", "assistant", "user"]
        assert "Oslo" in sent[2]["content"]


async def test_pictures_are_not_given_up_for_tools(vllm: str) -> None:
    """The server's own word on its flags is better than an answer about a picture that the model was not shown."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    seen: Any = [{"role": "user", "content": [{"type": "text", "text": QUESTION}, picture]}]
    async with clients(vllm) as there:
        assert await chat(there) == [IN_PARIS]
        with pytest.raises(openai.BadRequestError, match="--tool-call-parser"):
            await there.own.chat.completions.create(model="qwen05", messages=seen, tools=TOOLS)


async def test_who_wants_native_calls_and_no_others_is_told_what_the_server_lacks(vllm: str) -> None:
    async with clients(vllm, mode="native") as there:
        with pytest.raises(openai.BadRequestError, match="--tool-call-parser"):
            await chat(there)
        with pytest.raises(anthropic.BadRequestError, match="--tool-call-parser"):
            await messages(there)


SAID = '```json\n{"name": "get_weather", "arguments": {"city": "Paris", "unit": "celsius"}}\n```'


def refused(name: str) -> Line:
    status, body = recorded(name)
    return whole(body, status)


def calls_in(answer: bytes) -> list[str]:
    message = json.loads(answer)["choices"][0]["message"]
    return [call["function"]["name"] for call in message.get("tool_calls", ())]


async def test_a_demand_whose_schema_is_refused_too_is_asked_for_in_the_prompt_alone() -> None:
    body = {"model": "qwen05", "messages": ASK, "tools": TOOLS, "tool_choice": "required"}
    script = (refused("plain__tools_required"), refused("tools__schema_unsupported"), whole(completion(SAID)))
    async with behind(*script, profile="vllm") as there:
        status, answer, _ = await there.post("/v1/chat/completions", body)
        assert (status, calls_in(answer)) == (200, ["get_weather"])
        told = [{"tools", "response_format"} & there.model.body(number).keys() for number in range(3)]
        assert told == [{"tools"}, {"response_format"}, set()]


async def test_what_one_model_refuses_is_asked_of_another_on_the_same_server() -> None:
    """As on a server with many models, of which some know tools."""
    refusal = whole({"error": {"message": "small does not support tools"}}, 400)
    script = (refusal, whole(completion(SAID)), whole(completion(None, IN_TEXT)), whole(completion(SAID)))
    async with behind(*script, profile="openai-compatible") as there:
        for model in ("small", "large", "small"):
            body = {"model": model, "messages": ASK, "tools": TOOLS}
            status, answer, _ = await there.post("/v1/chat/completions", body)
            assert (status, calls_in(answer)) == (200, ["get_weather"])
        sent = [there.model.body(number) for number in range(4)]
        assert [body["model"] for body in sent] == ["small", "small", "large", "small"]
        assert ["tools" in body for body in sent] == [True, False, True, False]


async def test_a_server_that_is_known_to_take_no_tools_is_never_sent_any(tmp_path: Path) -> None:
    """As the doctor writes of one that refuses them, or ignores them, and obeys a schema."""
    profile = tmp_path / "mine.toml"
    profile.write_text('name = "mine"\nmode = "constrained"\nconstrain = "json_schema"\nnative_calls = false\n')
    body = {"model": "tiny", "messages": ASK, "tools": TOOLS}
    async with behind(whole(completion(SAID)), profile=str(profile)) as there:
        assert calls_in((await there.post("/v1/chat/completions", body))[1]) == ["get_weather"]
        assert "tools" not in there.model.body(0)


FILLERS = {
    "digits": "8713 2094 5561 0937 4420 " * 22,
    "English": "the parcel was sent from the warehouse in the morning and it has not come " * 17,
    "Chinese": "请把报告发给客户然后确认收到" * 17,
}
"""Messages of which forty are more than twice the context, in texts of which a token has few characters or many."""


def long(filler: str) -> Any:
    return [{"role": ("user", "assistant")[n % 2], "content": FILLERS[filler]} for n in range(40)] + ASK


@pytest.mark.parametrize("filler", FILLERS)
@pytest.mark.parametrize(("tokenizer", "stream"), [(True, True), (False, False)], ids=["counted", "uncounted"])
async def test_a_prompt_that_vllm_stops_counting_is_cut_until_it_fits(
    vllm: str, filler: str, tokenizer: bool, stream: bool
) -> None:
    """It says only that there are at least 4,097 tokens: no size of the prompt."""
    async with clients(vllm, "" if tokenizer else f"{vllm}/nocount/v1") as there:
        body = {"model": "qwen05", "messages": long(filler), "max_tokens": 512, "stream": stream}
        answer = await asyncio.to_thread(httpx.post, f"{there.url}/v1/chat/completions", json=body)
        asked = there.asked()
        assert (answer.status_code, "x-forge-compacted" in answer.headers) == (200, True)
        assert asked[0]["tokens"] > 2 * 4096 > 4096 > asked[-1]["tokens"] > 1000
        assert [one["status"] for one in asked[:-1]] == [400] * (len(asked) - 1)
        assert len(asked) <= (2 if tokenizer else MOST_CUTS + 1)


@pytest.mark.parametrize("tokenizer", [True, False], ids=["counted", "uncounted"])
async def test_clients_that_compact_by_the_size_of_a_prompt_are_told_no_false_one(vllm: str, tokenizer: bool) -> None:
    async with clients(vllm, "" if tokenizer else f"{vllm}/nocount/v1") as there:
        with pytest.raises(anthropic.BadRequestError) as refused:
            await there.theirs.messages.create(model="qwen05", max_tokens=9, messages=long("digits"))
        with pytest.raises(openai.BadRequestError) as told:
            await there.own.responses.create(model="qwen05", input=long("digits"))
        sizes = [f"{asked['tokens']} tokens" if tokenizer else "at least 4097 tokens" for asked in there.asked()]
        assert f"prompt is too long: {sizes[0]} > 4096 maximum" in str(refused.value)
        assert f"prompt is too long: {sizes[1]} > 4096 maximum" in str(told.value)
        assert told.value.code == "context_length_exceeded"


async def test_more_tokens_of_reply_than_there_are_is_told_in_the_servers_words(vllm: str) -> None:
    """No shorter prompt would help, so none is asked for."""
    async with clients(vllm) as there:
        words = "cannot be greater than max_model_len=4096"
        with pytest.raises(openai.BadRequestError, match=words):
            await there.own.chat.completions.create(model="qwen05", messages=ASK, max_tokens=20_000)
        with pytest.raises(openai.BadRequestError, match=words):
            await there.own.responses.create(model="qwen05", input="Hi", max_output_tokens=20_000)
        with pytest.raises(anthropic.BadRequestError, match=words):
            await there.theirs.messages.create(model="qwen05", messages=ASK, max_tokens=20_000)
        assert len(there.asked()) == 3


async def test_tokens_are_counted_by_vllms_own_tokenizer_with_its_template_and_the_tools(vllm: str) -> None:
    async with clients(vllm) as there:
        told = await there.theirs.messages.count_tokens(model="qwen05", messages=ASK, tools=MESSAGES_TOOLS)
        plain = await there.theirs.messages.count_tokens(model="qwen05", messages=ASK)
        assert told.input_tokens == tokens_of({"messages": ASK, "tools": TOOLS})
        assert plain.input_tokens == tokens_of({"messages": ASK})


def test_of_many_models_that_refuse_tools_the_last_are_remembered() -> None:
    model = replace(model_of("chat", ""), fallback=ToolFallback(words=("no tools",), always=False))
    refusal = Fault(kind="status", status=400, detail="", body="no tools here")

    def asked_for(number: int) -> ServerRequest:
        body = {"model": f"model-{number}", "messages": ASK, "tools": TOOLS}
        request = CHAT.decode_request(msgspec.json.encode(body))
        assert isinstance(request, ServerRequest)
        return request

    for number in range(300):
        assert model.after_refusal(asked_for(number), refusal)
    known = [number for number in range(300) if model.asked_about(asked_for(number)) is not model]
    assert known == list(range(300 - len(known), 300))
    assert len(known) > 100


@pytest.mark.parametrize(("refusals", "status"), [(3, 200), (9, 400)])
async def test_a_server_that_stops_counting_is_sent_less_each_time_a_few_times(refusals: int, status: int) -> None:
    """Of texts with more tokens than any estimate."""
    history = [{"role": ("user", "assistant")[n % 2], "content": f"{n}: " + "words " * 9} for n in range(600)] + ASK
    script = [refused("tools__overflow_prompt")] * refusals + [whole(completion("hi"))]
    async with behind(*script, profile="vllm") as there:
        got, answer, _ = await there.post("/v1/chat/completions", {"model": "qwen05", "messages": history})
        sizes = [len(sent) for sent in there.model.asked]
        assert (got, len(sizes)) == (status, min(refusals, MOST_CUTS) + 1)
        assert sizes == sorted(set(sizes), reverse=True)
        assert b"at least 4097 tokens > 4096 maximum" in answer or status == 200


@pytest.mark.parametrize("command", [["run", "examples/orders.py", "Report on A-17."], ["proxy", "--port", "0"]])
def test_a_model_that_vllm_does_not_have_is_told_before_it_is_asked_anything(
    vllm: str, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--backend", vllm, "--model", "nope"]) != 0
    said = " ".join(capsys.readouterr().err.split())
    assert "the server has no model 'nope'; it has qwen05: leave the name out" in said
    assert httpx.get(f"{vllm}/asked").json() == []


async def test_words_about_tools_in_answer_to_a_request_without_any_teach_nothing() -> None:
    body = {"model": "qwen05", "messages": ASK}
    script = (refused("plain__tools_auto"), whole(completion(None, IN_TEXT)))
    async with behind(*script, profile="vllm") as there:
        assert (await there.post("/v1/chat/completions", body))[0] == 400
        assert calls_in((await there.post("/v1/chat/completions", body | {"tools": TOOLS}))[1]) == ["get_weather"]
        assert "tools" in there.model.body(1)
