"""AGENTS.md: read in part where it is long, refused where it is no file of the folder."""

import os
from pathlib import Path

import pytest

from forge.cli.chat.conversation import project_notes, room
from forge.errors import ForgeError


def test_what_it_says_is_read_without_control_characters(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_bytes("Use tabs.\x1b[2J \u202eÄ".encode() + b"\xff\n")
    text = "Use tabs.�[2J �Ä�"
    assert project_notes(tmp_path, 100) == (text, "AGENTS.md, 17 characters")


@pytest.mark.parametrize("letter", ["a", "ä", "😀"])
def test_a_long_one_is_cut_and_that_is_said(tmp_path: Path, letter: str) -> None:
    (tmp_path / "AGENTS.md").write_text(letter * 50_001, encoding="utf-8")
    notes = project_notes(tmp_path, 50_000)
    assert notes == (letter * 50_000, "the first 50,000 characters of AGENTS.md, which is longer")


def test_one_that_leads_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("key")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "AGENTS.md").symlink_to(tmp_path / "secret")
    with pytest.raises(ForgeError, match=r"is outside this folder; ignore it with --no-agents-md"):
        project_notes(tmp_path / "project", 100)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "AGENTS.md")
    with pytest.raises(ForgeError, match="is outside this folder"):
        project_notes(tmp_path, 100)


@pytest.mark.parametrize(("tokens", "characters"), [(0, 8_000), (4_096, 4_096), (1_000_000, 32_000)])
def test_it_takes_a_quarter_of_the_context_at_most(tokens: int, characters: int) -> None:
    assert room(tokens) == characters
