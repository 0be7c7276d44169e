"""Addresses and names of backends: what is understood, and what is suggested for what is not."""

import pytest

from forge.backends import Server, named
from forge.backends.address import is_address, spelt_out, suggested
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
    ("text", "meant"),
    [
        ("192.168.1.7:8080", "http://192.168.1.7:8080"),
        ("gpu-box:8080", "http://gpu-box:8080"),
        ("api.example.com/v1", "http://api.example.com/v1"),
        (":8080", "http://127.0.0.1:8080"),
        ("8080", "http://127.0.0.1:8080"),
        ("0.0.0.0:8080", "http://127.0.0.1:8080"),
        ("htp://gpu:8080/v1", "http://gpu:8080/v1"),
        ("http:/127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http:127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("https:gpu:8080", "https://gpu:8080"),
        ("wss://gpu:8080", "https://gpu:8080"),
    ],
)
def test_what_is_nearly_an_address_is_explained(text: str, meant: str) -> None:
    assert suggested(text) == f" Did you mean {meant}?"
    with pytest.raises(ForgeError, match=f"Did you mean {meant}"):
        named(text)


@pytest.mark.parametrize("text", ["http://127.0.0.1:99999", "gpu-box:70000", "127.0.0.1:00"])
def test_a_port_out_of_range_is_explained(text: str) -> None:
    assert suggested(text) == " A port is a number from 1 to 65535."
    with pytest.raises(ForgeError, match=r"A port is a number from 1 to 65535\.$"):
        named(text)


@pytest.mark.parametrize("text", ["", "here", "user:secret@gpu:8080", "a b:8080", "127.0.0.1;8080", "x" * 300 + ":80"])
def test_nothing_is_suggested_for_what_is_no_address_or_may_hold_a_key(text: str) -> None:
    assert suggested(text) == ""


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
