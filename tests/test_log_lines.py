"""The log: one line each, whatever a server writes."""

import asyncio
import logging
from collections.abc import Iterator

import pytest

from forge import Workflow, run, tool
from forge.backends import Server
from tests.serving import JsonHandler, process, serve

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
