"""`forge runs` with its verbs, against a scripted server."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands import forge
from tests.scripted_server import calling, scripted_server

FLOW = '''
from forge import Workflow, tool

@tool(approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"

workflow = Workflow("till", tools=[pay], terminal_tool="pay")
'''

PAYS = calling("pay", amount=5)


def runs_in(folder: Path) -> Callable[..., str]:
    """`forge runs` in that folder: what it prints, on standard error if nothing else. `code` is its exit code."""

    def runs(*words: str, code: int = 0, output: str = "pipe") -> str:
        done = forge("runs", *words, cwd=folder, output=output, FORGE_STATE=str(folder))
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
        return done.stdout or done.stderr

    return runs


def test_a_run_is_started_worked_on_answered_and_read(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(FLOW)
    (tmp_path / "server").mkdir()
    runs = runs_in(tmp_path)
    with scripted_server(tmp_path / "server", [PAYS] * 3) as address:
        work = ("work", "flow.py", "--backend", address, "--until-idle", "--no-probe", "--mode", "native")
        assert runs("start", "flow.py", "Pay 5", "--id", "order-1") == "order-1\n"
        assert "1 run waits for an answer; forge runs list shows which" in runs(*work)
        (listed,) = json.loads(runs("list", "--json"))["runs"]
        assert (listed["id"], listed["state"]) == ("order-1", "waiting")
        shown = runs("show", "order-1")
        assert 'Allow pay {"amount":5}?' in shown
        (line,) = [line for line in shown.splitlines() if line.endswith("--approve")]
        _, *printed = line.split()  # without the label
        assert printed[:4] == ["forge", "runs", "answer", "order-1"]
        assert (printed[4], shown.count(printed[5])) == ("--digest", 3)  # that of the question, in both commands
        wrong = runs("answer", "order-1", "--happened", code=2)
        assert 'whether pay {"amount":5} may run; approve or reject it' in " ".join(wrong.split())
        assert "no longer asks that" in runs(
            "answer", "order-1", "--digest", "of-another-question", "--approve", code=2
        )
        assert "Allow pay" in runs("result", "order-1", code=3)
        runs(*printed[2:], "--arguments", '{"amount": 6}')
        runs(*work)
    assert runs("result", "order-1") == "paid 6\n"
    shown = runs("show", "order-1")
    assert "  message  Pay 5\n" in shown
    assert '     done  pay returned "paid 6"\n' in shown
    cancelled = runs("cancel", "order-1")
    assert "has already ended" in cancelled
    assert '     done  pay returned "paid 6"\n' in cancelled
    events = [json.loads(line) for line in runs("events", "flow.py", "order-1").splitlines()]
    assert events[-1]["event"]["type"] == "finished"
    later = runs("events", "flow.py", "order-1", "--after", "{}.{}".format(*events[-2]["sequence"]))
    assert [json.loads(line) for line in later.splitlines()] == events[-1:]
    runs("export", "order-1", "run.jsonl")
    replayed = forge("replay", "run.jsonl", "--workflow", "flow.py", cwd=tmp_path)
    assert "paid 6" in replayed.stdout
    assert runs("prune", "--older", "1d") == "deleted 0 runs\n"
    runs("delete", "order-1")
    assert "no durable runs" in runs("list")


LOST = """
from forge import Workflow, tool
from forge.errors import ToolOutcomeUnknown

@tool
def pay(amount: int) -> str:
    \"\"\"Pay.\"\"\"
    raise ToolOutcomeUnknown("the bank did not answer")

