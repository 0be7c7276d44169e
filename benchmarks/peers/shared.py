"""Run the shared bench with forge as one more peer: `python -m benchmarks.peers.shared BENCH --suite loop …`.

BENCH is its folder; nothing in it is changed: it is copied to a temporary folder, where our adapters are laid
over it. Environments that its peers need are made by its own `venvs.sh`, that of forge here. What comes after
BENCH is handed to its `run.py`, which writes tables to standard output.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
PROJECT = HERE.parent.parent
ADAPTERS = ("forge_new.py", "forge_threads.py", "replies.py")
FUNCTIONS = ("compact_forge_new.py", "rescue_forge_new.py", "tokens_forge_new.py")


def main(bench: str, *options: str) -> int:
    """The exit status of the bench's `run.py`, with its tables on standard output."""
    venvs = Path(os.environ.get("VENVS") or Path.home() / ".cache" / "forge-bench")
    with TemporaryDirectory() as temporary:
        copy = Path(temporary) / "bench"
        shutil.copytree(bench, copy, ignore=shutil.ignore_patterns("results", "__pycache__"))
        lay_over(copy)
        install(venvs, copy)
        command = [sys.executable, str(copy / "run.py"), *options]
        # Not from here: a peer that is named forge too would import this checkout.
        status = subprocess.run(command, check=False, cwd=copy, env={**clean(), "VENVS": str(venvs)})  # noqa: S603
    return status.returncode


def lay_over(copy: Path) -> None:
    """Our adapters in their places."""
    for name in ADAPTERS:
        shutil.copy(HERE / name, copy / "adapters" / name)
    for name in FUNCTIONS:
        shutil.copy(HERE / name, copy / "microbench" / name)
    runner = copy / "run.py"
    known = '    "forge_new": ('
    threads = '    "forge_threads": ("forge_threads", os.environ.get("FORGE_NEW_VENV", "forge_new")),\n'
    runner.write_text(runner.read_text(encoding="utf-8").replace(known, threads + known, 1), encoding="utf-8")


def install(venvs: Path, copy: Path) -> None:
    """The environments without which nothing runs, and forge in one of its own, as this checkout has it now."""
    missing = [name for name in ("raw", "base") if not (venvs / name / "bin" / "python").exists()]
    if missing:
        interpreter = {**clean(), "PY": sys.executable, "VENVS": str(venvs)}
        subprocess.run(["bash", str(copy / "venvs.sh"), *missing], check=True, env=interpreter)  # noqa: S603, S607
    python = venvs / "forge_new" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(venvs / "forge_new")], check=True)  # noqa: S603
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, str(PROJECT)], check=True, env=clean())  # noqa: S603


def clean() -> dict[str, str]:
    """This environment without what would have a peer import this checkout."""
    return {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE"}}


if __name__ == "__main__":
    if len(sys.argv) < 2 or not (Path(sys.argv[1]) / "run.py").exists():
        sys.exit(
            "give the bench's folder first: python -m benchmarks.peers.shared BENCH --suite loop --peers raw_msgspec"
        )
    sys.exit(main(*sys.argv[1:]))
