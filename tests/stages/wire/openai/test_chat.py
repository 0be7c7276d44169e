"""Log-probabilities of chat completions: whole and streamed, in the shapes of three servers, and in wrong ones."""

from typing import Any

import msgspec
import pytest

from stages.confidence.measure import tokens_text
from stages.effect import Reply, TokenProbability
from stages.wire.deltas import gather_reply
from stages.wire.openai.chat import TOKENS_LIMIT, OpenAIStream, decode_reply


def openai(text: str, logprob: float, *others: tuple[str, float]) -> dict[str, Any]:
    """As OpenAI and vLLM have it."""
    listed = [{"token": other, "logprob": value, "bytes": [*other.encode()]} for other, value in others]
    return {"token": text, "logprob": logprob, "bytes": [*text.encode()], "top_logprobs": listed}


def llama_cpp(text: str, logprob: float, *others: tuple[str, float]) -> dict[str, Any]:
    """The same with the ids of tokens; recorded of build b10434."""
    listed = [{"id": 7, **one} for one in openai(text, logprob, *others)["top_logprobs"]]
    return {"id": 3, **openai(text, logprob), "top_logprobs": listed}


def whole(logprobs: object, text: str | None = "{}") -> Reply:
    choice = {"message": {"content": text}, "finish_reason": "stop", "logprobs": logprobs}
    reply = decode_reply(msgspec.json.encode({"choices": [choice]}))
    assert isinstance(reply, Reply)
    return reply


def streamed(*chunks: tuple[str | None, object]) -> Reply:
    """The chunks as a server sends them: a text, or none yet, and what is known of its tokens."""
    choices = [{"index": 0, "delta": {"content": text}, "logprobs": known} for text, known in chunks]
    events = [{"choices": [choice]} for choice in (*choices, {"index": 0, "delta": {}, "finish_reason": "stop"})]
    body = b"".join(b"data: " + msgspec.json.encode(event) + b"\n\n" for event in events) + b"data: [DONE]\n\n"
    _, pieces = OpenAIStream().advance(body)
    reply = gather_reply(pieces)
    assert isinstance(reply, Reply)
    return reply


@pytest.mark.parametrize("shape", [openai, llama_cpp], ids=["openai and vllm", "llama.cpp"])
def test_tokens_are_read_whole_and_streamed_alike(shape: Any) -> None:
    tokens = [shape("```", -1.35, ("{", -0.99), ("```", -1.35)), shape("{", -0.1, ("{", -0.1)), shape("}", 0.0)]
    reply = whole({"content": tokens, "refusal": None})
    assert reply.tokens == (
        TokenProbability("```", -1.35, (("{", -0.99), ("```", -1.35))),
        TokenProbability("{", -0.1, (("{", -0.1),)),
        TokenProbability("}", 0.0),
    )
    # llama.cpp takes a fence away from the text of a chunk, and sends its token all the same
    parts = [(None, {"content": [tokens[0]]}), ("{", {"content": [tokens[1]]}), ("}", {"content": [tokens[2]]})]
    assert streamed(*parts) == reply
    assert tokens_text(reply.tokens) == "```{}"


@pytest.mark.parametrize(
    "strange",
    [
        None,
        {},
        {"tokens": ["{"], "token_logprobs": [-0.1]},
        {"content": [{"token": "{", "prob": 0.4, "top_probs": []}]},
        {"content": [{"token": 7, "logprob": "low"}]},
        7,
    ],
    ids=str,
)
def test_a_reply_without_probabilities_or_with_others_is_a_reply(strange: object) -> None:
    assert whole(strange) == Reply(text="{}") == streamed(("{}", strange))


def test_of_a_reply_that_is_too_long_none_are_kept() -> None:
    token = openai("a", -1.0)
    assert len(whole({"content": [token] * TOKENS_LIMIT}).tokens) == TOKENS_LIMIT
    assert whole({"content": [token] * (TOKENS_LIMIT + 1)}).tokens == ()
    longer = [("a", {"content": [token] * TOKENS_LIMIT}), ("a", {"content": [token]}), ("a", {"content": [token]})]
    assert streamed(*longer).tokens == ()


def test_a_stream_one_of_whose_chunks_cannot_be_read_has_none() -> None:
    assert (
        streamed(("a", {"content": [openai("a", -1.0)]}), ("b", 7), ("c", {"content": [openai("c", -1.0)]})).tokens
        == ()
    )
