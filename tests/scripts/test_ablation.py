"""Ablation: on scripted runs in which it is known which guardrail acted, and in which turn."""

import dataclasses
import re
from pathlib import Path

import pytest

from forge import Limits, Workflow, run_sync, tool
from forge.interpreters.scripted import Line, Scripted, call
from forge.journal.ablation import Ablated, ablate
from stages.effect import RawCall, Reply
from stages.message import ToolCall
from stages.objection import Guard, Stop, Verdict
from stages.offer import NARROWINGS
from stages.rules import REPLY_CHECKS
from stages.state import State
from stages.wire.target import Mode
from tests.flows import Desk, finish

LOOK = call("look", what="a")
END = call("finish", result="ok")
FENCED = '```json\n{"name": "look", "arguments": {"what": "a"}}\n```'


def ablated(tmp_path: Path, script: list[Line], workflow: Workflow, room: int = 8192) -> dict[str, Ablated]:
    path = tmp_path / "run.jsonl"
    run_sync(workflow, "Go.", backend=Scripted(script, context_tokens=room), journal=str(path))
    return {row.guardrail: row for row in ablate(path, workflow)}


def turns(rows: dict[str, Ablated]) -> dict[str, list[int]]:
    return {name: [acted.turn for acted in row.acted] for name, row in rows.items() if row.acted}


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ([LOOK, END], {}),
        ([FENCED, END], {"rescue": [1]}),
        (["Hm.", LOOK, END], {"retry nudges": [1]}),
        ([call("lock", what="a"), LOOK, END], {"retry nudges": [1]}),
        ([END, LOOK, END], {"required_steps": [1]}),
        ([LOOK, call("write", what="b", text="t"), END], {"prerequisites": [2]}),
        ([Reply(calls=(RawCall(name="look", arguments='"{\\"what\\": \\"a\\"}"'),)), END], {"coercion": [1]}),
        ([call("look", that="a"), LOOK, END], {"schema": [1], "tool error nudges": [1]}),
        ([LOOK, call("fail", how="hard"), END], {"tool error nudges": [2]}),
        (["Hm.", FENCED, END, END], {"retry nudges": [1], "rescue": [2]}),
    ],
)
def test_which_guardrail_acted_in_which_turn(
    tmp_path: Path, script: list[Line], expected: dict[str, list[int]]
) -> None:
    assert turns(ablated(tmp_path, script, Desk().workflow)) == expected


def test_an_answer_that_was_asked_about_would_have_ended_the_run(tmp_path: Path) -> None:
    @tool(effect="read")
    def read_messages() -> str:
        """Read all messages."""
        return "none"

    @tool(effect="write")
    def send_message(text: str) -> str:
        """Send a message."""
        return "sent"

    workflow = Workflow("tell", tools=[read_messages, send_message], on_text="accept")
    rows = ablated(tmp_path, ["Message sent.", call("send_message", text="I am late."), "Sent."], workflow)
    assert turns(rows)["ask_once"] == [1]
    assert rows["ask_once"].acted[0].ends


def test_a_row_says_what_was_done_and_what_would_have_been(tmp_path: Path) -> None:
    rows = ablated(tmp_path, [FENCED, END], Desk().workflow)
    (acted,) = rows["rescue"].acted
    assert str(acted.did) == 'runs look {"what":"a"}'
    assert str(acted.without).startswith("corrects Your reply was plain text")
    assert not acted.ends
    (acted,) = ablated(tmp_path / "2", ["Hm.", LOOK, END], Desk().workflow)["retry nudges"].acted
    assert acted.ends
    assert str(acted.without).startswith("halts (BadReplies)")


def test_a_terminal_call_that_was_too_early_would_have_ended_the_run(tmp_path: Path) -> None:
    (acted,) = ablated(tmp_path, [END, LOOK, END], Desk().workflow)["required_steps"].acted
    assert str(acted.without) == 'runs finish {"result":"ok"}'


def test_a_guess_that_a_read_may_be_run_on(tmp_path: Path) -> None:
    cut = Reply(calls=(RawCall(name="look", arguments='{"what": "a"'),))
    rows = ablated(tmp_path, [cut, END], Desk().workflow)
    assert turns(rows)["guesses"] == [1]


def test_compaction_acts_on_the_prompt(tmp_path: Path) -> None:
    @tool(effect="read")
    def read(page: int) -> str:
        """Read a page."""
        return f"{page}: " + "many words " * 60

    workflow = Workflow("reader", tools=[read, finish], terminal_tool="finish", limits=Limits(max_iterations=20))
    script: list[Line] = [*(call("read", page=n) for n in range(1, 8)), call("finish")]
    rows = ablated(tmp_path, script, workflow, room=1024 + 1700)
    acted = rows["compaction"].acted
    assert acted
    for one in acted:
        did, without = (int(re.findall(r"about (\d+) tokens", str(d))[0]) for d in (one.did, one.without))
        assert did < without


def test_a_guard_of_the_user_s_own_is_named_after_its_function(tmp_path: Path) -> None:
    def never_b() -> Guard:
        def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
            from stages.halt import Cancelled

            return Stop(halt=Cancelled(turns=0, completed=())) if '"b"' in calls[0].arguments else []

        return guard

    rows = ablated(tmp_path, [LOOK, call("look", what="b")], Desk(guards=[never_b()]).workflow)
    assert turns(rows) == {"never_b": [2]}


def test_without_any_change_no_guardrail_is_left_out(tmp_path: Path) -> None:
    rows = ablated(tmp_path, [LOOK, END], Desk().workflow)
    assert [*rows] == [
        *("rescue", "guesses", "coercion", "schema", "retry nudges", "tool error nudges", *REPLY_CHECKS),
        *Desk().workflow.compiled.guards,
        "compaction",
        *NARROWINGS,
    ]


@pytest.mark.parametrize(("mode", "acted"), [("constrained", [2, 3]), ("native", [2])])
def test_a_guard_acts_on_replies_and_on_what_a_constraint_offers(tmp_path: Path, mode: Mode, acted: list[int]) -> None:
    path = tmp_path / "run.jsonl"
    workflow = dataclasses.replace(Desk().workflow, optional_steps=())
    script = [LOOK, LOOK if mode == "constrained" else call("fail", how="hard"), END]
    run_sync(workflow, "Go.", backend=Scripted(script, mode=mode), journal=str(path))
    rows = {row.guardrail: row for row in ablate(path, workflow)}
    assert [one.turn for one in rows["withheld"].acted] == acted
    did, without = str(rows["withheld"].acted[0].did), str(rows["withheld"].acted[0].without)
    if mode == "constrained":
        assert (did, without) == ("offers look, write, finish", "offers look, write, fail, finish")
        assert [one.turn for one in rows["required_steps"].acted] == [1]
    else:
        assert without == 'runs fail {"how":"hard"}'
