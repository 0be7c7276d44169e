"""Real models in a real llama.cpp: fetched once into the user's cache, served by this process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from forge.backends.servers import KNOWN, LlamaCpp, Settings, ensure_model


def served(name: str) -> Iterator[str]:
    server = LlamaCpp(Settings(path=ensure_model(KNOWN[name])))
    try:
        yield server.url
    finally:
        server.stop()


@pytest.fixture(scope="session")
def smol_path() -> Path:
    return ensure_model(KNOWN["smollm2-135m"])


@pytest.fixture(scope="session")
def smol() -> Iterator[str]:
    """SmolLM2: quick, and never right: for the ways in which a run fails."""
    yield from served("smollm2-135m")


@pytest.fixture(scope="session")
def qwen() -> Iterator[str]:
    """Qwen2.5-Coder 0.5B: the smallest that finishes a workflow."""
    yield from served("qwen2.5-coder-0.5b")
