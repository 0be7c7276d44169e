"""The log of a run at DEBUG: each turn in a few lines, and not one value of it."""

import asyncio
import logging
from collections.abc import Iterator

import pytest

from forge import Workflow, run, run_sync, tool
from forge.backends import Server
from forge.interpreters.scripted import Line, Scripted, call
from stages.effect import Fault, RawCall, Reply
from tests.flows import Desk
from tests.serving import JsonHandler, process, serve

SECRET = "sk-live-4242-secret"  # noqa: S105 - made up


def test_the_turns_are_logged_and_no_value_is(caplog: pytest.LogCaptureFixture) -> None:
    odd = Reply(calls=(RawCall(name=f"no\x1b[2J\n{'x' * 500}", arguments=f'{{"key": "{SECRET}"}}'),), finish="stop")
    script: list[Line] = [
        SECRET,
        odd,
        call("look", what=SECRET),
        call("fail", how=SECRET),
        call("finish", result=SECRET),
    ]
    with caplog.at_level(logging.DEBUG, logger="forge"):
        ended = run_sync(Desk().workflow, f"My key is {SECRET}.", backend=Scripted(script)).unwrap()
    run = ended.state.run[:8]
    lines = [record.getMessage() for record in caplog.records if record.name == "forge"]
    text = "\n".join(lines)
    assert SECRET not in text
    assert "\x1b" not in text
    assert all(line.startswith(f"run {run}: ") for line in lines)
    assert all(len(line) < 200 for line in lines)
    for part in (
        "turn 1: model asked, about ",
        "turn 1: reply with no native call; 19 characters of text; stop",
        "model told: retry_nudge",
        "turn 3: reply with look; 0 characters of text; tool_calls",
        "runs look (call_00000000",
        "failed with RuntimeError",
        "finished: Completed",
    ):
        assert part in text, text


def test_a_halt_is_logged_wherever_it_came(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="forge"):
        run_sync(Desk().workflow, "Go.", backend=Scripted([Fault(kind="unreachable", detail=SECRET)])).failure()
    assert any(record.getMessage().endswith("halted: BackendFailed") for record in caplog.records)
    assert SECRET not in caplog.text


def test_without_debug_nothing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="forge"):
        run_sync(Desk().workflow, "Go.", backend=Scripted([call("look", what="a"), call("finish")])).unwrap()
    assert not caplog.records


# --- One line each, whatever a server writes


STEERING = "no tools here\x1b[2J\r\nERROR forge everything is fine\x07\x9b1m\u202e\u2028 ok\0"


class Handler(JsonHandler):
    """Refuses tools in words that would clear a terminal and begin a line of their own."""

    def get(self) -> None:
        props = {"default_generation_settings": {"n_ctx": 8192}, "chat_template": f"{{% {STEERING}"}
        self.tell(200, props if self.path == "/props" else {"data": [{"id": "m"}]})

    def post(self, body: dict[str, object]) -> None:
        if "response_format" in body:
            self.tell(400, f"schema: {STEERING}".encode(), "text/plain")
        else:
            self.tell(200, {"choices": [{"message": {"content": '{"tool": "end", "args": {}}'}}]})


@tool
def end() -> str:
    """End."""
    return "done"


@pytest.fixture
def server() -> Iterator[str]:
    with process(__file__) as url:
        yield url


def test_no_line_of_the_log_has_control_characters_from_a_server(server: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "forge")
    ended = asyncio.run(run(Workflow("w", tools=[end], terminal_tool="end"), "Go.", backend=Server(server)))
    assert ended.unwrap().value == "done"
    lines = [record.getMessage() for record in caplog.records if record.name == "forge"]
    assert any("refused, so the tools are written into the prompt" in line for line in lines)
    assert any("no tools here\\x1b[2J\\r\\nERROR" in line for line in lines)
    assert all(line.isprintable() for line in lines)


if __name__ == "__main__":
    serve(Handler)
