"""Each ablation takes away what it says, and the whole of the workflow is left as it was."""

import pytest

from forge import Workflow, tool
from forge.errors import DefinitionError
from forge.evals import Played, Scenario, World, play
from forge.evals.players import PLAIN
from forge.interpreters.scripted import Line, call
from stages.order import Use


@tool(effect="read")
def look(at: str) -> dict[str, object]:
    """Look something up."""
    return {"id": "K-77", "left": 3, "right": 4}


@tool(effect="read")
def fail() -> str:
    """Fail."""
    raise ValueError("no")


@tool(prerequisites=["look"])
def change(at: str) -> str:
    """Change something."""
    return "changed"


@tool
def wipe() -> str:
    """Wipe everything."""
    return "wiped"


@tool
def send(id: str, total: float) -> str:  # noqa: A002
    """Send it."""
    return f"{id} {total}"


def world(seed: int) -> World:
    workflow = Workflow(
        "w",
        tools=[look, fail, change, wipe, send],
        required_steps=["look"],
        order=[Use(tool="send", after=("look",))],
        terminal_tool="send",
        grounded={"send": ["id"]},
        completion_checks={"send": lambda arguments: "too much" if arguments.get("total") == 1000 else None},
    )
    return World(workflow=workflow, messages=("Send K-77.",), right=lambda _: "")


SCENARIO = Scenario(name="s", about="", world=world, ideal_calls=2)
LOOK, SEND = call("look", at="a"), call("send", id="K-77", total=7)
IN_TEXT = '<tool_call>{"name": "look", "arguments": {"at": "a"}}</tool_call>'


def did(ablation: str, *replies: Line) -> Played:
    return play(SCENARIO, replies, ablation=ablation)


def ran(played: Played) -> list[str]:
    return [made.tool for made in played.trajectory.calls if not made.error]


@pytest.mark.parametrize(
    ("ablation", "replies", "without", "with_it"),
    [
        ("no_rescue", (IN_TEXT, LOOK, SEND), ["look", "send"], ["look", "look", "send"]),
        ("no_nudge", ("I will look.",), [], ["look", "send"]),
        ("no_steps", (SEND,), ["send"], ["look", "send"]),
        ("no_recovery", (call("fail"),), [], ["look", "send"]),
        ("no_grounding", (LOOK, call("send", id="K-1", total=7)), ["look", "send"], ["look", "look", "send"]),
        ("no_grounding", (LOOK, call("change", at="<at>"), SEND), ["look", "change", "send"], ["look", "send"]),
        ("no_prerequisites", (call("change", at="b"), LOOK, SEND), ["change", "look", "send"], ["look", "send"]),
        ("no_withholding", (LOOK, call("wipe"), SEND), ["look", "wipe", "send"], ["look", "send"]),
        ("no_checks", (LOOK, call("send", id="K-77", total=1000)), ["look", "send"], ["look", "look", "send"]),
    ],
)
def test_the_run_goes_otherwise_without_it(
    ablation: str, replies: tuple[Line, ...], without: list[str], with_it: list[str]
) -> None:
    assert ran(did(ablation, *replies)) == without
    assert ran(did("reforged", *replies, LOOK, SEND)) == with_it


def test_bare_ends_at_the_first_mistake_and_lets_through_what_is_written() -> None:
    assert did("bare", "I will look.").ended.end == "BadReplies"
    assert did("bare", call("fail")).ended.end == "ToolsFailing"
    assert did("bare", call("send", id="K-1", total=1000)).judged.verdict == "right"


def test_a_plain_loop_goes_on_after_errors_and_ends_with_text() -> None:
    replies = [call("fail"), call("nothing", x=1), call("look", wrong=2), LOOK, SEND]
    ended = play(SCENARIO, replies, player=PLAIN)
    assert (ended.ended.end, ended.judged.verdict) == ("Completed", "right")
    text = play(SCENARIO, [LOOK, "That is it."], player=PLAIN)
    assert (text.ended.end, text.trajectory.outcome) == ("text", None)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"ablation": "no_step"}, "there is no ablation 'no_step'; there are: reforged, .* Did you mean no_steps?"),
        ({"mode": "auto"}, "mode is 'auto'; it must be one of native, prompted, constrained"),
        ({"scenario": Scenario(name="x", about="", world=lambda _: 3, ideal_calls=2)}, "the scenario 'x': its world"),  # type: ignore[arg-type, return-value]  # wrong on purpose
    ],
)
def test_what_is_wrong_with_a_play_is_said_in_a_sentence(wrong: dict[str, object], says: str) -> None:
    with pytest.raises(DefinitionError, match=says):
        play(**{"scenario": SCENARIO, "replies": [LOOK, SEND], **wrong})  # type: ignore[arg-type]
