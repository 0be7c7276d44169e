"""Addresses and names of backends: what is understood, and what is suggested for a misspelt name."""

import pytest

from forge.backends import Server, named
from forge.backends.address import is_address, spelt_out
from forge.backends.profile import named_profile
from forge.backends.servers.models import resolve
from forge.errors import ForgeError
from stages.options import did_you_mean


@pytest.mark.parametrize(
    "text", ["127.0.0.1:8080", "localhost:8080", "LocalHost", "[::1]:8080", "127.0.1.1:80/v1", "localhost/v1"]
)
def test_an_address_of_this_machine_needs_no_scheme(text: str) -> None:
    assert is_address(text)
    assert spelt_out(text) == f"http://{text}"
    assert isinstance(named(text), Server)
    assert isinstance(named(f"vllm:{text}"), Server)


@pytest.mark.parametrize("text", ["https://gpu:8080", "HTTP://127.0.0.1:8080"])
def test_an_address_with_a_scheme_is_left_as_it_is(text: str) -> None:
    assert is_address(text)
    assert spelt_out(text) == text


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("olama:qwen3:8b", "ollama:qwen3:8b"),
        ("loacl", "local"),
        ("llama_server:x.gguf", "llama-server:x.gguf"),
        ("antropic:claude", "anthropic:claude"),
    ],
)
def test_a_misspelt_backend_is_answered_with_what_was_meant(wrong: str, meant: str) -> None:
    with pytest.raises(ForgeError, match=f"Did you mean {meant}"):
        named(wrong)


def test_a_misspelt_profile_and_model() -> None:
    with pytest.raises(ForgeError, match=r"Did you mean vllm\?"):
        named_profile("vlm")
    with pytest.raises(ForgeError, match=r"Did you mean smollm2-135m\?"):
        resolve("smolm2-135m")


def test_swapped_letters_count_more_than_missing_ones() -> None:
    assert did_you_mean("--modle", ["--mode", "--model"]) == " Did you mean --model?"
    assert did_you_mean("zzz", ["--mode", "--model"]) == ""
    assert did_you_mean("x" * 1_000_000, ["x" * 80]) == " Did you mean " + "x" * 80 + "?"
