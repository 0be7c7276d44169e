"""The examples of the middleware run, as programs of their own, on a server that answers in each client's protocol."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.scripted_server import requests_of, scripted_server

ROOT = Path(__file__).parent.parent
SAID = 'I look it up first.\n```json\n{"tool": "get_order", "args": {"order_id": "A-17"}}\n```'
Turn = str | tuple[str, str, dict[str, object]]
TURNS: list[Turn] = [
    ("c1", "send_report", {"total": 5}),
    SAID,
    "All done!",
    ("c2", "send_report", {"total": "129.9"}),
]


def completion(turn: Turn) -> dict[str, object]:
    message: dict[str, object] = {"role": "assistant", "content": turn if isinstance(turn, str) else None}
    if not isinstance(turn, str):
        identity, name, arguments = turn
        function = {"name": name, "arguments": json.dumps(arguments)}
        message["tool_calls"] = [{"id": identity, "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
    return {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}


def message(turn: Turn) -> dict[str, object]:
    block: dict[str, object] = {"type": "text", "text": turn}
    if not isinstance(turn, str):
        block = {"type": "tool_use", "id": turn[0], "name": turn[1], "input": turn[2]}
    usage = {"input_tokens": 9, "output_tokens": 9}
    said = {"role": "assistant", "content": [block], "stop_reason": "end_turn", "usage": usage}
    return {"id": "x", "type": "message", "model": "m", "stop_sequence": None, **said}


@pytest.mark.parametrize(
    ("name", "path", "wire"),
    [("openai", "/v1", completion), ("anthropic", "", message), ("langchain", "/v1", completion)],
)
def test_an_example_skips_no_step_and_ends_with_the_result(
    name: str, path: str, wire: Callable[[Turn], dict[str, object]], tmp_path: Path
) -> None:
    with scripted_server(tmp_path, [wire(turn) for turn in TURNS]) as address:
        ran = subprocess.run(
            [sys.executable, ROOT / f"examples/guardrails_{name}.py", address + path, "Report on order A-17"],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT), "ANTHROPIC_API_KEY": "none"},
        )
        assert (ran.returncode, ran.stdout) == (0, "Report sent: 129.9\n"), ran.stderr
        asked = requests_of(address)
    last = json.dumps(asked[-1]["messages"])
    assert len(asked) == 4
    assert last.index("First complete: get_order") < last.index("129.9") < last.index("Your reply was plain text")
    assert "c1" in last
