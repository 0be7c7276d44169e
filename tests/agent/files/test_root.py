"""A root: whatever a path says, nothing outside of the folder is read or changed."""

import os
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forge.agent.files.root import LARGEST, Root
from forge.errors import DefinitionError, ToolResolutionError

OUTSIDE = "what another folder holds"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder `in` with links to everywhere, beside a folder `out`."""
    inside, outside = tmp_path / "in", tmp_path / "out"
    (inside / "a" / "b").mkdir(parents=True)
    (inside / "a" / "file").write_text("inside")
    (inside / "a" / "b" / "file").write_text("deep inside")
    outside.mkdir()
    (outside / "file").write_text(OUTSIDE)
    for name, target in LINKS.items():
        (inside / name).symlink_to(target.format(outside=outside, inside=inside))
    return inside


LINKS = {
    "out_folder": "{outside}",
    "out_file": "{outside}/file",
    "out_relative": "../out",
    "out_of_link": "out_folder/../out/file",
    "in_folder": "a/b",
    "in_absolute": "{inside}/a",
    "a/up": "..",
    "a/up_and_out": "../../out",
    "loop": "loop",
    "nowhere": "{outside}/new",
    "root": "/",
}

STEPS = st.sampled_from(
    [
        *("..", ".", "", "a", "b", "file", "up", "new", "~", "\0"),
        *("...", "\\..", "%2e%2e", "\uff0e\uff0e", "é", "x" * 300),
        *(name.rpartition("/")[2] for name in LINKS),
        *("out", "in", "etc", "passwd", "proc/self/root"),
    ]
)


@st.composite
def paths(draw: st.DrawFn) -> str:
    steps = "/".join(draw(st.lists(STEPS, min_size=1, max_size=8)))
    return draw(st.sampled_from(["{}", "/{}", "{inside}/{}", "{outside}/{}", "{inside}/../{}", "//{}"])) + "\n" + steps


def written(template: str, inside: Path) -> str:
    before, _, steps = template.partition("\n")
    return before.format(steps, inside=inside, outside=inside.parent / "out") if before else steps


def outside_of(inside: Path) -> dict[str, bytes]:
    out = inside.parent / "out"
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in out.rglob("*")}


many = settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@many
@given(template=paths(), links=st.booleans())
def test_no_path_reads_anything_outside(place: Path, template: str, *, links: bool) -> None:
    root = Root(place, follow_links=links)
    try:
        text = root.read(root.resolved(written(template, place)))
    except ToolResolutionError:
        return
    assert text in {"inside", "deep inside", "written"}


@many
@given(template=paths(), links=st.booleans())
def test_no_path_writes_anything_outside(place: Path, template: str, *, links: bool) -> None:
    root, before = Root(place, follow_links=links), outside_of(place)
    beside = {path.name for path in place.parent.iterdir()}
    with suppress(ToolResolutionError):
        root.write(root.resolved(written(template, place)), "written")
    assert outside_of(place) == before
    assert {path.name for path in place.parent.iterdir()} == beside


@many
@given(template=paths())
def test_no_path_lists_anything_outside(place: Path, template: str) -> None:
    root = Root(place)
    try:
        entries = root.entries(root.resolved(written(template, place)))
    except ToolResolutionError:
        return
    known = {path.relative_to(place).parts for path in place.rglob("*")}
    assert {entry.parts for entry in entries} <= known


@pytest.mark.parametrize("path", ["in_folder/file", "in_absolute/b/file", "a/up/a/b/file", "a/../a/b/file"])
def test_a_link_that_stays_inside_is_followed_or_refused_as_one_says(place: Path, path: str) -> None:
    root = Root(place)
    assert root.read(root.resolved(path)) == "deep inside"
    strict = Root(place, follow_links=False)
    if path == "a/../a/b/file":
        assert strict.resolved(path) == ("a", "b", "file")
    else:
        with pytest.raises(ToolResolutionError, match="a symbolic link; name the file itself, a/b/file"):
            strict.resolved(path)


@pytest.mark.parametrize("part", [0, 1, 2])
def test_a_link_put_in_place_after_the_path_was_resolved_is_not_followed(place: Path, part: int) -> None:
    root = Root(place)
    parts = root.resolved("a/b/file")
    swapped = place.joinpath(*parts[: part + 1])
    swapped.rename(place / "old")
    (place.parent / "out" / "b").mkdir()
    target = place.parent / "out"
    (target / "b" / "file").write_text(OUTSIDE)
    swapped.symlink_to(target if part == 0 else target / "b" if part == 1 else target / "file")
    before = outside_of(place)
    for attempt in (lambda: root.read(parts), lambda: root.write(parts, "x"), lambda: root.entries(parts[:2])):
        try:
            found = attempt()
        except ToolResolutionError:
            continue
        assert part == 2, found  # the folders above are the same
        assert isinstance(found, list)
    assert outside_of(place) == before


REPOSITORIES = {
    "bare": ("HEAD", "objects", "refs"),
    "part": ("HEAD", "common", "commondir"),
    "headless": ("objects", "refs"),
    "empty": ("HEAD", "refs"),
}
"""Folders that git takes for repositories, or would with one more entry."""


@pytest.fixture
def special(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary").write_bytes(b"a\0b")
    (tmp_path / "latin").write_bytes("é".encode("latin-1"))
    (tmp_path / "large").write_bytes(b"x" * (LARGEST + 1))
    (tmp_path / "locked").write_text("x")
    (tmp_path / "locked").chmod(0o444)
    (tmp_path / ".git").mkdir()
    (tmp_path / "device").symlink_to("/dev/zero")
    for database in ("memory.db", "memory.db-shm", "SHOP.SQLite3"):
        (tmp_path / database).write_text("x" * 4096)
    for repository, holds in REPOSITORIES.items():
        for name in holds:
            (tmp_path / repository / name).mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("pipe", "no ordinary file"),
        ("folder", "is a folder"),
        ("binary", "is a binary file"),
        ("latin", r"not in UTF-8 \(byte 0"),
        ("large", "has more than 2000000 bytes"),
        ("device", "is outside the folder"),
        ("gone", "there is no gone"),
        ("gone/file", "there is no gone/file"),
        ("binary/file", "a part of that path is a file"),
        (".", "is the folder itself"),
        ("", "is the folder itself"),
        ("a\0b", "is no path"),
        ("memory.db", "is a database, not a text file"),
        ("SHOP.SQLite3", "is a database, not a text file"),
        ("memory.db-shm", "is a database, not a text file"),
    ],
)
def test_what_is_no_text_file_is_refused_by_a_sentence(special: Path, path: str, said: str) -> None:
    root = Root(special)
    with pytest.raises(ToolResolutionError, match=said):
        root.read(root.resolved(path))


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("pipe", "no ordinary file"),
        ("folder", "is a folder"),
        ("device", "is outside the folder"),
        ("binary/file", "a part of that path is a file"),
        ("locked", "is write-protected"),
        (".git/hooks/pre-commit", "belongs to git"),
        ("folder/.GIT/config", "belongs to git"),
        *((f"bare/{name}", "belongs to git") for name in ("config", "new", "hooks/pre-commit", "a/b/c")),
        *((f"{path}", "belongs to git") for path in ("part/config", "headless/HEAD", "empty/objects/ab/c")),
        ("headless/head", "belongs to git"),  # where upper and lower case are the same
        ("memory.db", "is a database"),
        (".", "is the folder itself"),
    ],
)
def test_what_must_not_be_written_is_refused_by_a_sentence(special: Path, path: str, said: str) -> None:
    root = Root(special)
    before = {one: one.lstat() for one in special.rglob("*")}
    with pytest.raises(ToolResolutionError, match=said):
        root.write(root.resolved(path), "x")
    assert {one: one.lstat() for one in special.rglob("*")}.keys() == before.keys()


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o640])
def test_a_file_keeps_its_mode_and_others_with_its_content_keep_theirs(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "script"
    file.write_text("old")
    file.chmod(mode)
    os.link(file, tmp_path / "same")
    root = Root(tmp_path)
    root.write(("script",), "new")
    assert file.read_text() == "new"
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert (tmp_path / "same").read_text() == "old", "what stood there was changed in place"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["same", "script"]


def test_what_only_looks_a_little_like_a_repository_is_written(special: Path) -> None:
    root = Root(special)
    for path in ("headless/config", "empty/config", "folder/HEAD", "folder/objects/x"):
        root.write(root.resolved(path), "x")
        assert (special / path).read_text() == "x"
    (special / "zone.db").write_text("@ IN SOA")
    assert root.read(("zone.db",)) == "@ IN SOA"


def test_nobody_else_s_rights_are_kept_for_what_is_written(tmp_path: Path) -> None:
    file = tmp_path / "script"
    file.write_text("old")
    file.chmod(0o6755)
    Root(tmp_path).write(("script",), "new")
    assert stat.S_IMODE(file.stat().st_mode) == 0o755


def test_a_file_keeps_its_owner_its_group_and_its_attributes(tmp_path: Path) -> None:
    file = tmp_path / "script"
    file.write_text("old")
    os.setxattr(file, "user.note", b"mine")
    if os.geteuid() == 0:
        os.chown(file, 1234, 5678)
    before = file.stat()
    Root(tmp_path).write(("script",), "new")
    after = file.stat()
    assert (after.st_uid, after.st_gid, after.st_mode) == (before.st_uid, before.st_gid, before.st_mode)
    assert os.getxattr(file, "user.note") == b"mine"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a file to another group")
def test_a_group_that_cannot_be_kept_leaves_the_new_one_no_more_than_anybody_has() -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "script"
        file.write_text("old")
        file.chmod(0o674)
        os.chown(folder, 65534, 65534)
        os.chown(file, 65534, 5678)
        script = "from forge.agent.files.root import Root; import os; os.setgroups([]); os.setgid(65534); "
        script += "os.setuid(65534); Root('.').write(('script',), 'new')"
        subprocess.run([sys.executable, "-c", script], check=True, cwd=folder)
        assert stat.S_IMODE(file.stat().st_mode) == 0o644
        assert file.read_text() == "new"


@pytest.mark.parametrize("path", ["a/" * 500_000 + "b", "a/../" * 1000 + "a/file", "é" * 2049, "/" * 4097])
def test_a_path_without_bounds_is_refused_before_it_is_looked_at(
    place: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Root(place)
    monkeypatch.delattr(os.path, "realpath")  # each folder of a path costs it, so it must not be asked
    with pytest.raises(ToolResolutionError, match="is too long: a path has at most 4096 bytes"):
        root.resolved(path)


def test_a_new_file_is_made_with_its_folders_and_the_mode_of_others(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    Root(tmp_path).write(("x", "y", "new"), "text")
    made = tmp_path / "x" / "y" / "new"
    assert made.read_text() == "text"
    assert made.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_root_has_to_be_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for wrong in ("file", "gone"):
        with pytest.raises(DefinitionError, match="is not a folder"):
            Root(tmp_path / wrong)
