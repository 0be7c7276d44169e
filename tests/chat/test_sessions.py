"""Where conversations are kept: each folder its own, names that are free, a list that says when."""

import stat
from pathlib import Path

import pytest

from forge.agent.memory import SessionSummary
from forge.cli.chat.conversation import chat_store, chats_folder, known_session, new_session, session_rows
from forge.errors import ForgeError
from stages.message import User
from stages.state import State


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORGE_STATE", str(tmp_path / "state"))


async def test_two_folders_of_one_name_have_conversations_of_their_own(tmp_path: Path) -> None:
    for parent in ("one", "two"):
        folder = tmp_path / parent / "project"
        folder.mkdir(parents=True)
        store = chat_store(folder)
        with pytest.raises(ForgeError, match="there is no conversation in this folder"):
            await known_session(store, "")
        session = await new_session(store)
        await session.save(State(history=(User(text=f"Hi from {parent}."),)))
        assert [one.title for one in await store.sessions()] == [f"Hi from {parent}."]
    assert stat.S_IMODE(chats_folder().stat().st_mode) == 0o700


async def test_conversations_begun_in_one_second_have_names_of_their_own_and_are_found_by_them(tmp_path: Path) -> None:
    store = chat_store(tmp_path)
    names = []
    for _ in range(5):
        session = await new_session(store)
        await session.save(State(history=()))
        names.append(session.name)
    assert len({*names}) == 5
    assert (await known_session(store, "")).name == names[-1]
    assert (await known_session(store, names[0])).name == names[0]
    with pytest.raises(ForgeError, match=r"there is no conversation .* Did you mean 2"):
        await known_session(store, names[0][:-1] + "x")


def test_the_list_is_bounded_and_printable() -> None:
    found = tuple(SessionSummary(name=f"n{n}", title="a\x1bb", messages=n, saved=0.0) for n in range(1, 31))
    rows = [*session_rows(found)]
    assert len(rows) == 21
    assert rows[-1].text == "and 10 older"
    assert rows[0].text.endswith("n1  (1 message) a�b")


def test_a_state_folder_that_cannot_be_made_is_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("FORGE_STATE", str(tmp_path / "file" / "state"))
    with pytest.raises(ForgeError, match=r"Not a directory; set FORGE_STATE to another folder"):
        chat_store(tmp_path)


def test_a_list_without_conversations_says_so_and_one_that_was_taken_back_has_no_title() -> None:
    assert [row.text for row in session_rows(())] == ["there are no conversations in this folder yet"]
    (row,) = session_rows((SessionSummary(name="ann", title="", messages=1, saved=0.0),))
    assert row.text.endswith("ann  (1 message)")
