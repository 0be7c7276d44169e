"""What `forge proxy` shows: a line a request; nothing of it holds up a request."""

import asyncio
import logging
import re
import threading
from collections.abc import Iterator

import aiohttp
import pytest
from msgspec.structs import replace

from forge.backends import named
from forge.cli.proxy import KEPT, Display, Shown, ToDisplay
from forge.observation import Notes
from forge.proxy import ProxyOptions, ProxyServer
from forge.proxy.passage import Passage, summary_line
from stages.effect import Usage
from tests.proxy.test_proxy import asked
from tests.scripted_model import ScriptedModel, hanging, whole

NOTES = Notes(
    outcome="retried",
    attempts=3,
    model="tiny",
    usage=Usage(prompt=1100, completion=7),
    rescued=("look (bare)",),
    refused=("lok", "a text", "lok"),
)
PASSAGE = Passage(0.0, "POST", "/chat/completions", "OpenAI/Python 2.1 (x)", 200, 1.2344, NOTES)


def test_a_line_tells_what_was_rescued_and_retried() -> None:
    said = "(retried; rescued look (bare); retried 2 times for lok, a text)"
    assert summary_line(PASSAGE) == f"POST /chat/completions 200 1234 ms 1100+7 tokens {said}"
    assert summary_line(replace(PASSAGE, notes=Notes(), status=404)) == "POST /chat/completions 404 1234 ms"


async def test_a_line_says_that_the_client_disconnected() -> None:
    seen = list[Passage]()
    async with (
        ScriptedModel(hanging()) as model,
        aiohttp.ClientSession() as session,
        ProxyServer(named(model.url, profile="llama-server"), ProxyOptions(port=0), seen.append) as proxy,
    ):
        asking = asyncio.create_task(session.post(f"{proxy.url}/v1/chat/completions", json=asked()))
        await model.came.wait()
        asking.cancel()
        await model.left.wait()
    (line,) = map(summary_line, seen)
    assert re.fullmatch(r"POST /chat/completions - \d+ ms \(the client disconnected\)", line)


QUOTING = {"error": {"message": "cannot parse 'my secret'"}}


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (503, QUOTING, "the backend answered 503"),
        (200, QUOTING, "the backend reported an error"),
        (200, b"<p>my secret</p>", "the backend's answer cannot be read"),
    ],
)
async def test_the_log_says_why_a_request_failed_but_not_what_the_backend_said_of_the_conversation(
    status: int, body: object, says: str
) -> None:
    seen = list[Passage]()
    refusal = whole(body, status=status)
    async with ScriptedModel(refusal) as model, aiohttp.ClientSession() as session:
        backend = named(model.url, profile="llama-server")
        async with ProxyServer(backend, ProxyOptions(port=0), seen.append) as proxy:
            for path, request in (("completions", asked()), ("completions", asked(messages="Hi.")), ("completion", {})):
                async with session.post(f"{proxy.url}/v1/chat/{path}", json=request) as answer:
                    await answer.read()
    failed, wrong, lost = (summary_line(passage).partition("(")[2] for passage in seen)
    assert failed == f"error; {says})"
    assert wrong == "messages: expected array, got string)"
    assert lost.startswith("there is no endpoint /chat/completion; available: /v1/chat/completions, ")


def test_what_clients_and_models_write_cannot_control_the_terminal_or_forge_a_line() -> None:
    evil = "\x1b[2J\nPOST /x 200"
    notes = Notes(outcome="repaired", model=evil, rescued=(evil,), refused=(evil,), attempts=2)
    passage = Passage(0.0, evil, evil, evil, 200, 0.1, notes)
    shown = summary_line(passage)
    assert "\x1b" not in shown
    assert "\n" not in shown


def test_what_the_log_names_cannot_control_the_terminal_either(capsys: pytest.CaptureFixture[str]) -> None:
    record = logging.makeLogRecord({"msg": "the policy names %s", "args": ("\x1b[2J\u202e",)})
    with Display() as display:
        ToDisplay(display).emit(record)
    assert capsys.readouterr().err.endswith("the policy names �[2J�\n")


def test_output_that_nobody_takes_holds_nobody_up_and_what_was_left_out_is_told() -> None:
    gate, told = threading.Event(), list[tuple[int, int]]()

    def stuck(shown: list[Shown], missed: int) -> Iterator[str]:
        gate.wait()
        told.append((len(shown), missed))
        yield from ()

    with Display() as display:
        display.start(stuck)
        for _ in range(2 * KEPT):
            display(PASSAGE)
        gate.set()
    assert sum(shown + missed for shown, missed in told) == 2 * KEPT
    assert any(missed for _, missed in told)
