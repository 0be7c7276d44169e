"""Requests that a policy shapes, between a real client and a scripted server: what is left as it came, and what not."""

import logging
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from forge.proxy import ModelPolicy, Policy
from tests.proxy.test_proxy import ASK, LOOK, asked, behind
from tests.proxy.test_streams import CALLED, ROLE, all_of
from tests.scripted_model import Line, called, chunk, completion, streamed, whole

HI = whole(completion("hi"))


def policy(**fields: Any) -> Policy:
    return Policy(general=ModelPolicy(**fields))


def session(turns: int, *, words: int = 60) -> list[dict[str, Any]]:
    """What a client sends for its next turn: a system prompt, a task, and calls with long results."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You work here.", "name": "boss"}, ASK]
    for turn in range(turns):
        function = {"name": "look", "arguments": '{"at": %s}' % turn}  # noqa: UP031 - braces
        call = {"id": f"c{turn}", "type": "function", "function": function, "odd": turn}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{turn}", "content": f"{turn}: " + "words " * words})
    return messages


def overflow(tokens: int = 3000, maximum: int = 2048) -> Line:
    error = {"code": 400, "type": "exceed_context_size_error", "message": "the request exceeds the context size"}
    return whole({"error": {**error, "n_prompt_tokens": tokens, "n_ctx": maximum}}, 400)


@pytest.mark.parametrize("tools", [[LOOK], []])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_conversation_over_its_budget_is_compacted_and_the_rest_stays(
    tools: list[object], stream: bool
) -> None:
    reply = streamed(chunk({"content": "hi"}), chunk({}, "stop")) if stream else HI
    messages = session(30)
    body = asked(messages=messages, odd=[1], tools=tools, stream=stream)
    async with behind(reply, policy=policy(context_tokens=2000)) as there:
        status, got, headers = await there.post("/v1/chat/completions", body)
        sent = there.model.body(0)
        assert (status, b"hi" in got) == (200, True)
        assert {**sent, "messages": messages} == body
        assert len(there.model.asked[0]) < 8000
        left = sent["messages"]
        assert (left[:2], left[-2:]) == (messages[:2], messages[-2:])
        assert "Calls that you made earlier" in left[2]["content"]
        calls = [call["id"] for message in left for call in message.get("tool_calls", ())]
        assert calls == [message["tool_call_id"] for message in left if message["role"] == "tool"]
        assert headers["x-forge-compacted"] == f"{len(messages) - len([m for m in left if m in messages])} messages"


async def test_the_same_history_is_sent_as_the_same_bytes_and_a_longer_one_begins_with_them() -> None:
    turns = range(10, 30)
    async with behind(*[HI] * 40, policy=policy(context_tokens=3000)) as there:
        for turn in turns:
            await there.post("/v1/chat/completions", asked(messages=session(turn)))
        for turn in turns:
            await there.post("/v1/chat/completions", asked(messages=session(turn)))
    first, again = there.model.asked[: len(turns)], there.model.asked[len(turns) :]
    assert first == again
    sent = [msgspec.json.decode(body)["messages"] for body in first]
    kept = sum(after[: len(before)] == before for before, after in pairwise(sent))
    assert kept >= len(sent) * 0.6  # the others are the turns in which it was compacted anew


@pytest.mark.parametrize("stream", [False, True])
async def test_a_prompt_that_is_too_long_is_compacted_and_sent_once_more(stream: bool) -> None:
    reply = streamed(chunk({"content": "hi"}), chunk({}, "stop")) if stream else HI
    async with behind(overflow(), reply) as there:
        status, got, headers = await there.post(
            "/v1/chat/completions", asked(messages=session(30), odd=1, stream=stream)
        )
        assert (status, b"hi" in got) == (200, True)
        assert headers["x-forge-compacted"].endswith("messages")
        first, second = there.model.body(0), there.model.body(1)
        assert {**second, "messages": first["messages"]} == first
        assert len(second["messages"]) < len(first["messages"])


async def test_what_does_not_fit_then_either_is_refused_with_the_size_of_what_the_client_sent() -> None:
    async with behind(overflow(9000), overflow(2100)) as there:
        status, got, headers = await there.post("/v1/chat/completions", asked(messages=session(30)))
        error = msgspec.json.decode(got)["error"]
        assert (status, error["code"]) == (400, "context_length_exceeded")
        assert "9000 tokens > 2048" in error["message"]
        assert len(there.model.asked) == 2
        assert "x-forge-compacted" not in headers


@pytest.mark.parametrize("stream", [False, True])
async def test_a_prompt_that_corrections_have_made_too_long_ends_in_the_last_reply(stream: bool) -> None:
    """The client's own prompt has fitted: it would compact, or give up, for nothing."""
    wrong = ("look", '{"at":[]}')
    late = streamed(chunk({"content": "So:"}), chunk(called(*wrong)), chunk({}, "tool_calls"))
    reply = late if stream else whole(completion("So:", wrong))
    async with behind(reply, overflow(), policy=policy(overflow="compact")) as there:
        status, got, headers = await there.post("/v1/chat/completions", asked(stream=stream))
        assert (status, b'"look"' in got, got.count(b"So:"), b"exceed" in got) == (200, True, 1, False)
        assert len(there.model.asked) == 2
        if not stream:
            assert (headers["x-forge-outcome"], headers["x-forge-attempts"]) == ("exhausted", "2")
        _, told, _ = await there.get("/metrics")
        assert b'outcome="exhausted"} 1' in told


