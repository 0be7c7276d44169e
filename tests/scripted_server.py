"""A real server process that answers posts from a script, in turn: JSON lines in a file; GET gives what was asked."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.scripted_model import completion
from tests.serving import JsonHandler, process, serve


class Handler(JsonHandler):
    """The next line of the script for each request."""

    script: Iterator[str]
    asked: list[object] = []  # noqa: RUF012 - one server a process

    def post(self, body: object) -> None:
        if self.path.endswith("/tokenize"):  # asked of a vLLM before anything else, and no model call
            self.tell(200, {"tokens": [*range(len(str(body)) // 4)]})
            return
        Handler.asked.append(body)
        self.tell(200, next(Handler.script).encode())

    def get(self) -> None:
        self.tell(200, Handler.asked)


@contextmanager
def scripted_server(folder: Path, script: Sequence[object]) -> Iterator[str]:
    """The address of a server with that script, until the end of the block."""
    file = folder / "script.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in script))
    with process(__file__, str(file)) as address:
        yield address


def calling(name: str, /, **arguments: object) -> dict[str, object]:
    """A line of the script: a reply that calls a tool."""
    return completion(None, (name, json.dumps(arguments)))


def requests_of(address: str) -> list[dict[str, object]]:
    """The bodies of all requests so far."""
    asked: list[dict[str, object]] = httpx.get(address).json()
    return asked


if __name__ == "__main__":
    Handler.script = iter(Path(sys.argv[1]).read_text().splitlines())
    serve(Handler)
