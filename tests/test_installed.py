"""forge-guardrails has a package `forge` too: what pip makes of both in one environment is noticed, with what to do."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

THEIRS = {
    "__init__.py": "from forge.core.runner import WorkflowRunner\nfrom forge.errors import ForgeError\n",
    "errors.py": "class ForgeError(Exception):\n    pass\n",
    "py.typed": "",
    "guardrails/__init__.py": "from forge.guardrails.nudge import Nudge\n",
    "guardrails/nudge.py": "Nudge = str\n",
    "core/__init__.py": "",
    "core/runner.py": "class WorkflowRunner:\n    pass\n",
}
"""The files of forge-guardrails that matter here, under the names that they have in its wheels from 0.4.0 to 0.10.0."""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of packages with forge in it."""
    for package in ("forge", "stages"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def add_theirs(site: Path, *, over: bool) -> None:
    """As pip unpacks a wheel; `over`: after forge's own, so that files of one name are theirs."""
    for name, content in THEIRS.items():
        path = site / "forge" / name
        if over or not path.exists():
            path.parent.mkdir(exist_ok=True)
            path.write_text(content)


def remove_theirs(site: Path) -> None:
    """As pip uninstalls: every file that it once unpacked, whoever wrote it since, and folders that are left empty."""
    for name in THEIRS:
        (site / "forge" / name).unlink()
    (site / "forge/core").rmdir()


def said(site: Path, code: str, *arguments: str, bare: bool = False) -> "subprocess.CompletedProcess[str]":
    """What Python says with that folder first; `bare`: without the environment's own packages, forge among them."""
    first = f"import sys; sys.path.insert(0, {str(site)!r}); sys.dont_write_bytecode = True\n"
    command = [sys.executable, *(["-S", "-E"] if bare else []), "-c", first + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=site.parent)


IMPORT = "import forge; print(forge.__file__)"
COMMAND = "from forge.cli import main; sys.exit(main())"


def test_installed_after_the_other_it_works_and_warns(site: Path) -> None:
    add_theirs(site, over=False)
    imported = said(site, IMPORT)
    assert imported.returncode == 0
    assert "pip has put its files among those of forge-toolcalls" in imported.stderr
    assert "pip uninstall -y forge-guardrails forge-toolcalls" in imported.stderr
    command = said(site, COMMAND, "--version")
    assert command.returncode == 0
    assert "pip uninstall -y forge-guardrails forge-toolcalls" in command.stderr


def test_with_the_other_over_it_the_command_line_says_so(site: Path) -> None:
    add_theirs(site, over=True)
    done = said(site, COMMAND, "--version", bare=True)
    assert done.returncode == 2
    assert done.stderr.startswith("forge: forge-guardrails has a package named forge too")
    assert "Traceback" not in done.stderr


def test_when_the_other_was_uninstalled_the_command_line_says_what_is_missing(site: Path) -> None:
    add_theirs(site, over=True)
    remove_theirs(site)
    done = said(site, COMMAND, "--version", bare=True)
    assert done.returncode == 2
    assert done.stderr.startswith("forge: files of forge-toolcalls are missing")
    assert "in the folder of forge's source: pip install ." in done.stderr


def test_names_opens_with_it() -> None:
    page = (ROOT / "docs/names.md").read_text(encoding="utf-8").split("\n\n")
    assert "forge-guardrails" in page[1]
    assert "uninstall" in page[1]
