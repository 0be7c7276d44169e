"""`--larger`: a second model on the command line, with two real server processes, and what is refused."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from math import log
from pathlib import Path

import pytest

from tests.commands import forge as command
from tests.scripted_server import requests_of, scripted_server

FLOW = """
from typing import Literal
from forge import Workflow, tool
from stages.confidence.measure import AskLarger, WhenUnsure

@tool
def route(queue: Literal["billing", "sales"]) -> str:
    "Route the ticket."
    return queue

when = WhenUnsure(below=0.6, then=AskLarger())
workflow = Workflow("desk", tools=[route], terminal_tool="route", unsure=when)
certain = Workflow("certain", tools=[route], terminal_tool="route")
"""


def answer(queue: str, probability: float) -> dict[str, object]:
    """A chat completion whose call has that probability, as vLLM writes it."""
    tokens = [('{"tool": "route", "args": {"queue": "', 1.0), (queue, probability), ('"}}', 1.0)]
    told = [{"token": text, "logprob": log(p), "bytes": [*text.encode()], "top_logprobs": []} for text, p in tokens]
    message = {"role": "assistant", "content": "".join(text for text, _ in tokens)}
    return {"choices": [{"message": message, "finish_reason": "stop", "logprobs": {"content": told}}]}


@contextmanager
def both(folder: Path, small: float) -> Iterator[tuple[str, str]]:
    """The addresses of a model that says sales, so sure, and of a larger one that says billing."""
    (folder / "flow.py").write_text(FLOW)
    for name in ("small", "larger"):
        (folder / name).mkdir()
    with (
        scripted_server(folder / "small", [answer("sales", small)]) as first,
        scripted_server(folder / "larger", [answer("billing", 0.9)]) as second,
    ):
        yield f"vllm:{first}", f"vllm:{second}"


def forge(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return command(*words, cwd=folder)


OPTIONS = ("--mode", "constrained", "--no-probe", "--context", "4096", "--journal", "run.jsonl")


@pytest.mark.parametrize(("sure", "value"), [(0.4, "billing"), (0.9, "sales")])
def test_a_run_asks_the_larger_model_only_where_the_small_one_is_not_sure(
    tmp_path: Path, sure: float, value: str
) -> None:
    with both(tmp_path, sure) as (small, larger):
        ran = forge(tmp_path, "run", "flow.py:workflow", "Go.", "--backend", small, "--larger", larger, *OPTIONS)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert value in ran.stdout
        assert len(requests_of(larger.partition(":")[2])) == (value == "billing")


def test_a_larger_model_that_nothing_asks_is_refused(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(FLOW)
    ran = forge(tmp_path, "run", "flow.py:certain", "Go.", "--backend", "127.0.0.1:9", "--larger", "127.0.0.1:9")
    assert (ran.returncode, "Traceback" in ran.stderr) == (2, False)
    assert "the workflow never asks a larger model" in ran.stderr
