"""Real models in a real llama.cpp: fetched once into the user's cache, each served by a process of its own."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from forge.backends.servers.download import ensure_model
from forge.backends.servers.models import KNOWN

# A thread for each of the two workers of `make test`; more would only wait for one another.
PROGRAM = """
import sys
from pathlib import Path
from forge.backends.servers.launch import Launch
from forge.backends.servers.llama_cpp import LlamaCpp
server = LlamaCpp(Launch(model=sys.argv[1], program="local", threads=1), Path(sys.argv[1]), chat_template=sys.argv[2])
print(server.url, flush=True)
sys.stdin.read()
server.stop()
"""


@contextmanager
def served(name: str, chat_template: str = "") -> Iterator[str]:
    """The address of a server of that model, which ends with the block, and with this process."""
    command = [sys.executable, "-c", PROGRAM, str(ensure_model(KNOWN[name])), chat_template]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.stdin.close()


@pytest.fixture(scope="session")
def smol_path() -> Path:
    return ensure_model(KNOWN["smollm2-135m"])


@pytest.fixture(scope="session")
def smol() -> Iterator[str]:
    """SmolLM2: quick, and never right: for the ways in which a run fails."""
    with served("smollm2-135m") as url:
        yield url


@pytest.fixture(scope="session")
def qwen() -> Iterator[str]:
    """Qwen2.5-Coder 0.5B: the smallest that finishes a workflow."""
    with served("qwen2.5-coder-0.5b") as url:
        yield url
