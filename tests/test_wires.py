"""Whole runs over the wires of other protocols, against a strict server process."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from forge import run_sync
from forge.backends import Server
from forge.errors import ForgeError
from forge.interpreters.scripted import Scripted
from stages.wire.prompted import XML
from tests.flows import Desk


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    script = str(Path(__file__).with_name("foreign.py"))
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


def test_a_run_over_ollamas_own_protocol(server: str) -> None:
    desk = Desk()
    backend = Server(server, wire="ollama", model="m")
    assert run_sync(desk.workflow, "Go.", backend=backend).unwrap().value == "7"
    assert desk.log == ["look a", "finish"]


def test_a_run_over_the_messages_api(server: str) -> None:
    desk = Desk()
    backend = Server(server, wire="anthropic", model="m", api_key="key")
    assert run_sync(desk.workflow, "Go.", backend=backend).unwrap().value == "7"
    assert desk.log == ["look a", "finish"]


def test_a_prompted_run_in_xml() -> None:
    """Rescue is off, so it is the asked form itself that is read."""
    desk = Desk(rescue_enabled=False)
    look, finish = (
        f'<invoke name="{name}"><parameter name="{key}">{value}</parameter></invoke>'
        for name, key, value in (("look", "what", "a"), ("finish", "result", "7"))
    )
    model = Scripted([look, finish], mode="prompted", form=XML)
    assert run_sync(desk.workflow, "Go.", backend=model).unwrap().value == "7"
    assert b"<invoke name=" in model.requests[0]
    assert 'name="what">a</parameter>' in json.loads(model.requests[1])["messages"][2]["content"]


def test_a_wire_that_cannot_be_asked_for_its_models_wants_one(server: str) -> None:
    with pytest.raises(ForgeError, match="needs model="):
        Server(server, wire="ollama")
