"""The steps of the Containerfile, without a daemon: what it copies, installs and starts; and those of compose.yaml."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from forge.cli.commands import parser

ROOT = Path(__file__).parents[1]
STEPS: list[tuple[str, str]] = [
    (line.split(" ", 1)[0], line.split(" ", 1)[1])
    for line in (ROOT / "Containerfile").read_text().splitlines()
    if line and not line.startswith("#")
]
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())


def test_both_stages_have_a_pinned_base_and_the_last_has_a_user_without_rights() -> None:
    bases = [rest.split()[0] for step, rest in STEPS if step == "FROM"]
    assert len(bases) == 2
    assert all(re.fullmatch(r"[\w./-]+:\d[\w.-]+", base) for base in bases)
    last = STEPS[[step for step, _ in STEPS].index("FROM", 1) :]
    names = [step for step, _ in last]
    assert dict(last)["USER"] not in ("root", "0")
    assert names.index("USER") > names.index("RUN")


def test_what_is_copied_is_there_and_not_ignored() -> None:
    ignored = (ROOT / ".containerignore").read_text().split()
    copied = [rest.split()[:-1] for step, rest in STEPS if step == "COPY" and not rest.startswith("--from")]
    names = [name for line in copied for name in line]
    assert [name for name in names if not (ROOT / name).exists() or f"!{name}" not in ignored] == []
    assert {"forge", "stages", "forge_program.py", "pyproject.toml"} <= {*names}


def test_the_extras_exist() -> None:
    (extras,) = [match[1] for _, rest in STEPS if (match := re.search(r"\.\[([\w,]+)\]", rest))]
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {*extras.split(",")} <= known.keys()


def test_forge_takes_the_commands_of_compose() -> None:
    built = [service for service in COMPOSE["services"].values() if "build" in service]
    assert built
    for service in built:
        options = parser().parse_args(service["command"])
        assert service["ports"] == [f"127.0.0.1:{options.port}:{options.port}"]
        # Nobody gets in without a key.
        assert options.keys if "keys" in options else "FORGE_KEY" in service["environment"]
        assert service["read_only"]


@pytest.mark.soak
def test_the_steps_install_a_forge_that_starts(tmp_path: Path) -> None:
    """Each COPY and RUN of the first stage in a folder of its own, with this machine's Python."""
    source, installed = tmp_path / "source", tmp_path / "opt"
    source.mkdir()
    for step, rest in STEPS[: [step for step, _ in STEPS].index("FROM", 1)]:
        if step == "COPY":
            *names, to = rest.split()
            for name in names:
                if (ROOT / name).is_dir():
                    shutil.copytree(ROOT / name, source / to, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(ROOT / name, source / to)
        if step == "RUN":
            command = rest.replace("/opt/forge", str(installed)).replace("python -m", f"{sys.executable} -m")
            subprocess.run(["/bin/sh", "-c", command], cwd=source, check=True, capture_output=True)
    program = installed / "bin" / "forge"
    for arguments in (["--version"], ["proxy", "--help"], ["runs", "--help"]):
        done = subprocess.run([program, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
    packages = Path(subprocess.run(
        [installed / "bin" / "python", "-c", "import forge; print(forge.__file__)"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    ).stdout)  # fmt: skip
    assert packages.is_relative_to(installed)
