"""The package `bfcl-eval` and what its simulated functions need, fetched by hash into the user's cache folder."""

import shutil
import tempfile
import zipfile
from pathlib import Path

from filelock import FileLock

from forge.backends.servers.download import cache_folder
from forge.backends.servers.models import Wheel
from forge.backends.servers.pip_download import fetch_wheel

BFCL = Wheel(
    distribution="bfcl-eval",
    version="2026.3.23",
    sha256="3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a",
)
"""Apache-2.0. Its version is a part of what is measured: questions and answers have been corrected between versions."""

MPMATH = Wheel(
    distribution="mpmath",
    version="1.3.0",
    sha256="a0b2b9fe80bbcd81a6647ff13108738cfb482d481d826cc0e02f5b35e5c88d2c",
)
"""The one package that the simulated functions import, in the version that bfcl-eval asks for. BSD."""


def ensure_package() -> Path:
    """The folder of the unpacked package, beside mpmath's; both fetched (3 MB) if they are not there.

    ModelUnavailable if they cannot be had.
    """
    home = cache_folder().with_name("bfcl")
    place = home / f"{BFCL.version}-{BFCL.sha256[:8]}-{MPMATH.sha256[:8]}"
    if not place.exists():
        home.mkdir(parents=True, exist_ok=True)
        with FileLock(home / ".lock"), tempfile.TemporaryDirectory(dir=home) as folder:
            if not place.exists():
                unpacked = Path(folder) / "unpacked"
                for wheel in (BFCL, MPMATH):
                    _unpack(wheel, Path(folder) / wheel.distribution, unpacked)
                shutil.move(unpacked, place)
    return place / "bfcl_eval"


def _unpack(wheel: Wheel, folder: Path, unpacked: Path) -> None:
    folder.mkdir()
    with zipfile.ZipFile(fetch_wheel("the data of BFCL", wheel, folder, lambda _: None)) as archive:
        archive.extractall(unpacked)
