"""Requests that a policy shapes, between a real client and a scripted server: what is left as it came, and what not."""

import asyncio
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from forge.proxy import ModelPolicy, Policy
from tests.scripted_model import Line, called, chunk, completion, sse, streamed, whole
from tests.test_proxy import ASK, LOOK, asked, behind, run
from tests.test_proxy_streams import CALLED, ROLE, all_of, calls_of, streaming

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


def test_a_conversation_that_fits_its_budget_passes_byte_for_byte() -> None:
    body = b'{ "model":"tiny" , "messages":%b, "odd" : [1,  2] }' % msgspec.json.encode(session(2))

    async def go() -> None:
        async with behind(HI, policy=policy(context_tokens=100_000)) as there:
            _, _, headers = await there.post("/v1/chat/completions", body)
            assert there.model.asked == [body]
            assert "x-forge-compacted" not in headers

    run(go)


@pytest.mark.parametrize("tools", [[LOOK], []])
@pytest.mark.parametrize("stream", [False, True])
def test_a_conversation_over_its_budget_is_compacted_and_the_rest_stays(tools: list[object], stream: bool) -> None:
    reply = streamed(chunk({"content": "hi"}), chunk({}, "stop")) if stream else HI
    messages = session(30)
    body = asked(messages=messages, odd=[1], tools=tools, stream=stream)

    async def go() -> None:
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

    run(go)


def test_the_same_history_is_sent_as_the_same_bytes_and_a_longer_one_begins_with_them() -> None:
    async def go() -> None:
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

    run(go)


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_that_is_too_long_is_compacted_and_sent_once_more(stream: bool) -> None:
    reply = streamed(chunk({"content": "hi"}), chunk({}, "stop")) if stream else HI

    async def go() -> None:
        async with behind(overflow(), reply) as there:
            status, got, headers = await there.post(
                "/v1/chat/completions", asked(messages=session(30), odd=1, stream=stream)
            )
            assert (status, b"hi" in got) == (200, True)
            assert headers["x-forge-compacted"].endswith("messages")
            first, second = there.model.body(0), there.model.body(1)
            assert {**second, "messages": first["messages"]} == first
            assert len(second["messages"]) < len(first["messages"])

    run(go)


def test_what_does_not_fit_then_either_is_refused_with_the_size_of_what_the_client_sent() -> None:
    async def go() -> None:
        async with behind(overflow(9000), overflow(2100)) as there:
            status, got, headers = await there.post("/v1/chat/completions", asked(messages=session(30)))
            error = msgspec.json.decode(got)["error"]
            assert (status, error["code"]) == (400, "context_length_exceeded")
            assert "9000 tokens > 2048" in error["message"]
            assert len(there.model.asked) == 2
            assert "x-forge-compacted" not in headers

    run(go)


@pytest.mark.parametrize(("said", "posts"), [(None, 1), ("refuse", 1), ("compact", 2)])
def test_clients_that_compact_by_the_error_are_told_it(said: str | None, posts: int) -> None:
    """Claude Code and Codex compact by it: they get it, unless the policy says otherwise."""
    tool = {"name": "look", "input_schema": LOOK["function"]["parameters"]}
    body: dict[str, object] = {"model": "m", "max_tokens": 9, "tools": [tool]}
    body["messages"] = [{"role": role, "content": "words " * 200} for role in ("user", "assistant") * 20][:-1]

    async def go() -> None:
        async with behind(overflow(), HI, policy=policy(overflow=said)) as there:
            status, got, _ = await there.post("/v1/messages", body)
            assert len(there.model.asked) == posts
            if posts == 1:
                assert status == 400
                assert b"prompt is too long: 3000 tokens > 2048 maximum" in got

    run(go)


def test_chat_clients_are_refused_too_where_the_policy_says_so() -> None:
    async def go() -> None:
        async with behind(overflow(), policy=policy(overflow="refuse")) as there:
            status, _, _ = await there.post("/v1/chat/completions", asked(messages=session(30)))
            assert (status, len(there.model.asked)) == (400, 1)

    run(go)


