"""Writes that no rule speaks of, without steps: reachable, asked about, made once, with what was given."""

import logging
from typing import Any

import pytest

from forge import Limits, Workflow, run_sync, tool
from forge.interpreters.scripted import Line, Scripted, call
from stages import events
from stages.effect import Said
from tests.heard import heard_by

ASKED = "Tell Ana that I am late."
TELL = call("send_message", to="Ana", text="I am late.")
READ = call("read_messages", person="Ana")
NOTE = b"Nothing has been done so far. If this asks for something to be done, call the tool that does it."


class Desk:
    """An assistant with a look-up and a write; `done` is what was performed."""

    def __init__(self, **options: Any) -> None:
        self.done: list[str] = []

        @tool(effect="read")
        def read_messages(person: str) -> str:
            """Read the messages of a person."""
            self.done.append(f"read {person}")
            return f"{person}: see you soon"

        @tool
        def send_message(to: str, text: str) -> str:
            """Send a message."""
            self.done.append(f"{to}: {text}")
            return "sent"

        given = {"name": "desk", "on_text": "accept"} | options
        self.workflow = Workflow(tools=[read_messages, send_message], **given)
        self.events: list[events.Event] = []

    def run(self, *script: Line, mode: Any = "constrained") -> Scripted:
        model = Scripted(script, mode=mode)
        self.outcome = (
            run_sync(self.workflow, ASKED, backend=model, on_event=heard_by(self.events.append)).unwrap().outcome
        )
        return model


def offered(request: bytes) -> set[str]:
    """The tools of the request's schema, and `words`."""
    schema = request.partition(b'"response_format"')[2]
    names = {"read_messages", "send_message", "respond"}
    return {name for name in names if f'"{name}"'.encode() in schema} | ({"words"} if b'"answer"' in schema else set())


def test_a_plain_request_may_be_answered_by_any_tool_or_in_words() -> None:
    desk = Desk()
    (first, _) = desk.run(TELL, "Ana knows.").requests
    assert offered(first) == {"read_messages", "send_message", "words"}
    assert desk.done == ["Ana: I am late."]


@pytest.mark.parametrize("mode", ["native", "prompted", "constrained"])
def test_an_answer_without_a_call_is_asked_about_once(mode: str) -> None:
    desk = Desk()
    model = desk.run("Message sent.", TELL, "Ana knows.", mode=mode)
    assert NOTE in model.requests[1]
    assert b"Message sent." not in model.requests[1], "a model that sees its own answer repeats it"
    assert desk.done == ["Ana: I am late."]
    stubborn = Desk()
    assert len(stubborn.run("Message sent.", "I have no phone.", mode=mode).requests) == 2
    assert stubborn.outcome == Said(text="I have no phone.")


def test_a_call_that_answers_in_words_is_asked_about_too() -> None:
    desk = Desk(on_text="respond")
    desk.run(call("respond", message="Message sent."), TELL, call("respond", message="Ana knows."))
    assert desk.done == ["Ana: I am late."]


@pytest.mark.parametrize(
    ("options", "script"),
    [
        ({"without": ["ask_once"]}, ["Hello!"]),
        ({"optional_steps": ["send_message"]}, ["Hello!"]),
        ({"limits": Limits(max_iterations=2)}, ["Hello!"]),
        ({}, [TELL, "Ana knows."]),
        ({}, [call("send_message", to="Bob", text="Hm, yes."), "Who is meant?"]),
        ({}, [READ, "She is on her way."]),
    ],
    ids=["switched off", "a rule speaks of it", "no calls left", "it was made", "it was tried", "something was called"],
)
def test_no_answer_is_asked_about(options: dict[str, Any], script: list[Line]) -> None:
    assert len(Desk(**options).run(*script).requests) == len(script)


def test_a_write_is_made_once() -> None:
    desk = Desk()
    desk.run(TELL, TELL, "Ana knows.")
    assert desk.done == ["Ana: I am late."]


def test_a_value_that_nobody_gave_is_not_written() -> None:
    desk = Desk()
    model = desk.run(call("send_message", to="Jane Smith", text="I am late."), "Who is meant?")
    assert b"[UngroundedArgument] send_message was not run: to is" in model.requests[1]
    assert desk.done == []


def test_what_is_withheld_is_told_once_with_what_to_do() -> None:
    desk = Desk(required_steps=["read_messages"])
    desk.run(READ, "She is on her way.")
    (held,) = (one for one in desk.events if isinstance(one, events.HeldBack))
    assert (held.tools, held.by) == (("send_message",), "withheld")
    assert "optional_steps" in held.why


def test_the_developer_is_hinted_once_at_a_write_without_any_rule(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "forge"):
        for _ in range(2):
            Desk(name="hinted").run(TELL, "Ana knows.")
        Desk(name="meant", optional_steps=["send_message"]).run(TELL, "Ana knows.")
    (said,) = (record.getMessage() for record in caplog.records if "says when to call" in record.getMessage())
    assert said.startswith("hinted: ")
    assert "send_message" in said
