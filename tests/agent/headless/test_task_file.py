"""A task file: every fault in it is told at once, and nothing begins with one that contradicts itself."""

from collections.abc import Callable
from pathlib import Path

import pytest

from forge.agent import Agent
from forge.agent.headless import AgentTask, Gate, TaskLimits, read_task
from forge.agent.headless.gates import Gates
from forge.agent.headless.running import task_workflow
from forge.errors import DefinitionError
from forge.interpreters.scripted import Scripted
from forge.tools import tool
from stages.effect import Price
from stages.options import OptionError

WHOLE = """
task = "Mend add."
folder = "repo"
agent = "agents.py:coder"
instructions = "Be brief."
backend = "http://127.0.0.1:8080"
model = "qwen"
gate_attempts = 2

[limits]
tools = ["read_file", "edit_file", "run_command"]
write = ["src/**"]
never_write = ["*.lock"]
commands = [["python", "-m", "pytest", "*"]]
max_files = 3
max_lines = 40
max_iterations = 20
max_tokens = 50_000
max_seconds = 600
max_cost = 0.5
price = { prompt = 1.0, completion = 2.0 }

[[gates]]
command = ["python", "-m", "pytest", "-q"]
seconds = 60
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "task.toml"
    file.write_text(text)
    return file


def faults(folder: Path, text: str) -> str:
    with pytest.raises(DefinitionError) as told:
        read_task(written(folder, text))
    return str(told.value)


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    task = read_task(written(tmp_path, WHOLE))
    assert (task.folder, task.agent) == (str(tmp_path / "repo"), str(tmp_path / "agents.py:coder"))
    assert task.limits.commands == (("python", "-m", "pytest", "*"),)
    assert task.limits.price == Price(prompt=1.0, completion=2.0)
    assert [gate.seconds for gate in task.gates] == [60.0]


def test_every_fault_is_told_with_its_table_and_what_may_be_meant(tmp_path: Path) -> None:
    said = faults(
        tmp_path,
        'tsk = "x"\n[limits]\nmax_file = 3\nwrite = "src"\nprice = { promt = 1.0 }\n'
        '[[gates]]\ncommand = "pytest"\nsecond = 3\n',
    )
    for part in (
        "tsk: unknown key",
        "Did you mean task?",
        "task is missing",
        "[limits] max_file: unknown key",
        "Did you mean max_files?",
        "[limits] write is 'src'; it must be a list",
        "[limits.price] promt: unknown key",
        "[gates number 1] command is 'pytest'; it must be a list",
        "[gates number 1] second: unknown key",
    ):
        assert part in said, part


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("read_only = true\nwrite = ['src']", "read_only contradicts write"),
        ("read_only = true\ncommands = [['ls']]", "read_only contradicts commands"),
        ("max_lines = 3", "max_lines: no file may be changed, for write is missing"),
        ("max_files = 3", "max_files: no file may be changed, for write is missing"),
        ("write = ['src']\nnever_write = ['src']", "src is in write and in never_write"),
        ("write = ['src']\ntools = ['read_file']", "tools has neither write_file nor edit_file"),
        ("commands = [['ls']]\ntools = ['read_file']", "tools has no run_command"),
        ("tools = ['edit_file']", "it has a tool that changes files, but no file may be changed"),
        ("tools = ['run_command']", "it has run_command, but no command may be run"),
        ("write = ['../x']", "'../x' is not a pattern of paths in the folder"),
        (f"write = ['{'**/' * 2000}x']", "a pattern has 6001 characters; it may have 1000"),
        ("write = ['/etc']", "'/etc' is not a pattern of paths in the folder"),
        ("write = ['']", "'' is not a pattern"),
        ("commands = [[]]", "[] names no program"),
        ("commands = [['*']]", "['*'] names no program"),
        ("commands = [['ls', '*', 'x']]", "has * before its end"),
        ("max_iterations = 0", "max_iterations is 0; it must be a whole number, at least 1"),
        ("max_seconds = -1.0", "max_seconds is -1.0; it must be a number, over 0"),
        ("max_cost = 1.0", "[limits] max_cost needs price="),
    ],
)
def test_contradictions_are_refused(tmp_path: Path, text: str, said: str) -> None:
    assert said in faults(tmp_path, f'task = "x"\n[limits]\n{text}\n')


def test_all_contradictions_are_told_at_once(tmp_path: Path) -> None:
    text = 'task = " "\ngate_attempts = 0\n[limits]\nmax_lines = 1\n[[gates]]\ncommand = []\nseconds = 0\n'
    said = faults(tmp_path, text)
    for part in (
        "task: it is empty",
        "gate_attempts: it is 0",
        "max_lines",
        "command: it is empty",
        "seconds: it is 0",
    ):
        assert part in said, part


def test_what_is_no_task_file_is_said(tmp_path: Path) -> None:
    assert "is not valid TOML" in faults(tmp_path, "task = ")
    with pytest.raises(DefinitionError, match="cannot be read: No such file"):
        read_task(tmp_path / "gone.toml")


@tool
def deploy() -> str:
    """Deploy."""
    return "deployed"


def built(folder: Path, text: str, **options: object) -> None:
    agent = Agent("coder", backend=Scripted([]), tools=[deploy], **options)  # type: ignore[arg-type]
    task = read_task(written(folder, f'task = "x"\n{text}'))
    task_workflow(task, agent, Gates(task.gates, folder, task.gate_attempts))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[limits]\ntools = ['deplo']", "there is no tool 'deplo'; there are: .* Did you mean deploy?"),
        ("[limits]\nread_only = true\ntools = ['deploy']", "read_only and tools: deploy changes something"),
        ("folder = 'gone'", "folder: there is no folder .*gone"),
        ("[[gates]]\ncommand = ['no-such-program']", "number 1. command: there is no program 'no-such-program' here$"),
        ("[[gates]]\ncommand = ['python3 -m unittest']", "each of its arguments as a string of its own"),
    ],
)
def test_what_the_agent_does_not_have_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(DefinitionError, match=said):
        built(tmp_path, text)


def test_gates_need_an_end_in_words(tmp_path: Path) -> None:
    gated = "[[gates]]\ncommand = ['true']"
    built(tmp_path, gated)
    with pytest.raises(DefinitionError, match="an agent with result=… cannot have any"):
        built(tmp_path, gated, result=AgentTask)


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (lambda: AgentTask(task="x", limits=TaskLimits(read_only=True, write=("a",))), "read_only contradicts write"),
        (lambda: AgentTask(task="x", limits=TaskLimits(write=("../**",))), "is not a pattern of paths in the folder"),
        (lambda: AgentTask(task="x", gates=(Gate(command=()),)), "number 1. command: it is empty"),
        (lambda: AgentTask(task="x", gates=(Gate(command="pytest"),)), "Gate: command is 'pytest'; it must be a list"),  # type: ignore[arg-type]  # what people write
    ],
)
def test_a_task_made_in_python_is_held_to_the_same(task: Callable[[], AgentTask], said: str) -> None:
    agent = Agent("coder", backend=Scripted([]), tools=[deploy])
    with pytest.raises((DefinitionError, OptionError), match=said):
        task_workflow(task(), agent, Gates((), Path(), 1))
