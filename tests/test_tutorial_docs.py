"""The programs of docs/tutorial.md run, and its output is what its workflow does with what the model wrote."""

import re
from pathlib import Path
from typing import Any

import pytest

from forge import Scripted, run_sync
from stages.message import Assistant, Tool

PAGE = (Path(__file__).parents[1] / "docs" / "tutorial.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "tutorial"}
    for code in re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE):
        exec(compile(code, "tutorial.md", "exec"), names)  # noqa: S102 - the project's own page
    return names


def test_the_output_is_that_of_the_workflow(names: dict[str, Any]) -> None:
    run = re.findall(r"^```text\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[0]
    model = Scripted(re.findall(r"^ +said +(.*)$", run, re.MULTILINE))
    ended = run_sync(
        names["workflow"], "Please refund order A-17: the lamp is broken.", backend=model, ask=names["yes"]
    )
    history = ended.unwrap().state.history
    calls = [one for message in history if isinstance(message, Assistant) for one in message.calls]
    assert re.findall(r"^ +runs +(.*)$", run, re.MULTILINE) == [f"{one.name} {one.arguments}" for one in calls]
    assert re.findall(r"^ +result +(.*)$", run, re.MULTILINE) == [m.text for m in history if isinstance(m, Tool)]


def test_the_programs_hold(names: dict[str, Any]) -> None:
    assert names["result"].unwrap().value == "129.9 was paid back."
