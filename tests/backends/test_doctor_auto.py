"""mode="auto" on a server that forge does not know: asked once, kept for a week, never in the way of a run."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import httpx
import msgspec
import pytest

from forge.backends import Server
from forge.backends.doctor.examination import FRESH, SHORT, Subject, folder, recall, remember
from forge.backends.profile import named_profile
from tests.flows import connected
from tests.patients import patients


@pytest.fixture
def ward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with patients() as url:
        yield url


def count(ward: str, who: str) -> int:
    return int(httpx.get(f"{ward}/{who}/count").text)


@pytest.mark.parametrize(
    ("who", "mode", "because"),
    [
        ("unbound", "native", "asked just now: native: no schema is enforced"),
        ("deaf", "prompted", "asked just now: prompted: no schema is enforced, and tools are ignored"),
        ("strict", "constrained", "asked just now: constrained"),
        ("studio", "constrained", "recognised as LM Studio: it answers /api/v0/models"),
        ("ollama", "constrained", "recognised as Ollama: it answers /api/version"),
        ("max", "prompted", "asked just now: prompted: no schema is enforced, and calls come as text"),
        ("llama", "constrained", "recognised"),
    ],
)
def test_the_mode_is_what_the_server_enforces(
    ward: str, who: str, mode: str, because: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "forge")
    connection = connected(Server(f"{ward}/{who}/v1"))
    assert (connection.setup.mode, connection.setup.because[: len(because)]) == (mode, because)
    assert because in caplog.text


def test_a_server_is_asked_once(ward: str) -> None:
    first = connected(Server(f"{ward}/deaf/v1"))
    asked = count(ward, "deaf")
    assert asked <= 2 + 3 + len(SHORT)
    again = connected(Server(f"{ward}/deaf/v1"))
    assert (again.setup.mode, "as found earlier" in again.setup.because) == (first.setup.mode, True)
    assert count(ward, "deaf") == asked + 1 + 2  # the count itself, /props and /models


def test_who_wants_no_questions_gets_none(ward: str) -> None:
    connection = connected(Server(f"{ward}/deaf/v1", probe=False))
    assert (connection.setup.mode, connection.setup.because) == ("native", "not asked")
    connected(Server(f"{ward}/deaf/v1", mode="prompted"))
    connected(Server(f"{ward}/deaf/v1", profile="openai-compatible"))
    assert count(ward, "deaf") <= 6  # what there is to be listed, no more
    assert not folder().exists()


@pytest.mark.parametrize("who", ["locked", "quota", "page"])
def test_one_that_cannot_be_asked_is_connected_to_all_the_same(
    ward: str, who: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The run then ends with what the server says, as typed as ever."""
    connection = connected(Server(f"{ward}/{who}/v1", model="some"))
    assert connection.setup.mode == "native"
    assert "could not be asked what it can do" in caplog.text
    assert not folder().exists()


SUBJECT = Subject(url="http://127.0.0.1:1/v1", model="some", build="x")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    remember(SUBJECT, named_profile("vllm"))
    return next(folder().iterdir())


def test_what_is_kept_is_for_that_subject_alone(kept: Path) -> None:
    assert recall(SUBJECT) == named_profile("vllm")
    assert recall(msgspec.structs.replace(SUBJECT, model="other")) is None
    assert recall(msgspec.structs.replace(SUBJECT, build="y")) is None


@pytest.mark.parametrize("field", ["found", "forge"])
def test_what_is_old_counts_no_more(kept: Path, field: str) -> None:
    stored = msgspec.json.decode(kept.read_bytes(), type=dict[str, object])
    older = msgspec.json.decode(msgspec.json.encode(stored["found"]), type=datetime)
    stored[field] = older - FRESH - timedelta(seconds=1) if field == "found" else "0.0.1"
    kept.write_bytes(msgspec.json.encode(stored))
    assert recall(SUBJECT) is None


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b'{"url":"a"}', b"[" * 9000])
def test_what_is_damaged_is_said_and_passed_over(kept: Path, content: bytes, caplog: pytest.LogCaptureFixture) -> None:
    kept.write_bytes(content)
    assert recall(SUBJECT) is None
    assert "is asked again" in caplog.text


def test_a_folder_that_cannot_be_written_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    remember(SUBJECT, named_profile("vllm"))
    assert "cannot be kept" in caplog.text
    assert recall(SUBJECT) is None


@pytest.mark.parametrize(("who", "served"), [("max", "qwen05"), ("transformers", "local/qwen05")])
def test_a_model_that_an_unknown_server_does_not_list_is_told_before_the_first_call(
    ward: str, who: str, served: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Recorded: what they answer to such a request is "Value error." and a bare status 500."""
    connected(Server(f"{ward}/{who}/v1", model="nope", mode="prompted"))
    assert f"does not list the model nope; it lists {served}" in caplog.text
    caplog.clear()
    connected(Server(f"{ward}/{who}/v1", model=served, mode="prompted"))
    assert not caplog.text
