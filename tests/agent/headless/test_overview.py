"""What an agent is shown of a folder before it begins: the files that the task is about, whole, as many as fit."""

from pathlib import Path

import pytest

from forge.agent.files.root import Root
from forge.agent.headless.limits import TaskLimits
from forge.agent.headless.running import overview


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (tmp_path / "src" / "other.py").write_text("x = 1\n")
    (tmp_path / "test_calc.py").write_text("import calc\n")
    (tmp_path / "README.md").write_text("Adds.\n")
    return tmp_path


def seen(folder: Path, said: str = "", **limits: tuple[str, ...]) -> str:
    return overview(Root(folder, follow_links=False), TaskLimits(**limits), said)  # type: ignore[arg-type]


CALC = "src/calc.py:\n```\ndef add(a, b):\n    return a - b\n```"
OTHER = "src/other.py:\n```\nx = 1\n```"
TEST = "test_calc.py:\n```\nimport calc\n```"


@pytest.mark.parametrize(
    ("said", "limits", "files"),
    [
        ("", {}, []),
        ("", {"write": ("src",)}, [CALC, OTHER]),
        ("Mend src/other.py.", {"write": ("src",)}, [OTHER, CALC]),
        ('File "/work/test_calc.py", line 1', {"write": ("src/calc.py",)}, [CALC, TEST]),
        ("test_calc.py", {}, [TEST]),
        ("test_calc.py", {"write": ("*.py",), "never_write": ("test_*",)}, [CALC, OTHER, TEST]),
    ],
)
def test_what_may_be_changed_and_what_is_named_is_shown(
    folder: Path, said: str, limits: dict[str, tuple[str, ...]], files: list[str]
) -> None:
    assert seen(folder, said, **limits) == "\n\n".join(files)


def test_a_file_is_shown_whole_or_not_at_all_and_all_of_them_are_bounded(folder: Path) -> None:
    (folder / "src" / "big.py").write_text("x = 1\n" * 2_000)
    for n in range(10):
        (folder / "src" / f"part{n}.py").write_text(f"part = {n}\n" * 100)
    told = seen(folder, "src/big.py", write=("src",))
    assert len(told) <= 6_100
    assert "big.py" not in told
    assert CALC in told
    assert told.count("part = ") == 100 * told.count("src/part") > 100


def test_a_hidden_file_is_shown_only_if_it_is_named(folder: Path) -> None:
    (folder / "src" / ".env").write_text("KEY=1\n")
    assert "KEY" not in seen(folder, write=("src",))
    assert "src/.env:\n```\nKEY=1\n```" in seen(folder, "Correct src/.env.", write=("src",))


def test_what_is_no_text_and_what_a_link_leads_to_is_not_shown(folder: Path) -> None:
    (folder / "src" / "binary").write_bytes(b"\0\1")
    (folder / "src" / "empty").write_text("")
    (folder / "src" / "link.py").symlink_to("../README.md")
    assert seen(folder, "src/binary src/link.py", write=("src",)) == f"{CALC}\n\n{OTHER}"