def test_a_result_that_is_cut_keeps_the_clients_other_fields_and_pictures_stay() -> None:
    """The newest results alone are too long: only their text is another."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    messages = [{"role": "user", "content": [{"type": "text", "text": "Look."}, picture]}, *session(1, words=2000)[2:]]
    messages[-1]["odd"] = True

    async def go() -> None:
        async with behind(HI, policy=policy(context_tokens=2000)) as there:
            await there.post("/v1/chat/completions", asked(messages=messages))
            question, call, result = there.model.body(0)["messages"]
            assert [question, call] == messages[:2]
            assert (result["odd"], result["tool_call_id"]) == (True, "c0")
            assert "chars removed" in result["content"]

    run(go)


OLLAMA = {"api/show": {"model_info": {"qwen3.context_length": 32768}}, "api/ps": {"models": []}, "props": None}
SAID = whole({"message": {"role": "assistant", "content": "hi"}, "done": True, "done_reason": "stop"})


def test_ollama_is_asked_for_enough_context_and_told_not_to_cut() -> None:
    """It would cut a prompt without a word, and load the model anew for each other size."""

    async def go() -> None:
        async with behind(*[SAID] * 4, model="qwen3:4b", profile="ollama", pages=OLLAMA) as there:
            for turns in (1, 90, 1, 3000):
                await there.post("/v1/chat/completions", asked(messages=session(turns)))
            sent = [there.model.body(number) for number in range(4)]
            assert [body["options"]["num_ctx"] for body in sent] == [4096, 16384, 16384, 32768]
            assert all((body["truncate"], body["shift"]) == (False, False) for body in sent)
            told = msgspec.json.decode((await there.get("/props"))[1])
            assert told["default_generation_settings"]["n_ctx"] == 32768

    run(go)


def test_what_ollama_finds_too_long_is_compacted_and_sent_once_more() -> None:
    words = "the prompt is longer than the context length currently available to the model"
    refused = whole({"error": words}, 400)

    async def go() -> None:
        async with behind(refused, SAID, refused, model="qwen3:4b", profile="ollama", pages=OLLAMA) as there:
            status, _, headers = await there.post("/v1/chat/completions", asked(messages=session(600)))
            assert (status, "x-forge-compacted" in headers) == (200, True)
            assert len(there.model.asked[1]) < len(there.model.asked[0])
            status, got, _ = await there.post("/v1/chat/completions", asked())
            assert (status, msgspec.json.decode(got)["error"]["code"]) == (400, "context_length_exceeded")
            assert words in got.decode()

    run(go)


def more_of(arguments: str) -> dict[str, Any]:
    return chunk({"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]})


def test_arguments_are_shown_as_they_come_where_the_policy_wants_it() -> None:
    async def go() -> None:
        gate = asyncio.Event()
        script = (ROLE, chunk({"content": "Well. <"}), chunk(called("look", '{"at"')), more_of(": 4}"), CALLED)
        async with (
            behind(streamed(*script, gate3=gate), policy=policy(early_arguments=True)) as there,
            streaming(there, asked(stream=True)) as answer,
        ):
            told = b""
            while b'"arguments":"{\\"at\\""' not in told:
                told += await answer.content.readany()
            assert b"Well. <" in told
            gate.set()
            told += await answer.read()
            assert calls_of(told) == [("look", '{"at": 4}')]
            assert told == b"".join(part if isinstance(part, bytes) else sse(part) for part in script)

    run(go)


@pytest.mark.parametrize("arguments", ['{"at": "the door"}', '{"at": "4"}', '{"at": '])
def test_calls_that_were_shown_and_do_not_fit_end_the_stream_with_an_error(arguments: str) -> None:
    """Also those that forge would have repaired: what was shown cannot be taken back."""
    tool = {"name": "look", "input_schema": LOOK["function"]["parameters"]}
    message = {"model": "m", "max_tokens": 9, "messages": [ASK], "tools": [tool], "stream": True}

    async def go() -> None:
        line = streamed(ROLE, chunk(called("look", arguments)), CALLED)
        async with behind(line, line, policy=policy(early_arguments=True)) as there:
            told = await all_of(there, asked(stream=True))
            shown, _, error = told.rstrip().rpartition(b"data: ")
            assert calls_of(shown) == [("look", arguments)]
            assert msgspec.json.decode(error)["error"]["code"] == "call_refused"
            told = await all_of(there, message, "/v1/messages")
            assert b"event: error" in told.rpartition(b"input_json_delta")[2]
            assert b"message_stop" not in told
            assert len(there.model.asked) == 2

    run(go)


def test_a_call_in_text_is_still_corrected_unseen_with_early_arguments() -> None:
    bad = streamed(
        ROLE, chunk({"content": '<tool_call>{"name": "look", "arguments": {"at": "x"}}</tool_call>'}), CALLED
    )
    good = streamed(ROLE, chunk(called("look", '{"at": 4}')), CALLED)

    async def go() -> None:
        async with behind(bad, good, policy=policy(early_arguments=True)) as there:
            told = await all_of(there, asked(stream=True))
            assert calls_of(told) == [("look", '{"at": 4}')]
            assert b"<tool_call>" not in told

    run(go)
