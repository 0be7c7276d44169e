"""What `forge proxy` shows: rows and totals in a terminal, lines elsewhere; nothing of it holds up a request."""

import asyncio
import logging
import os
import pty
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp
import pytest
from msgspec.structs import replace

from forge.cli.proxy import KEPT, Display, Load, Shown, ToDisplay, Totals, footer, row
from forge.proxy.passage import Notes, Passage, summary_line
from stages.effect import Usage
from tests.scripted_model import ScriptedModel, completion, whole
from tests.test_proxy import asked
from tests.test_proxy_cli import ROOT, address

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


@pytest.mark.parametrize(
    ("width", "words"),
    [
        (160, ["OpenAI/Python", "chat", "tiny", "1,100", "7", "retried", "3", "1,234", "rescued", "look"]),
        (110, ["OpenAI/Python", "chat", "1,100", "7", "retried", "3", "1,234", "rescued"]),
        (60, ["chat", "1,100", "7", "retried", "3", "1,234", "rescued"]),
    ],
)
def test_a_row_has_the_columns_for_which_there_is_room(width: int, words: list[str]) -> None:
    assert row(PASSAGE, width).plain.split()[1 : len(words) + 1] == words


def test_an_error_shows_its_status_and_what_asked_no_model_its_path() -> None:
    assert "error 503" in row(replace(PASSAGE, status=503, notes=Notes(outcome="error")), 160).plain
    listed = row(replace(PASSAGE, method="GET", path="/models", notes=Notes()), 160).plain
    assert "GET /models" in listed
    assert "200" in listed


def test_what_clients_and_models_write_cannot_control_the_terminal_or_forge_a_line() -> None:
    evil = "\x1b[2J\nPOST /x 200"
    notes = Notes(outcome="repaired", model=evil, rescued=(evil,), refused=(evil,), attempts=2)
    passage = Passage(0.0, evil, evil, evil, 200, 0.1, notes)
    for shown in (row(passage, 200).plain, summary_line(passage)):
        assert "\x1b" not in shown
        assert "\n" not in shown


def test_what_the_log_names_cannot_control_the_terminal_either(capsys: pytest.CaptureFixture[str]) -> None:
    record = logging.makeLogRecord({"msg": "the policy names %s", "args": ("\x1b[2J\u202e",)})
    with Display() as display:
        ToDisplay(display).emit(record)
    assert capsys.readouterr().err.endswith("the policy names �[2J�\n")


def test_the_totals_count_what_came() -> None:
    totals = Totals().with_passage(PASSAGE).with_passage(replace(PASSAGE, notes=Notes(outcome="clean")))
    said = footer(totals.with_passage(PASSAGE), Load(2, 1), 160).plain
    assert said == "2 at work, 1 waiting | 3 requests, 2 retried, 1 clean | tokens 2,200 in, 14 out"
    assert footer(totals, Load(2, 1), 40).plain == "2 at work, 1 waiting | 2 requests, 1…"


def test_output_that_nobody_takes_holds_nobody_up_and_what_was_left_out_is_told() -> None:
    gate, told = threading.Event(), list[tuple[int, int]]()

    class Stuck:
        def show(self, shown: list[Shown], missed: int, _: Load) -> None:
            gate.wait()
            told.append((len(shown), missed))

        def close(self) -> None:
            pass

    with Display() as display:
        display.start(Stuck, lambda: Load(0, 0), None)
        for _ in range(2 * KEPT):
            display(PASSAGE)
        gate.set()
    assert sum(shown + missed for shown, missed in told) == 2 * KEPT
    assert any(missed for _, missed in told)


@contextmanager
def terminal() -> Iterator[tuple[int, int]]:
    ours, theirs = pty.openpty()
    try:
        yield ours, theirs
    finally:
        os.close(ours)


async def read_until(ours: int, words: bytes, seen: bytes = b"") -> bytes:
    loop = asyncio.get_running_loop()
    while words not in seen:
        seen += await loop.run_in_executor(None, os.read, ours, 65536)
    return seen


async def in_terminal(theirs: int, *words: str, **environment: str) -> asyncio.subprocess.Process:
    """The proxy with a terminal for its standard error."""
    command = [sys.executable, "-m", "forge", "proxy", "--port", "0", *words]
    plainly = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "TERM"}}
    env = {**plainly, "TERM": "xterm-256color", "COLUMNS": "160", **environment}
    proxy = await asyncio.create_subprocess_exec(*command, cwd=ROOT, env=env, stdout=-1, stderr=theirs, stdin=-3)
    os.close(theirs)
    return proxy


async def post(url: str) -> None:
    headers = {"authorization": "Bearer sk-secret-0123456789", "user-agent": "Tester/1.0"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(url + "/v1/chat/completions", json=asked()) as answer,
    ):
        assert answer.status == 200


async def test_a_terminal_has_rows_and_totals_and_is_as_it_was_in_the_end() -> None:
    with terminal() as (ours, theirs):
        async with ScriptedModel(whole(completion('{"name":"look","arguments":{"at":4}}'))) as model:
            proxy = await in_terminal(theirs, "--backend", model.url)
            await post(await address(proxy))
            seen = await read_until(ours, b"1 repaired")
            proxy.send_signal(signal.SIGINT)
            seen = await read_until(ours, b"\x1b[?25h", seen)  # the cursor is back
            assert await proxy.wait() == 130
    shown = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", seen)
    assert re.search(rb"Tester/1.0 +chat +tiny +11 +7 +repaired +1 .* rescued look \(bare\)", shown)
    assert b"1 request, 1 repaired | tokens 11 in, 7 out" in shown
    assert b"secret" not in seen


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
async def test_plain_lines_where_they_are_wanted(environment: dict[str, str]) -> None:
    with terminal() as (ours, theirs):
        async with ScriptedModel(whole(completion('{"name":"look","arguments":{"at":4}}'))) as model:
            proxy = await in_terminal(theirs, "--backend", model.url, **environment)
            await post(await address(proxy))
            seen = await read_until(ours, b"(repaired; rescued look (bare))")
            proxy.send_signal(signal.SIGTERM)
            assert await proxy.wait() == 143
    assert b"\x1b" not in seen
