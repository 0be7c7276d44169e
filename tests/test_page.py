"""The page of a recorded run: its end, what it took, what is folded, marked and unknown, and what is not on it."""

import asyncio
import os
import re
import tempfile
from pathlib import Path

import pytest

from forge import Workflow, resume_journal, run_sync, tool
from forge.cli.rows import STYLES
from forge.cli.timelines import page
from forge.interpreters.scripted import Line, Scripted, call
from forge.journal.records import read_journal
from forge.journal.replaying import states
from stages.effect import Fault

EVIL = '<script>alert(1)</script>"><img src=x onerror=alert(1)><details open ontoggle=alert(1)>\u202e'


@tool(effect="read")
def look(what: str) -> str:
    """Look."""
    return f"{what}\n" * 60


@tool
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool
def finish(result: str) -> str:
    """Finish."""
    return result


DESK = Workflow(f"desk {EVIL}", tools=[look, pay, finish], optional_steps="pay", terminal_tool="finish")
SCRIPT: list[Line] = [call("look", what=EVIL), call("pay", amount=5), call("finish", result="all is well")]


def recorded(path: Path, script: list[Line] = SCRIPT) -> Path:
    run_sync(DESK, f"Look. {EVIL}", backend=Scripted(script), journal=str(path))
    return path


def cut_before_pay_came_back(path: Path) -> Path:
    """The journal as a crash in `pay` would have left it."""
    lines = path.read_bytes().splitlines(keepends=True)
    (begun,) = (n for n, line in enumerate(lines) if b'"started"' in line and b'"execute"' in line and b'"pay"' in line)
    path.write_bytes(b"".join(lines[: begun + 1]))
    return path


def shown(path: Path) -> str:
    journal = read_journal(path)
    return page(journal, states(journal, DESK))


def test_it_begins_with_the_end_of_the_run_and_with_what_it_took(tmp_path: Path) -> None:
    html = shown(recorded(tmp_path / "run.jsonl"))
    assert '<p class="end done">done: finish returned &quot;all is well&quot;</p>' in html
    assert re.search(r"model under 1 ms · tools [^·<]+</p>", html)
    assert html.count('<dd class="model">') == 3
    assert html.count('<dd class="tools">') == 3
    halted = shown(recorded(tmp_path / "halted.jsonl", ["Hm."] * 9))
    assert '<p class="end halted">halted: the model gave no usable tool call in 4 attempts' in halted


def test_what_is_long_is_folded_and_what_was_said_is_text(tmp_path: Path) -> None:
    html = shown(recorded(tmp_path / "run.jsonl"))
    (folded,) = re.findall(r"<details><summary>(.*?)</summary>(.*?)</details>", html, re.DOTALL)
    assert len(folded[0]) < len(folded[1]) / 4
    assert "characters</i>" in folded[0]
    tags = "html head meta title style body h1 p section h2 small div dl dt dd details summary i"
    assert {*re.findall(r"<(\w+)", html)} == {*tags.split()}
    assert {*re.findall(r"\son\w+\s*=", re.sub(r">[^<]*<", "><", html))} == set()
    assert "\u202e" not in html


def test_a_run_that_was_cut_short_says_so_and_what_is_unknown(tmp_path: Path) -> None:
    html = shown(cut_before_pay_came_back(recorded(tmp_path / "run.jsonl")))
    assert '<p class="end interrupted">interrupted: started, never finished: the call of pay</p>' in html
    assert '<p class="end unknown">outcome unknown: pay {&quot;amount&quot;:5}</p>' in html
    assert '<dd class="unknown">pay {&quot;amount&quot;:5}</dd>' in html
    assert '<dd class="resumed">' not in html


def test_a_run_that_was_resumed_is_marked_where_it_was_cut(tmp_path: Path) -> None:
    path = cut_before_pay_came_back(recorded(tmp_path / "run.jsonl"))
    asyncio.run(resume_journal(DESK, path, backend=Scripted([call("finish", result="without it")])))
    html = shown(path)
    assert html.count('<dd class="resumed">the run was interrupted here and resumed later</dd>') == 1
    assert html.index('<dd class="resumed">') < html.index('<dd class="unknown">[InDoubt] pay was started')
    assert '<p class="end unknown">outcome unknown: pay {&quot;amount&quot;:5}</p>' in html


def test_a_server_that_was_gone_is_marked_too(tmp_path: Path) -> None:
    gone = Fault(kind="unreachable", detail="nobody there")
    path = recorded(tmp_path / "run.jsonl", [call("look", what="a"), gone])
    assert '<p class="end halted">halted: no reply from the model: nobody there' in shown(path)
    asyncio.run(resume_journal(DESK, path, backend=Scripted([call("finish", result="ok")])))
    html = shown(path)
    assert html.count('<dd class="resumed">') == 1
    assert '<p class="end done">' in html


def test_every_row_but_what_the_model_said_has_a_style(tmp_path: Path) -> None:
    style = shown(recorded(tmp_path / "run.jsonl")).partition("</style>")[0]
    assert [label for label in STYLES if f".{label}" not in style] == ["said"]


@pytest.mark.parametrize("home", ["/home/max", "/Users/max", "/root", "C:\\Users\\max", os.path.expanduser("~")])  # noqa: PTH111
def test_no_folder_of_the_machine_is_on_it(tmp_path: Path, home: str) -> None:
    temporary = tempfile.gettempdir()
    said = f"cannot open {home}/secret/orders.csv, nor {temporary}/x, nor {Path.cwd()}/flow.py, but {home}ly"
    html = shown(recorded(tmp_path / "run.jsonl", [call("pay", amount=1), call("finish", result=said)]))
    for folder in (f"{home}/", temporary, str(Path.cwd())):
        assert folder not in html.replace("\\\\", "\\")
    assert "cannot open ~/secret/orders.csv, nor …/x, nor ./flow.py" in html
