"""Load what a user defines in a Python file: a workflow or an agent, as `FILE.py:NAME`, or scenarios."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from forge.agent import Agent
from forge.cli import demo
from forge.errors import DefinitionError, ForgeError
from forge.workflow.suggestions import did_you_mean
from forge.workflow.workflow import Workflow

_T = TypeVar("_T")


def load_workflow(reference: str) -> Workflow:
    """The Workflow of that name in that file; without a name, the only one there. ForgeError says what is wrong.

    `demo` is that of `forge demo`.
    """
    if reference == "demo":
        return demo.workflow
    return _named(reference, (Workflow,), "workflow", "workflow = Workflow(…)")


def load_agent(reference: str) -> Agent:
    """The Agent of that name in that file; without a name, the only one there. ForgeError says what is wrong."""
    return _named(reference, (Agent,), "agent", "agent = Agent(…)")


def load_served(reference: str) -> Workflow | Agent:
    """The Workflow or the Agent of that name in that file, as `load_workflow` finds it."""
    if reference == "demo":
        return demo.workflow
    line = "workflow = Workflow(…) or agent = Agent(…)"
    kinds: tuple[type[Workflow | Agent], ...] = (Workflow, Agent)
    return _named(reference, kinds, "workflow or agent", line)


def _named(reference: str, kinds: tuple[type[_T], ...], what: str, line: str) -> _T:
    file, _, name = reference.rpartition(":") if ".py:" in reference else (reference, "", "")
    module = imported(file, f"the {what} as FILE.py:NAME")
    found = {key: value for key, value in vars(module).items() if isinstance(value, kinds)}
    if not found:
        raise ForgeError(f"{file} has no {what}; it needs a line like: {line}")
    there = ", ".join(found)
    if name and name not in found:
        raise ForgeError(f"{file} has no {what} named {name!r}; it has: {there}.{did_you_mean(name, found)}")
    if not name and len(found) > 1:
        raise ForgeError(f"{file} has more than one {what}: {there}; write {file}:NAME")
    return found[name] if name else next(iter(found.values()))


def imported(file: str, written: str) -> ModuleType:
    """The module of that file, run. ForgeError says why it cannot be; `written` is how a user writes what it is for."""
    path = Path(file)
    if path.is_dir():
        raise ForgeError(f"{file} is a folder; write {written}")
    if not path.is_file():
        meant = did_you_mean(path.name, [near.name for near in path.parent.glob("*.py")])
        raise ForgeError(f"there is no file {file}; write {written}.{meant}")
    spec = importlib.util.spec_from_file_location(_free_name(path.stem), path.resolve())
    if spec is None or spec.loader is None:
        raise ForgeError(f"{path} is not a Python file; its name has to end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    # Last, so that modules next to the file can be imported but hide no installed ones.
    sys.path.append(str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except DefinitionError as error:
        problems = "\n".join(f"- {problem}" for problem in error.problems)
        raise ForgeError(f"{path} defines a workflow, an agent or a scenario wrongly:\n{problems}") from None
    except SystemExit as error:
        raise ForgeError(f"{path} cannot be imported: it ends the program{_where(error, path)}") from None
    # A user's file may raise anything; they need to know what and where, without a traceback through forge.
    except Exception as error:
        raise ForgeError(f"{path} cannot be imported: {type(error).__name__}: {error}{_where(error, path)}") from error
    return module


def _free_name(stem: str) -> str:
    """A module name for the file: its own, unless a module such as `json` has it already."""
    taken = not stem.isidentifier() or importlib.util.find_spec(stem) is not None
    return f"forge_workflow_{stem}" if taken else stem


def _where(error: BaseException, path: Path) -> str:
    line = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path.resolve()):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f" (line {line})" if line else ""
