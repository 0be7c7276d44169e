"""`import forge` loads what every run needs, and no more."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import forge
import forge.backends
import forge.journal
import forge.tools

ROOT = Path(__file__).parents[1]

HEAVY = (
    "anthropic",
    "csv",
    "dbos",
    "difflib",
    "docstring_parser",
    "email",
    "httptools",
    "httpx",
    "hypothesis",
    "importlib.metadata",
    "jsonschema_rs",
    "platformdirs",
    "rich",
    "sqlalchemy",
    "stages.rescue.families",
    "tempfile",
    "uvicorn",
    "uvloop",
    "zipfile",
)


def test_import_loads_nothing_that_is_slow() -> None:
    # asyncio and msgspec are needed by every run; what they bring along is theirs.
    code = f"""
import sys, asyncio, msgspec
before = set(sys.modules)
import forge
print(*sorted((sys.modules.keys() - before) & {set(HEAVY)!r}))
"""
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert said.stdout.split() == []


def test_a_client_of_a_running_server_loads_nothing_that_starts_one() -> None:
    code = """
import sys
from forge.backends import Server, named
Server("http://127.0.0.1:1"), named("http://127.0.0.1:1")
print(*sorted({"forge.backends.anthropic", "forge.backends.servers.models"} & sys.modules.keys()))
named("ollama:qwen3")
print(*sorted({"anthropic", "filelock", "platformdirs"} & sys.modules.keys()))
"""
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert said.stdout.split() == []


def test_a_run_loads_grammars_only_to_search_a_text_for_calls() -> None:
    """They take as long to compile as all of `import forge`; docstrings of one line need no parser either."""
    code = """
import sys
from forge import Scripted, Workflow, call, run_sync

def look(name: str) -> str:
    'Look something up.'
    return name

def loaded():
    return {"stages.rescue.families", "docstring_parser", "forge.journal.records"} & sys.modules.keys()

workflow = Workflow("brief", tools=[look], terminal_tool="look")
run_sync(workflow, "Look.", backend=Scripted([call("look", name="A")])).unwrap()
before = loaded()
said = '<tool_call>{"name": "look", "arguments": {"name": "A"}}</tool_call>'
run_sync(workflow, "Look.", backend=Scripted([said])).unwrap()
print(len(before), *loaded())
"""
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert said.stdout.split() == ["0", "stages.rescue.families"]


def test_every_public_name_is_there() -> None:
    code = "from forge import *; from forge.journal import *; print(run.__name__, ToolDef.__name__, Redact.__name__)"
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert said.stdout.split() == ["run", "ToolDef", "Redact"]
    for room in (forge, forge.backends, forge.journal, forge.tools):
        assert all(hasattr(room, name) for name in room.__all__)
    assert [name for name in dir(forge) if not name.startswith("__")] == forge.__all__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = forge.nothing  # type: ignore[attr-defined]  # that it is not there is what is tested


def test_every_room_is_under_the_contract_that_forbids_io_or_has_leave_to_do_it() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (bound,) = (contract["source_modules"] for contract in contracts if "do I/O" in contract["name"])
    free = {
        "interpreters",
        "backends",
        "journal",
        "door",
        "proxy",
        "evals",
        "agent",
        "mcp",
        "durable",
        "serve",
        "telemetry",
    }
    free |= {"cli", "processes", "toml_tables", "__init__", "__main__", "__pycache__"}
    modules = {path.stem for path in (ROOT / "forge").iterdir() if path.is_dir() or path.suffix == ".py"}
    assert {f"forge.{name}" for name in modules - free} == {*bound}
