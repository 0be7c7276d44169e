"""Credentials: at most one, only where it is meant to go, and in nothing that is written."""

import base64
import logging
from pathlib import Path

import pytest

from forge import run_sync
from forge.backends import Server
from forge.backends.credentials import headers_for, keys, secrets
from forge.backends.profile import Profile, named_profile
from forge.errors import ForgeError, as_error
from forge.journal import states
from forge.journal.records import read_journal
from forge.masking import masked_reply
from stages.effect import RawCall, Reply
from tests.flows import Desk
from tests.foreign import serving
from tests.misbehaving import misbehaving

OPENAI = named_profile("openai")
KEY = "sk-very-secret"


@pytest.fixture(autouse=True)
def _ambient(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-the-environment")


@pytest.mark.parametrize(
    ("url", "key", "own", "sent"),
    [
        ("https://api.openai.com/v1", "", {}, "Bearer sk-from-the-environment"),
        ("https://api.openai.com:443/v1", "", {}, "Bearer sk-from-the-environment"),
        ("https://api.openai.com/v1", KEY, {}, f"Bearer {KEY}"),
        ("https://api.openai.com/v1", "", {"Authorization": f"Bearer {KEY}"}, f"Bearer {KEY}"),
        ("https://api.openai.com/v1", "", {"Authorization": "Bearer  "}, "Bearer sk-from-the-environment"),
        ("http://api.openai.com/v1", "", {}, None),
        ("https://api.openai.com.evil.example/v1", "", {}, None),
        ("https://api.openai.com:8443/v1", "", {}, None),
        ("http://127.0.0.1:8080/v1", "", {}, None),
        ("http://127.0.0.1:8080/v1", "  ", {}, None),
        ("http://127.0.0.1:8080/v1", f" {KEY}\n", {}, f"Bearer {KEY}"),
    ],
)
def test_the_environments_key_goes_to_the_profiles_own_address_alone(
    url: str, key: str, own: dict[str, str], sent: str | None
) -> None:
    assert headers_for(url, OPENAI, key, own).get("authorization") == sent


def test_a_key_goes_in_the_header_that_the_profile_names() -> None:
    assert headers_for("https://a.example", Profile(name="a", key_header="api-key"), KEY, {}) == {"api-key": KEY}
    sent = headers_for("https://a.example", named_profile("anthropic"), KEY, {})
    assert sent == {"anthropic-version": "2023-06-01", "x-api-key": KEY}


@pytest.mark.parametrize(
    ("key", "own", "says"),
    [
        (KEY, {"Authorization": "Bearer other-secret"}, "api_key and the header Authorization"),
        ("", {"authorization": f"Bearer {KEY}", "X-Api-Key": "other-secret"}, "two credentials for 127.0.0.1"),
        ("two secret words", {}, "holds spaces"),
        ("sécret", {}, "no header can carry"),
        ("", {"x-team": "secret\r\nx-evil: 1"}, "x-team"),
    ],
)
def test_what_cannot_be_right_is_refused_without_showing_it(key: str, own: dict[str, str], says: str) -> None:
    with pytest.raises(ForgeError, match=says) as caught:
        Server("http://127.0.0.1:1", api_key=key, headers=own)
    assert "ecret" not in str(caught.value)


@pytest.mark.parametrize("url", [f"http://me:{KEY}@127.0.0.1:1/v1", f"http://127.0.0.1:1/v1?key={KEY}", f"{KEY}@host"])
def test_an_address_with_a_secret_in_it_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(ForgeError, match="address") as caught:
        Server(url)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("profile", ["vllm", None])
@pytest.mark.parametrize("path", ["echo/v1", "nowhere/v1", "reset", "wrong"])
def test_a_secret_is_in_nothing_that_a_failing_run_writes(
    path: str,
    profile: str | None,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The echo server repeats every header in its error. Without a profile, the server is asked what it can do."""
    caplog.set_level(logging.DEBUG)
    journal, headers = tmp_path / "run.jsonl", {"x-team": "team-very-secret"}
    with misbehaving() as strange, serving() as strict:
        address = f"{strict if path.endswith('v1') else strange}/{path}"
        backend = Server(address, profile=profile, model="m", api_key=KEY, headers=headers, context_tokens=4096)
        halted = run_sync(Desk().workflow, "Go.", backend=backend, journal=str(journal)).failure()
    error = as_error(halted.halt, halted.state)
    assert read_journal(journal)
    kept = (file.read_text() for file in (tmp_path / "cache").rglob("*") if file.is_file())
    written = (*kept, repr(backend), repr(halted), str(error), repr(error), caplog.text, *capsys.readouterr())
    for text in (*written, journal.read_text()):
        assert "very-secret" not in text


@pytest.mark.parametrize("before", [0, 250, 280, 289, 295, 1900, 1960, 1977, 1990])
def test_no_part_of_a_key_is_left_where_an_error_is_cut(before: int, tmp_path: Path) -> None:
    """Details are cut after 300 characters, bodies after 2,000: what is hidden is hidden before that."""
    key, journal = "sk-9/Zq7Xw3+KpYt5=", tmp_path / "run.jsonl"
    with serving() as address:
        backend = Server(
            f"{address}/loud/v1", profile="vllm", model=str(before), api_key=key, context_tokens=4096, probe=False
        )
        halted = run_sync(Desk().workflow, "Go.", backend=backend, journal=str(journal)).failure()
    for text in (repr(halted), str(as_error(halted.halt, halted.state)), journal.read_text()):
        for fragment in ("Zq7X", "zq7x", "KpYt", "sk-9", "WnE3"):
            assert fragment not in text


def test_a_key_that_a_server_repeats_in_a_reply_is_nowhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """In its text, its reasoning, the names, ids, arguments and keys of its calls, its finish reason, its models."""
    caplog.set_level(logging.DEBUG)
    key, journal = "sk-9/Zq7Xw3+KpYt5=", tmp_path / "run.jsonl"
    with serving() as address:
        backend = Server(f"{address}/parrot/v1", api_key=key, context_tokens=4096, probe=False)
        halted = run_sync(Desk().workflow, "Go.", backend=backend, journal=str(journal)).failure()
    replayed = "".join(map(repr, states(journal, Desk().workflow)))
    told = str(as_error(halted.halt, halted.state))
    for text in (repr(halted), repr(halted.state), told, replayed, caplog.text, journal.read_text()):
        for fragment in ("Zq7X", "zq7x", "KpYt"):
            assert fragment not in text


@pytest.mark.parametrize("key", ["ollama", "lm-studio"])
def test_a_key_that_may_be_meant_is_left_in_replies(key: str) -> None:
    reply = Reply(text=f"{key} is running", calls=(RawCall(name="start", arguments=f'{{"what":"{key}"}}'),))
    assert masked_reply(reply, keys({"authorization": f"Bearer {key}"})) == reply


def test_the_password_of_basic_authentication_is_hidden_too() -> None:
    word = base64.b64encode(b"eva:open-sesame-7").decode()
    hidden = secrets({"authorization": f"Basic {word}"}, OPENAI)
    for text in (word, "eva:open-sesame-7", "open-sesame-7", "open-sesame-7%21"):
        assert "sesame" not in hidden.without(text)
        assert word not in hidden.without(text)
