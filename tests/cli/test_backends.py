"""Backends by their names on the command line, each a whole run in a process of its own."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from forge.backends import reached
from forge.cli.commands import parse
from tests.commands import forge
from tests.foreign import serving
from tests.misbehaving import misbehaving

FLOW = """
from tests.flows import Desk

workflow = Desk().workflow
"""
PROFILE = 'name = "mine"\nmode = "constrained"\nconstrain = "structured_outputs"\ncontext = "models"\n'


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving() as address:
        yield address


def ran(tmp_path: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    flow = tmp_path / "flow.py"
    flow.write_text(FLOW)
    root = str(Path(__file__).parents[2])
    words = ["run", str(flow), "Go.", "--journal", str(tmp_path / "j.jsonl"), *options]
    return forge(*words, cwd=Path(root), **environment)


def test_a_backend_by_name_and_address(server: str, tmp_path: Path) -> None:
    done = ran(tmp_path, "--backend", f"vllm:{server}/vllm/v1")
    assert "finish returned" in done.stdout, done
    assert done.returncode == 0


def test_a_server_that_stays_silent_is_waited_for_as_long_as_the_command_line_says(tmp_path: Path) -> None:
    with misbehaving() as address:
        done = ran(tmp_path, "--backend", f"{address}/silent", "--no-probe", "--model", "m", "--timeout", "0.3")
    assert done.returncode == 1, done
    assert "sent nothing for 0.3 seconds" in done.stdout


def test_a_profile_that_is_wrong_is_said_before_anything_happens(server: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(PROFILE.replace("structured", "stuctured"))
    done = ran(tmp_path, "--backend", f"{server}/vllm/v1", "--profile", str(tmp_path / "mine.toml"))
    assert done.returncode == 2
    assert "stuctured_outputs" in done.stderr


def test_anthropic_by_the_name_of_a_model_with_the_key_where_the_sdk_looks_for_it(server: str, tmp_path: Path) -> None:
    where = {"ANTHROPIC_BASE_URL": f"{server}/anthropic", "ANTHROPIC_API_KEY": "the-key"}
    done = ran(tmp_path, "--backend", "anthropic:m", **where)
    assert done.returncode == 0, done
    assert "the-key" not in done.stdout + done.stderr + (tmp_path / "j.jsonl").read_text()


def test_make_says_what_to_do_without_the_python_that_it_is_given(tmp_path: Path) -> None:
    makefile = Path(__file__).parents[2] / "Makefile"
    command = ["make", "--file", str(makefile), "PYTHON=python9.9", ".venv/python.ready"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode != 0
    assert "there is no python9.9 on this machine" in done.stdout
    assert "make PYTHON=python3.12" in done.stdout


@pytest.mark.parametrize("spec", ["http://127.0.0.1:1", "ollama:m", "anthropic:m"])
def test_a_server_may_be_as_slow_on_the_command_line_as_in_python(spec: str) -> None:
    given = parse(["run", "flow.py", "Go.", "--backend", spec])
    held = vars(reached(spec))
    assert given.timeout == (held["_options"]["timeout"] if spec == "anthropic:m" else held["_timeout"]) == 300