@pytest.mark.parametrize(("said", "posts"), [(None, 1), ("refuse", 1), ("compact", 2)])
async def test_clients_that_compact_by_the_error_are_told_it(said: str | None, posts: int) -> None:
    """Claude Code and Codex compact by it: they get it, unless the policy says otherwise."""
    tool = {"name": "look", "input_schema": LOOK["function"]["parameters"]}
    body: dict[str, object] = {"model": "m", "max_tokens": 9, "tools": [tool]}
    body["messages"] = [{"role": role, "content": "words " * 200} for role in ("user", "assistant") * 20][:-1]
    async with behind(overflow(), HI, policy=policy(overflow=said)) as there:
        status, got, _ = await there.post("/v1/messages", body)
        assert len(there.model.asked) == posts
        if posts == 1:
            assert status == 400
            assert b"prompt is too long: 3000 tokens > 2048 maximum" in got


async def test_a_backend_of_anthropics_is_sent_less_of_a_conversation_in_its_own_form() -> None:
    """The system prompt and its marks stay, roles take turns, and thinking keeps its signature."""
    system = [{"type": "text", "text": "You work here.", "cache_control": {"type": "ephemeral"}}]
    messages: list[dict[str, Any]] = [ASK]
    for turn in range(20):
        thought = {"type": "thinking", "thinking": "Hm.", "signature": f"s{turn}"}
        use = {"type": "tool_use", "id": f"c{turn}", "name": "look", "input": {"at": turn}}
        result = {"type": "tool_result", "tool_use_id": f"c{turn}", "content": "words " * 60}
        messages += [{"role": "assistant", "content": [thought, use]}, {"role": "user", "content": [result]}]
    tool = {"name": "look", "input_schema": LOOK["function"]["parameters"]}
    body = {"model": "m", "max_tokens": 99, "system": system, "messages": messages, "tools": [tool]}
    words = {"type": "invalid_request_error", "message": "prompt is too long: 3000 tokens > 2048 maximum"}
    reply: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
    reply |= {"content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"}
    reply["usage"] = {"input_tokens": 9, "output_tokens": 2}
    script = whole({"type": "error", "error": words}, 400), whole(reply)
    async with behind(*script, profile="anthropic", model="m", policy=policy(overflow="compact")) as there:
        status, _, headers = await there.post("/v1/messages", body, anthropic_version="2023-06-01")
        sent = there.model.body(1)
        assert (status, {**sent, "messages": messages}) == (200, body)
        left = sent["messages"]
        assert [message["role"] for message in left] == [("user", "assistant")[n % 2] for n in range(len(left))]
        assert left[-2:] == messages[-2:]
        assert "x-forge-compacted" in headers


