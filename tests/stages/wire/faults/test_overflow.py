"""Which faults tell of a prompt that is too long, and what they say of it."""

import msgspec
import pytest

from stages.effect import Fault
from stages.wire.faults import Overflow, overflow_of


def fault(body: object, status: int = 400) -> Fault:
    return Fault(kind="status", detail="", status=status, body=msgspec.json.encode(body).decode())


OPENAI = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
VLLM = (
    "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4200 in the messages, 800 "
    "in the completion). Please reduce the length of the messages or completion."
)
VLLM_BOUND = (
    "This model's maximum context length is 4096 tokens. However, your prompt contains at least 4097 input tokens, "
    "which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. "
    "(parameter=input_tokens, value=4097)"
)
VLLM_REPLY = (
    "'max_tokens' or 'max_completion_tokens' is too large: 3000. This model's maximum context length is 4096 tokens "
    "and your request has 2000 input tokens (3000 > 4096 - 2000)."
)
LLAMA_CPP_PYTHON = (
    "This model's maximum context length is 4096 tokens. However, you requested 9038 tokens (9030 in the messages, 8 "
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
        ({"error": {"message": VLLM_BOUND, "code": 400}}, Overflow(tokens=4097, maximum=4096, at_least=True)),
        ({"error": {"message": VLLM_REPLY, "code": 400}}, Overflow(tokens=2000, maximum=4096)),
        (
            {"error": {"message": LLAMA_CPP_PYTHON, "code": "context_length_exceeded"}},
            Overflow(tokens=9030, maximum=4096),
        ),
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
        fault({"error": {"message": "max_tokens=100000 cannot be greater than max_model_len=4096.", "code": 400}}),
        fault({"error": {"message": "temperature must be below 2"}}),
        fault({"error": LLAMA}, 429),
        Fault(kind="status", detail="", status=400, body="<html>context length"),
        Fault(kind="unreachable", detail="no context"),
        fault({"error": {"message": ["context length"], "code": {}}}),
    ],
)
def test_other_faults_are_none(other: Fault) -> None:
    assert overflow_of(other) is None
