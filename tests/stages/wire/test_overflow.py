"""Which faults tell of a prompt that is too long, and what they say of it."""

import msgspec
import pytest

from stages.effect import Fault
from stages.wire.overflow import Overflow, overflow_of


def fault(body: object, status: int = 400) -> Fault:
    return Fault(kind="status", detail="", status=status, body=msgspec.json.encode(body).decode())


OPENAI = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
VLLM = (
    "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4200 in the messages, 800 "
    "in the completion). Please reduce the length of the messages or completion."
)
OLLAMA = (
    "the prompt is longer than the context length currently available to the model; shorten the prompt, adjust the "
    "context length in settings, or use a model with a longer context length"
)
LM_STUDIO = (
    "Trying to keep the first 6000 tokens when context the overflows. However, the model is loaded with context length "
    "of only 4096 tokens, which is not enough."
)
MAX = (
    "Prompt is too long: 5030 tokens exceeds the configured maximum context length of 2048 tokens. Please shorten your "
    "prompt."
)
LLAMA = {
    "code": 400,
    "message": "the request exceeds the available context size",
    "type": "exceed_context_size_error",
    "n_prompt_tokens": 9000,
    "n_ctx": 8192,
}


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ({"error": LLAMA}, Overflow(tokens=9000, maximum=8192)),
        ({"error": LLAMA | {"message": "zu lang"}}, Overflow(tokens=9000, maximum=8192)),
        ({"error": {"message": OPENAI, "code": "context_length_exceeded"}}, Overflow(tokens=9000, maximum=8192)),
        ({"object": "error", "message": VLLM, "code": 400}, Overflow(tokens=4200, maximum=4096)),
        ({"error": {"message": VLLM}}, Overflow(tokens=4200, maximum=4096)),
        (
            {"type": "error", "error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}},
            Overflow(tokens=210_000, maximum=200_000),
        ),
        ({"error": {"code": "400", "message": MAX}}, Overflow(tokens=5030, maximum=2048)),
        ({"error": OLLAMA}, Overflow()),
        ({"error": LM_STUDIO}, Overflow(tokens=6000, maximum=4096)),
        ({"error": {"message": "request (9412 tokens) exceeds the available context size (8192 tokens)"}}, None),
    ],
)
def test_servers_say_it_in_their_own_ways(body: object, found: Overflow | None) -> None:
    assert overflow_of(fault(body)) == (found or Overflow(tokens=9412, maximum=8192))


@pytest.mark.parametrize(
    "other",
    [
        fault({"error": {"message": "temperature must be below 2"}}),
        fault({"error": LLAMA}, 429),
        Fault(kind="status", detail="", status=400, body="<html>context length"),
        Fault(kind="unreachable", detail="no context"),
        fault({"error": {"message": ["context length"], "code": {}}}),
    ],
)
def test_other_faults_are_none(other: Fault) -> None:
    assert overflow_of(other) is None