workflow = Workflow("till", tools=[pay], terminal_tool="pay")
"""


def test_a_run_with_an_unknown_outcome_asks_whether_the_call_happened_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(LOST)
    (tmp_path / "server").mkdir()
    runs = runs_in(tmp_path)
    with scripted_server(tmp_path / "server", [PAYS]) as address:
        runs("start", "flow.py", "Pay 5", "--id", "order-1")
        runs("work", "flow.py", "--backend", address, "--until-idle", "--no-probe", "--mode", "native")
        shown = runs("show", "order-1")
        assert 'pay {"amount":5} was started, and its outcome is unknown (the bank did not answer)' in shown
        assert "did it happen? If not, it runs now" in shown
        assert "Allow pay" not in shown, "an answer to that would pay twice"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("show another", "there is no run 'another' in"),
        ("answer another", "one of the arguments --approve --reject --happened --did-not-happen is required"),
        ("list --cursor x", "invalid cursor 'x'"),
        ("prune --older 3x", "'3x' is not a duration; write it like 30d, 12h, 15m or 90s"),
        ("list --database mysql://x", "unsupported database mysql://"),
        ("cancle order-1", "Did you mean cancel?"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, words: str, says: str) -> None:
    (tmp_path / "runs.db").touch()
    done = forge("runs", *words.split(), cwd=tmp_path, FORGE_STATE=str(tmp_path))
    assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (2, "", False)
    assert says in " ".join(done.stderr.split())


SHOP = """
from forge import Scripted, tool
from forge.agent import Agent

shop = Agent("shop", backend=Scripted(["Hello, Ann.", "You are Ann."]))
"""


def test_a_conversation_with_an_agent_on_its_own_backend_loses_its_model_and_is_retried(tmp_path: Path) -> None:
    runs = runs_in(tmp_path)
    away = 'Fault(kind="unreachable", detail="nobody is there")'
    (tmp_path / "shop.py").write_text("from stages.effect import Fault\n" + SHOP.replace('"Hello, Ann."', away))
    first = runs("start", "shop.py", "I am Ann.", "--conversation", "ann").strip()
    assert f"the run {first} is queued" in runs("start", "shop.py", "Who?", "--conversation", "ann", code=2)
    runs("work", "shop.py", "--until-idle")
    runs("result", first, code=1)
    assert f"forge runs retry {first}" in runs("show", first)
    runs("retry", first)
    (tmp_path / "shop.py").write_text(SHOP)
    runs("work", "shop.py", "--until-idle")
    assert runs("result", first) == "Hello, Ann.\n"
    assert "retry" not in runs("show", first)
    runs("retry", first, code=2)
    second = runs("start", "shop.py", "Who am I?", "--conversation", "ann", "--id", "message-2").strip()
    assert runs("start", "shop.py", "Who am I?", "--conversation", "ann", "--id", "message-2").strip() == second
    runs("export", first, "run.jsonl")
    replayed = forge("replay", "run.jsonl", "--workflow", "shop.py", cwd=tmp_path)
    assert (replayed.returncode, "Hello, Ann." in replayed.stdout) == (0, True)


@pytest.mark.parametrize("verb", [("list",), ("show", "a"), ("events", "flow.py", "a"), ("prune", "--older", "1d")])
def test_a_database_that_is_not_there_is_not_made_by_reading_it(tmp_path: Path, verb: tuple[str, ...]) -> None:
    (tmp_path / "flow.py").write_text(FLOW)
    done = forge("runs", *verb, "--database", "typo.db", cwd=tmp_path)
    assert (done.returncode, "there is no database of runs" in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "typo.db").exists()


def test_a_database_in_an_impossible_folder_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(FLOW)
    done = forge("runs", "start", "flow.py", "Pay 5", "--database", "flow.py/runs.db", cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert "cannot create the database of runs" in done.stderr


def test_what_a_tool_returned_cannot_control_the_terminal(tmp_path: Path) -> None:
    said = "end\x1b[31m \u202eback"
    flow = FLOW.replace('f"paid {amount}"', ascii(said)).replace("@tool(approval=True)", "@tool")
    (tmp_path / "flow.py").write_text(flow)
    (tmp_path / "server").mkdir()
    runs = runs_in(tmp_path)
    with scripted_server(tmp_path / "server", [PAYS]) as address:
        runs("start", "flow.py", "Pay 5", "--id", "a")
        runs("work", "flow.py", "--backend", address, "--until-idle", "--no-probe", "--context", "8192")
    assert runs("result", "a", output="terminal").strip() == "end�[31m �back"
    assert runs("result", "a") == f"{said}\n"  # a program gets the value as it is
    told = runs("events", "flow.py", "a", output="terminal")
    assert "\u202e" not in told
    assert json.loads(told.splitlines()[-1])["event"]["outcome"]["value"] == said
