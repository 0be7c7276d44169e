"""The examples of the pages are executed, each page's one after the other in one namespace, in an empty folder."""

import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from hypothesis import settings

from forge import Scripted, Workflow, run_sync, tool
from stages.message import Assistant, Tool
from tests.backends.test_server_manager import gguf, installed
from tests.docs.pages import ROOT, blocks, page, pasted
from tests.patients import patients

ELSEWHERE = {
    "chat": "test_tables.py loads its agent",
    "doctor": "below, with a server",
    "proxy": "test_policies.py, with a proxy",
    "recipes": "below, with what is printed",
    "servers": "below, with a program to start",
    "tutorial": "below, with what is printed",
}
"""Pages whose examples need more than themselves, and who runs those."""
PAGES = [one.stem for one in sorted((ROOT / "docs").glob("*.md")) if "```python" in one.read_text()]


@pytest.fixture
def _few_examples() -> Iterator[None]:
    """Of each law and test on a page, a few examples, left as they are: that laws find mistakes is tested elsewhere."""
    settings.register_profile("pasted", settings.get_profile("unshrunk"), max_examples=10)
    settings.load_profile("pasted")
    yield
    settings.load_profile("forge")


@pytest.mark.usefixtures("_few_examples")
@pytest.mark.parametrize("name", [name for name in PAGES if name not in ELSEWHERE])
def test_the_examples_hold(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pasted(name, __name__=name)


def test_those_of_the_doctor_on_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    with patients() as url:
        pasted("doctor", at=f"{url}/llama/v1")
    assert capsys.readouterr().out == "text {'json_schema': True}\nconstrained json_schema\n"


@tool
def end() -> str:
    """End."""
    return "ok"


def test_those_on_servers_with_a_program_in_llama_servers_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "models").mkdir()
    gguf(tmp_path, "models/qwen.gguf")
    installed(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("FORGE_STATE", str(tmp_path / "state"))
    pasted("servers", workflow=Workflow("w", tools=[end], terminal_tool="end"))


PROGRAM = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


def test_every_recipe_is_a_program_that_prints_what_stands_below_it() -> None:
    text, namespace = page("recipes"), dict[str, object]()
    assert all(all(PROGRAM.findall(symptom)[0]) for symptom in text.split("\n## ")[1:])
    for code, expected in PROGRAM.findall(text):
        with redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, "recipes.md", "exec"), namespace)  # noqa: S102 - the project's own page
        assert printed.getvalue() == expected


def test_the_output_in_the_tutorial_is_that_of_its_workflow() -> None:
    names = pasted("tutorial", __name__="tutorial")
    assert names["result"].unwrap().value == "129.9 was paid back."
    run = blocks(page("tutorial"), "text")[0]
    model = Scripted(re.findall(r"^ +said +(.*)$", run, re.MULTILINE))
    request = "Please refund order A-17: the lamp is broken."
    history = run_sync(names["workflow"], request, backend=model, ask=names["yes"]).unwrap().state.history
    calls = [one for message in history if isinstance(message, Assistant) for one in message.calls]
    assert re.findall(r"^ +runs +(.*)$", run, re.MULTILINE) == [f"{one.name} {one.arguments}" for one in calls]
    assert re.findall(r"^ +result +(.*)$", run, re.MULTILINE) == [m.text for m in history if isinstance(m, Tool)]
