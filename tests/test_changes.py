"""What has changed in a workflow since a run began: on a replay and on resuming."""

import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from forge import Workflow, run_sync, tool
from forge.cli.run import load_definition
from forge.interpreters.scripted import Scripted, call
from forge.journal.definition import definition_of
from forge.journal.records import read_journal
from forge.journal.replaying import DivergenceError, states
from tests.commands import forge
from tests.flows import finish


@tool
def pay(amount: int, currency: str = "EUR") -> str:
    """Pay."""
    return f"{amount} {currency}"


@tool
def refund() -> str:
    """Give it back."""
    return "ok"


made: Callable[..., Workflow] = partial(Workflow, "till", tools=[pay, finish], terminal_tool="finish")


def test_a_definition_names_functions_and_no_place_in_memory() -> None:
    def never(_: object) -> None:
        return None

    written = str(definition_of(made(completion_checks={"finish": never}, nudges={"retry": "Call a tool."})))
    assert "never" in written
    assert " at 0x" not in written


def test_a_set_is_written_in_the_same_order_by_every_process() -> None:
    names = ["no_placeholders", "repetition", "order", "ask_once"]
    workflow = Workflow("w", tools=[finish], terminal_tool="finish", without=frozenset(names))
    assert definition_of(workflow)["without"] == sorted(names)


def test_a_divergence_says_what_changed(tmp_path: Path) -> None:
    journal = str(tmp_path / "run.jsonl")
    run_sync(made(), "Go.", backend=Scripted([call("pay", amount=5), call("finish")]), journal=journal)
    with pytest.raises(DivergenceError) as told:
        list(states(journal, made(tools=[pay, finish, refund])))
    changed = "The workflow has changed since the run began:\n  tools.refund\n    recorded  (missing)\n    now       {"
    assert changed in str(told.value)
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
    run_sync(load_definition(str(flow)), "Go.", backend=Scripted([call("finish")]), journal=str(journal))

    def resumed(text: str) -> subprocess.CompletedProcess[str]:
        flow.write_text(text)
        return forge("resume", str(flow), str(journal), "--backend", "http://127.0.0.1:1")

    harmless = resumed(
        FLOW.replace("forge import", "forge import Limits,").replace(
            '="finish")', '="finish", limits=Limits(max_repeats=3))'
        )
    )
    assert (harmless.returncode, "done  finish returned" in harmless.stdout) == (0, True), harmless
    assert "has changed since the run began: limits\n" in caplog.text
    other = resumed(FLOW.replace("amount: int", "amount: float"))
    assert other.returncode == 2
    changed = '  tools.pay.parameters.properties.amount.type\n    recorded  "integer"\n    now       "number"'
    assert changed in other.stderr
    caplog.clear()
    same = resumed(FLOW)
    assert (same.returncode, same.stderr, caplog.text) == (0, "", "")
