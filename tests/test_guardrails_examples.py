"""The examples of the middleware run, on a server that answers in each client's protocol."""

import json
import runpy
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


@pytest.mark.parametrize(("name", "wire"), [("openai", completion), ("anthropic", message), ("langchain", completion)])
def test_an_example_skips_no_step_and_ends_with_the_result(
    name: str,
    wire: Callable[[Turn], dict[str, object]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    with scripted_server(tmp_path, [wire(turn) for turn in TURNS]) as address:
        program = ROOT / f"examples/guardrails_{name}.py"
        monkeypatch.setattr(sys, "argv", [str(program), address + "/v1" * (wire is completion), "Report on order A-17"])
        runpy.run_path(str(program), run_name="__main__")
        assert capsys.readouterr().out == "Report sent: 129.9\n"
        asked = requests_of(address)
    last = json.dumps(asked[-1]["messages"])
    assert len(asked) == 4
    assert last.index("First complete: get_order") < last.index("129.9") < last.index("Your reply was plain text")
    assert "c1" in last
