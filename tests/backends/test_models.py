"""Models by name and by file: what their metadata says, and a context that they were not trained for."""

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.backends import Launch, Local, ServerManager
from forge.backends.servers.models import KNOWN, trained_context
from forge.errors import ForgeError


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


NAME = text("general.name") + struct.pack("<I", 8) + text("Tiny")
TAGS = text("general.tags") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b")
SCALES = text("tiny.scales") + struct.pack("<IIQff", 9, 6, 2, 1.0, 2.0)
FLAG = text("tiny.flag") + struct.pack("<I?", 7, True)
CONTEXT = text("tiny.context_length") + struct.pack("<II", 4, 2048)
LONG = text("tiny.context_length") + struct.pack("<IQ", 10, 1 << 20)
ODD = text("tiny.context_length") + struct.pack("<I", 8) + text("2048")
ZERO = text("tiny.context_length") + struct.pack("<II", 4, 0)
NESTED = text("tiny.nested") + struct.pack("<IIQ", 9, 9, 1)


def gguf(*pairs: bytes, count: int | None = None) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs) if count is None else count) + b"".join(pairs)


@pytest.mark.parametrize(
    ("content", "tokens"),
    [
        (gguf(NAME, TAGS, SCALES, FLAG, CONTEXT), 2048),
        (gguf(LONG), 1 << 20),
        (gguf(NAME), None),
        (gguf(ODD), None),
        (gguf(ZERO), None),
        (gguf(NESTED, CONTEXT), None),
        (gguf(CONTEXT, count=0), None),
        (gguf(count=1 << 63), None),
        (gguf(NAME, CONTEXT)[:-1], None),
        (gguf(struct.pack("<Q", 1 << 63)), None),
        (b"GGUF", None),
        (b"", None),
        (b"<html>", None),
    ],
)
def test_the_context_that_a_file_was_trained_for(content: bytes, tokens: int | None, tmp_path: Path) -> None:
    file = tmp_path / "tiny.gguf"
    file.write_bytes(content)
    assert trained_context(file) == tokens


@given(st.binary(), st.integers(0, 1 << 64 - 1))
def test_no_file_is_too_odd_to_be_looked_at(tmp_path_factory: pytest.TempPathFactory, rest: bytes, count: int) -> None:
    file = tmp_path_factory.getbasetemp() / "odd.gguf"
    file.write_bytes(gguf(rest, count=count))
    assert (trained_context(file) or 1) > 0


def test_more_context_than_a_model_was_trained_for_is_refused_before_anything_is_fetched_or_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORGE_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "tiny.gguf"
    file.write_bytes(gguf(NAME, CONTEXT))
    with pytest.raises(ForgeError, match=r"1000000 tokens of context are more than smollm2-135m was trained for: 8192"):
        Local("smollm2-135m", context_tokens=1_000_000)
    for refused in (Local, lambda model, context_tokens: ServerManager(launch(model, context_tokens))):
        with pytest.raises(ForgeError, match=r"4096 tokens .* more than .*tiny\.gguf was trained for: 2048"):
            refused(str(file), context_tokens=4096)
        refused(str(file), context_tokens=2048)
    assert not (tmp_path / "cache").exists()


def launch(model: str, context_tokens: int) -> Launch:
    return Launch(model=model, program="local", context_tokens=context_tokens)


def test_every_known_model_says_what_it_was_trained_for() -> None:
    assert {name: model.context_tokens for name, model in KNOWN.items()} == {
        "qwen2.5-coder-0.5b": 32768,
        "qwen2.5-coder-1.5b": 32768,
        "smollm2-135m": 8192,
    }
