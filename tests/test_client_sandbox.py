"""The sandbox of `make clients`, in a clone and with a cache that are both in the folder for temporary files."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.conftest import LEFT_OUT

CLIENTS = Path(__file__).with_name("clients")
PROBE = """
import asyncio
from pathlib import Path
from tests.clients import sandbox

sandbox.enter("tests.probe", [])
clone = Path(__file__).parents[1]
script = f"cat {clone}/own; touch {clone}/new; cat {clone}/../hidden; ls {clone}/.. /dev/shm; touch /tmp/x made"
ran = asyncio.run(sandbox.run(sandbox.Invocation(("sh", "-c", script)), {"given": ""}, 60, "checks"))
print(sorted(ran.left), ran.said)
"""


def test_a_client_sees_the_clone_and_the_cache_among_temporary_files_and_nothing_beside_them(
    record_property: Callable[[str, object], None],
) -> None:
    entered = ("unshare", "--user", "--map-root-user", "--net", "true")
    if not shutil.which("unshare") or subprocess.run(entered, check=False).returncode:
        record_property(LEFT_OUT, "the sandbox of `make clients`: it needs Linux with namespaces for users")
        return
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        clone, programs = Path(folder, "clone"), Path(folder, "programs")
        shutil.copytree(CLIENTS, clone / "tests" / "clients", ignore=shutil.ignore_patterns("__pycache__"))
        programs.mkdir()
        texts = {"clone/tests/__init__.py": "", "clone/tests/probe.py": PROBE, "clone/own": "its own\n", "hidden": "no"}
        for name, text in {**texts, "programs/node": "#!/bin/sh\necho v24.0.0\n"}.items():
            Path(folder, name).write_text(text)
        (programs / "node").chmod(0o755)
        path = {"FORGE_CLIENTS": f"{folder}/cache", "PATH": f"{programs}:{os.environ['PATH']}"}
        command = [sys.executable, "-m", "tests.probe"]
        done = subprocess.run(
            command, cwd=clone, env={**os.environ, **path}, capture_output=True, text=True, check=False
        )
        assert done.stdout.splitlines() == [
            "['given', 'made'] its own",
            f"touch: cannot touch '{clone}/new': Read-only file system",
            f"cat: {clone}/../hidden: No such file or directory",
            "/dev/shm:",  # noqa: S108 - what ls says
            "",
            f"{clone}/..:",
            *("cache", "clone", "programs", ""),
        ], done
        assert not (clone / "new").exists()
