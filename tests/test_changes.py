"""What has changed in a workflow since a run began, in the workflow's words: from Python and on resuming."""

import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from forge import Limits, Workflow, run_sync, tool
from forge.cli.run import load_workflow
from forge.interpreters.scripted import Scripted, call
from forge.journal.records import read_journal
from forge.journal.replaying import DivergenceError, states
from forge.journal.workflow_changes import changes, definition_of
from stages.effect import Price
from stages.order import Use
from tests.commands import forge


@tool
def pay(amount: int, currency: str = "EUR") -> str:
    """Pay."""
    return f"{amount} {currency}"


@tool
def finish() -> str:
    """Finish."""
    return "ok"


@tool(name="pay", effect="read", approval=True)
def other_pay(amount: float, note: str) -> str:
    """Pay somebody."""
    return f"{amount} {note}"


@tool
def refund() -> str:
    """Give it back."""
    return "ok"


made: Callable[..., Workflow] = partial(Workflow, "till", tools=[pay, finish], terminal_tool="finish")


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (made(), []),
        (made(tools=[pay, finish, refund]), ["the tool refund is new"]),
        (made(tools=[finish]), ["the tool pay is gone"]),
        (
            made(tools=[other_pay, finish]),
            [
                "pay: the argument currency is gone",
                "pay: the argument note is new",
                'pay: the schema of amount is now {"type":"number"}; it was {"type":"integer"}',
                'pay: its description is now "Pay somebody."; it was "Pay."',
                'pay: its effect is now "read"; it was "write" (the default)',
                "pay: its approval is now true; it was false (the default)",
            ],
        ),
        (made(required_steps=["pay"]), ['required_steps is now ["pay"]; it was [] (the default)']),
        (made(limits=Limits(max_iterations=5)), ["limits.max_iterations is now 5; it was null (the default)"]),
        (made(order=[Use(tool="pay", at_most=1)]), ["order is now", '"at_most":1']),
        (made(limits=Limits(price=Price(prompt=1.0, completion=2.0))), ["limits.price is now", '"completion":2.0']),
        (made(system_prompt="x" * 500), ["system_prompt is now", "keeps the one that it began with"]),
        (made(terminal_tool=["finish", "pay"]), ["terminal_tool is now", 'pay: its effect is now "terminal"']),
    ],
)
def test_each_change_is_a_sentence_about_the_option_or_the_tool(changed: Workflow, says: list[str]) -> None:
    sentences = changes(definition_of(made()), definition_of(changed))
    assert bool(sentences) == bool(says)
    for part in says:
        assert any(part in sentence for sentence in sentences), sentences


def test_a_definition_names_functions_and_no_place_in_memory() -> None:
    def never(_: object) -> None:
        return None

    written = str(definition_of(made(completion_checks={"finish": never}, nudges={"retry": "Call a tool."})))
    assert "never" in written
    assert " at 0x" not in written


def test_a_divergence_says_what_changed(tmp_path: Path) -> None:
    journal = str(tmp_path / "run.jsonl")
    run_sync(made(), "Go.", backend=Scripted([call("pay", amount=5), call("finish")]), journal=journal)
    with pytest.raises(
        DivergenceError, match="The workflow has changed since the run began:\n- the tool refund is new"
    ):
        list(states(journal, made(tools=[pay, finish, refund])))
    assert read_journal(journal).header.definition == definition_of(made())


FLOW = '''
from forge import Workflow, tool

@tool
def pay(amount: int) -> str:
    """Pay."""
    return "paid"

@tool
def finish() -> str:
    """Finish."""
    return "ok"

workflow = Workflow("till", tools=[pay, finish], terminal_tool="finish")
'''


def test_a_run_that_is_resumed_by_a_changed_workflow_is_told_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    flow = tmp_path / "flow.py"
    flow.write_text(FLOW)
    journal = tmp_path / "run.jsonl"
    run_sync(load_workflow(str(flow)), "Go.", backend=Scripted([call("finish")]), journal=str(journal))

    def resumed(text: str) -> subprocess.CompletedProcess[str]:
        flow.write_text(text)
        return forge("resume", str(flow), str(journal), "--backend", "http://127.0.0.1:1")

    harmless = resumed(
        FLOW.replace("forge import", "forge import Limits,").replace(
            '="finish")', '="finish", limits=Limits(max_repeats=3))'
        )
    )
    assert (harmless.returncode, "done  finish returned" in harmless.stdout) == (0, True), harmless
    assert "has changed since the run began: limits.max_repeats is now 3; it was 2 (the default)" in caplog.text
    other = resumed(FLOW.replace("amount: int", "amount: float"))
    assert other.returncode == 2
    assert '- pay: the schema of amount is now {"type":"number"}; it was {"type":"integer"}' in other.stderr
    caplog.clear()
    same = resumed(FLOW)
    assert (same.returncode, same.stderr, caplog.text) == (0, "", "")
