"""The log of a run at DEBUG: each turn in a few lines, and not one value of it."""

import logging

import pytest

from forge import run_sync
from forge.interpreters.scripted import Line, Scripted, call
from stages.effect import Fault, RawCall, Reply
from tests.flows import Desk

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