async def test_a_result_that_is_cut_keeps_the_clients_other_fields_and_pictures_stay() -> None:
    """The newest results alone are too long: only their text is another."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    messages = [{"role": "user", "content": [{"type": "text", "text": "Look."}, picture]}, *session(1, words=2000)[2:]]
    messages[-1]["odd"] = True
    async with behind(HI, policy=policy(context_tokens=2000)) as there:
        await there.post("/v1/chat/completions", asked(messages=messages))
        question, call, result = there.model.body(0)["messages"]
        assert [question, call] == messages[:2]
        assert (result["odd"], result["tool_call_id"]) == (True, "c0")
        assert "chars removed" in result["content"]


async def test_what_cannot_be_compacted_is_passed_on_and_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    messages = [{"role": "user", "content": "word " * 4000}]
    with caplog.at_level(logging.INFO, "forge.proxy"):
        async with behind(HI, policy=policy(context_tokens=1024)) as there:
            await there.post("/v1/chat/completions", asked(messages=messages))
            assert there.model.body(0)["messages"] == messages
    assert "too long for context_tokens, and cannot be compacted" in caplog.text


OLLAMA = {"api/show": {"model_info": {"qwen3.context_length": 32768}}, "api/ps": {"models": []}, "props": None}
SAID = whole({"message": {"role": "assistant", "content": "hi"}, "done": True, "done_reason": "stop"})


async def test_ollama_is_asked_for_enough_context_and_told_not_to_cut() -> None:
    """It would cut a prompt without a word, and load the model anew for each other size."""
    async with behind(*[SAID] * 4, model="qwen3:4b", profile="ollama", pages=OLLAMA) as there:
        for turns in (1, 90, 1, 3000):
            await there.post("/v1/chat/completions", asked(messages=session(turns)))
        sent = [there.model.body(number) for number in range(4)]
        assert [body["options"]["num_ctx"] for body in sent] == [4096, 16384, 16384, 32768]
        assert all((body["truncate"], body["shift"]) == (False, False) for body in sent)
        told = msgspec.json.decode((await there.get("/props"))[1])
        assert told["default_generation_settings"]["n_ctx"] == 32768


async def test_what_ollama_finds_too_long_is_compacted_and_sent_once_more() -> None:
    words = "the prompt is longer than the context length currently available to the model"
    refused = whole({"error": words}, 400)
    async with behind(refused, SAID, refused, model="qwen3:4b", profile="ollama", pages=OLLAMA) as there:
        status, _, headers = await there.post("/v1/chat/completions", asked(messages=session(600)))
        assert (status, "x-forge-compacted" in headers) == (200, True)
        assert len(there.model.asked[1]) < len(there.model.asked[0])
        status, got, _ = await there.post("/v1/chat/completions", asked())
        assert (status, msgspec.json.decode(got)["error"]["code"]) == (400, "context_length_exceeded")
        assert words in got.decode()


SAY: dict[str, Any] = {
    "type": "function",
    "function": {"name": "say_it", "parameters": {"type": "object", "properties": {}}, "odd": True},
}


async def test_a_policy_that_has_nothing_to_change_leaves_every_byte() -> None:
    body = b'{ "model":"tiny" , "messages":%b, "tools" : %b }' % (
        msgspec.json.encode([{"role": "system", "content": "Current date: 2026-11-22"}, ASK]),
        msgspec.json.encode([LOOK]),
    )
    shaping = {"hide_tools": "fly*", "reasoning_in_replies": "strip", "context_tokens": 9000}
    reply = (
        b'{"id":"a", "object":"chat.completion","created":1,"model":"m" , "choices":[{"index":0,"message":%b,%b}]}'
        % (
            b'{"role":"assistant","content":"hi"}',
            b'"finish_reason":"stop"',
        )
    )
    async with behind(whole(reply), policy=policy(**shaping)) as there:
        _, got, _ = await there.post("/v1/chat/completions", body)
        assert (there.model.asked, got) == ([body], reply)


async def test_hidden_tools_are_not_offered_and_not_called() -> None:
    calls = whole(completion(None, ("say_it", "{}"))), HI
    async with behind(*calls, policy=policy(hide_tools="say*")) as there:
        status, _, _ = await there.post("/v1/chat/completions", asked(tools=[SAY, LOOK, SAY], odd=1))
        assert status == 200
        assert there.model.body(0) == asked(odd=1)
        assert "say_it" in there.model.body(1)["messages"][-1]["content"]  # there is no such tool


async def test_a_request_without_any_tool_left_has_none() -> None:
    tools = {"tools": [SAY], "tool_choice": "auto", "parallel_tool_calls": True}
    other = {"tools": [{"name": "say_it", "input_schema": {"type": "object"}}], "tool_choice": {"type": "auto"}}
    async with behind(HI, HI, policy=policy(hide_tools=("look", "say_it"))) as there:
        await there.post("/v1/chat/completions", asked(**tools))
        await there.post("/v1/messages", {"model": "m", "max_tokens": 9, "messages": [ASK], **other})
        assert there.model.body(0) == {"model": "tiny", "messages": [ASK]}
        assert "tools" not in there.model.body(1)


@pytest.mark.parametrize(
    ("choice", "tools"),
    [({"type": "function", "function": {"name": "say_it"}}, [SAY, LOOK]), ("required", [SAY])],
)
async def test_a_demand_for_a_hidden_tool_is_refused_in_a_sentence(choice: object, tools: list[object]) -> None:
    async with behind(policy=policy(hide_tools="say*")) as there:
        status, got, _ = await there.post("/v1/chat/completions", asked(tools=tools, tool_choice=choice))
        error = msgspec.json.decode(got)["error"]
        assert (status, error["param"], there.model.asked) == (400, "tool_choice", [])
        assert "hidden from this model by the policy" in error["message"]


async def test_recommended_sampling_is_added_where_the_client_says_nothing() -> None:
    model = "Qwen3-4B-Instruct-2507-Q4_K_M.gguf"
    async with behind(HI, HI, model=model, policy=policy(sampling="recommended")) as there:
        await there.post("/v1/chat/completions", asked(model=model, temperature=0))
        sent = there.model.body(0)
        assert sent == asked(model=model, temperature=0, top_p=0.8, top_k=20, min_p=0.0)
        body = {"model": "m", "max_tokens": 9, "messages": [ASK], "top_k": 3}
        await there.post("/v1/messages", body)
        sent = there.model.body(1)
        assert (sent["temperature"], sent["top_p"], sent["top_k"], sent["max_tokens"]) == (0.7, 0.8, 3, 9)
    async with behind(policy=policy(sampling="recommended")) as there:
        status, got, _ = await there.post("/v1/chat/completions", asked())
        assert (status, b"no recommended sampling is known for tiny" in got) == (400, True)


async def test_thinking_is_asked_for_or_not_where_the_client_says_nothing() -> None:
    async with behind(HI, HI, HI, HI, policy=policy(thinking="off")) as there:
        for more in ({}, {"chat_template_kwargs": {"a": 1}}, {"reasoning_effort": "high"}):
            await there.post("/v1/chat/completions", asked(**more))
        await there.post("/v1/messages", {"model": "m", "max_tokens": 9, "messages": [ASK]})
        told = [there.model.body(number).get("chat_template_kwargs") for number in range(4)]
        off = {"enable_thinking": False}
        assert told == [off, {**off, "a": 1}, None, off]
    async with behind(SAID, model="qwen3:4b", profile="ollama", pages=OLLAMA, policy=policy(thinking="on")) as there:
        await there.post("/v1/chat/completions", asked())
        assert there.model.body(0)["think"] is True


@pytest.mark.parametrize("tools", [[LOOK], []])
async def test_reasoning_is_stripped_from_replies_and_streams(tools: list[object]) -> None:
    reply = completion("hi")
    reply["choices"][0]["message"]["reasoning_content"] = "Hm."
    line = streamed(ROLE, chunk({"reasoning_content": "Hm."}), chunk({"content": "hi"}), chunk({}, "stop"))
    async with behind(whole(reply), line, line, policy=policy(reasoning_in_replies="strip")) as there:
        _, got, _ = await there.post("/v1/chat/completions", asked(tools=tools))
        assert msgspec.json.decode(got)["choices"][0]["message"] == {"role": "assistant", "content": "hi"}
        told = await all_of(there, asked(tools=tools, stream=True))
        assert (b"Hm." in told, b'"content":"hi"' in told) == (False, True)
        body = {"model": "m", "max_tokens": 9, "messages": [ASK], "stream": True}
        assert b"Hm." not in await all_of(there, body, "/v1/messages")


RESPONDED = completion(None, ("respond", '{"message": "It is a tree."}'))


async def test_the_model_may_answer_by_a_tool_that_its_client_never_sees() -> None:
    async with behind(whole(RESPONDED), policy=policy(respond=True)) as there:
        _, got, _ = await there.post("/v1/chat/completions", asked(odd=1))
        choice = msgspec.json.decode(got)["choices"][0]
        assert choice["message"] == {"role": "assistant", "content": "It is a tree."}
        assert choice["finish_reason"] == "stop"
        sent = there.model.body(0)
        assert [tool["function"]["name"] for tool in sent["tools"]] == ["look", "respond"]
        assert {**sent, "tools": [LOOK]} == asked(odd=1)


async def test_in_streams_of_every_protocol_too() -> None:
    line = streamed(ROLE, chunk(called("respond", '{"message": "It is a tree."}')), CALLED)
    tool = {"name": "look", "input_schema": LOOK["function"]["parameters"]}
    body = {"model": "m", "max_tokens": 9, "tools": [tool], "messages": [ASK], "stream": True}
    item = {"type": "function", **LOOK["function"]}
    async with behind(*[line] * 3, policy=policy(respond=True)) as there:
        told = await all_of(there, asked(stream=True))
        assert b'"content":"It is a tree."' in told
        assert b'"finish_reason":"stop"' in told
        others = await all_of(there, body, "/v1/messages")
        assert b'"stop_reason":"end_turn"' in others
        others += await all_of(
            there, {"model": "m", "input": "Look.", "tools": [item], "stream": True}, "/v1/responses"
        )
        assert others.count(b'"delta":"It is a tree."') == 1
        assert b"respond" not in told.replace(b"response", b"")


async def test_beside_another_call_the_answer_is_dropped_and_a_wrong_one_is_corrected() -> None:
    both = completion(None, ("look", '{"at": 4}'), ("respond", '{"message": "Looking."}'))
    wrong = completion(None, ("respond", '{"text": 3}'))
    async with behind(whole(both), whole(wrong), whole(RESPONDED), policy=policy(respond=True)) as there:
        _, got, _ = await there.post("/v1/chat/completions", asked())
        calls = msgspec.json.decode(got)["choices"][0]["message"]["tool_calls"]
        assert [call["function"]["name"] for call in calls] == ["look"]
        _, got, headers = await there.post("/v1/chat/completions", asked())
        assert (b"It is a tree." in got, headers["x-forge-attempts"]) == (True, "2")


@pytest.mark.parametrize(
    "more",
    [{"tools": []}, {"tool_choice": "required"}, {"tool_choice": "none"}, {"response_format": {"type": "json_object"}}],
)
async def test_no_such_tool_where_there_is_nothing_to_choose(more: dict[str, object]) -> None:
    line = whole(completion(None, ("look", '{"at": 4}')))
    async with behind(line, policy=policy(respond=True)) as there:
        await there.post("/v1/chat/completions", asked(**more))
        assert there.model.body(0) == asked(**more)
