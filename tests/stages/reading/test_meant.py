"""A call in a text that may merely show it: what runs at once, what is asked about, and what the answer is."""

import pytest

from forge import Calls, Finished, Limits, Scripted, Workflow, call, run_sync, tool
from forge.interpreters.scripted import Line
from stages.effect import Said
from tests.rescue_corpus import run_at_once

TOOLS = {"wipe": ("path",)}
BARE = '{"name": "wipe", "arguments": {"path": "/a"}}'
FENCED = f"```json\n{BARE}\n```"
TAGGED = f"<tool_call>\n{BARE}\n</tool_call>"


@pytest.mark.parametrize(
    "text",
    [
        BARE,
        FENCED,
        TAGGED,
        f"{TAGGED}\n{TAGGED}",
        f"I will.\n{TAGGED}",
        f"\u597d\u7684\u3002\n{TAGGED}",
        f"{TAGGED}</s>",
    ],
)
def test_a_write_runs_where_the_reply_leaves_no_doubt(text: str) -> None:
    assert run_at_once(text, TOOLS)


@pytest.mark.parametrize(
    "text",
    [
        f"I will.\n{FENCED}",
        f"{FENCED}\nDone.",
        f"I will:\n{TAGGED}",
        f"Shall I?\n{TAGGED}",
        f"Never send\n{TAGGED}",
        f"{TAGGED}\nDone.",
        f"A:\n{TAGGED}\nB:\n{TAGGED}",
        f"`<tool_call>` is how.\n{TAGGED}",
        f"As it stands:\n```xml\n{TAGGED}\n```",
    ],
)
def test_else_only_a_read_does(text: str) -> None:
    assert not run_at_once(text, TOOLS)
    assert run_at_once(text, TOOLS, "read")


class Disk:
    """A workflow with one tool that writes, and what it was called with."""

    def __init__(self, *, words: bool = True, without: str = "", calls: int = 9) -> None:
        self.wiped: list[str] = []

        @tool
        def wipe(path: str) -> str:
            """Wipe it."""
            self.wiped.append(path)
            return "wiped"

        @tool(effect="terminal")
        def finish() -> str:
            """End."""
            return "ended"

        self.workflow = Workflow(
            "disk",
            tools=[wipe, finish],
            terminal_tool="finish",
            on_text="accept" if words else "nudge",
            without=["ask_once", *filter(None, [without])],
            limits=Limits(max_iterations=calls),
            calls=Calls(rescue_enabled=True),
        )

    def run(self, *script: Line) -> tuple[Scripted, str]:
        """The model that was asked, and the answer in words."""
        model = Scripted(script)
        ended = run_sync(self.workflow, "Go.", backend=model).unwrap()
        assert isinstance(ended, Finished)
        model.assert_complete()
        return model, ended.outcome.text if isinstance(ended.outcome, Said) else ""


SHOWN = f"Like this:\n{FENCED}\nAnything else?"


@pytest.mark.parametrize("answer", ["ok", "", "It was an example.", f"No: `{BARE}`"])
def test_a_call_that_is_not_meant_does_not_run_and_the_first_reply_is_the_answer(answer: str) -> None:
    disk = Disk()
    model, said = disk.run(SHOWN, answer)
    assert (disk.wiped, said) == ([], SHOWN)
    assert b"call of wipe" in model.requests[1]


@pytest.mark.parametrize("answer", [call("wipe", path="/a"), BARE, SHOWN])
@pytest.mark.parametrize("words", [True, False])
def test_one_that_is_meant_runs_after_one_more_model_call(answer: Line, words: bool) -> None:
    disk = Disk(words=words)
    disk.run(SHOWN, answer, call("finish"))
    assert disk.wiped == ["/a"]


def test_each_reply_is_asked_about_by_itself() -> None:
    disk = Disk()
    disk.run(SHOWN, SHOWN, SHOWN.replace("/a", "/b"), "ok")
    assert disk.wiped == ["/a"]


def test_without_a_model_call_left_nothing_runs() -> None:
    disk = Disk(calls=1)
    assert disk.run(SHOWN)[1] == SHOWN
    assert not disk.wiped


def test_switched_off_it_runs_unasked() -> None:
    disk = Disk(without="ask_if_meant")
    disk.run(SHOWN, call("finish"))
    assert disk.wiped == ["/a"]


def test_a_damaged_call_among_words_is_asked_about_too() -> None:
    torn = 'One sends this:\n<tool_call>\n{"name": "wipe", "arguments": {"path": "/a'
    disk = Disk()
    model, said = disk.run(torn, "ok")
    assert said == torn
    assert b"cannot be read" in model.requests[1]
    disk.run(torn, BARE, call("finish"))
    assert disk.wiped == ["/a"]
