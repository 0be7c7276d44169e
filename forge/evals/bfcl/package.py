"""The package `bfcl-eval`, fetched by its hash into the user's cache folder."""

import shutil
import tempfile
import zipfile
from pathlib import Path

from filelock import FileLock

from forge.backends.servers.download import cache_folder
from forge.backends.servers.models import Wheel
from forge.backends.servers.pip_download import fetch_wheel

WHEEL = Wheel(
    distribution="bfcl-eval",
    version="2026.3.23",
    sha256="3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a",
)
"""Apache-2.0. Its version is a part of what is measured: questions and answers have been corrected between versions."""


def ensure_package() -> Path:
    """The folder of the unpacked package, fetched (2 MB) if it is not there. ModelUnavailable if it cannot be had."""
    home = cache_folder().with_name("bfcl")
    place = home / f"{WHEEL.version}-{WHEEL.sha256[:8]}"
    if not place.exists():
        home.mkdir(parents=True, exist_ok=True)
        with FileLock(home / ".lock"), tempfile.TemporaryDirectory(dir=home) as folder:
            if not place.exists():
                wheel = fetch_wheel("the data of BFCL", WHEEL, Path(folder), lambda _: None)
                unpacked = Path(folder) / "unpacked"
                with zipfile.ZipFile(wheel) as archive:
                    archive.extractall(unpacked)
                shutil.move(unpacked, place)
    return place / "bfcl_eval"
