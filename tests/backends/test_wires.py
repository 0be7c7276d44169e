"""The same three-step workflow on every profile, against a strict server process."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from forge import replay, run_sync
from forge.backends import Server
from forge.backends.profile import Profile, named_profile, to_toml
from forge.errors import ForgeError
from forge.workflow.workflow import Workflow
from stages.events import Event, FellBack
from stages.halt import BackendFailed
from stages.state import State
from stages.wire.sampling import Sampling
from tests.flows import Desk
from tests.foreign import serving
from tests.heard import heard_by

DONE = ["look a", "write a", "finish"]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving() as address:
        yield address


def finished(backend: Server, workflow: Workflow) -> State:
    return run_sync(workflow, "Go.", backend=backend).unwrap().state


@pytest.mark.parametrize(
    ("profile", "path", "mode", "key"),
    [
        ("llama-server", "llama/v1", "constrained", ""),
        ("llama-server", "llama/v1", "native", ""),
        ("llamafile", "llama/v1", "constrained", ""),
        ("vllm", "vllm/v1", "constrained", ""),
        ("lm-studio", "plain/v1", "constrained", ""),
        ("openai-compatible", "plain/v1", "native", ""),
        ("openai-compatible", "plain/v1", "prompted", ""),
        ("openai", "openai/v1", "native", "sk-test"),
        ("openai", "openai/v1", "constrained", "sk-test"),
        ("ollama", "ollama", "constrained", ""),
        ("ollama", "ollama", "native", ""),
        ("anthropic", "anthropic/v1", "native", "the-key"),
    ],
)
def test_the_workflow_passes_on_every_profile(server: str, profile: str, path: str, mode: str, key: str) -> None:
    desk = Desk()
    asked = "auto" if named_profile(profile).mode == mode else mode
    backend = Server(f"{server}/{path}", profile=profile, model="served", mode=asked, api_key=key)  # type: ignore[arg-type]  # of a table
    state = finished(backend, desk.workflow)
    assert desk.log == DONE
    assert state.prompt.mode == mode


@pytest.mark.parametrize(
    ("path", "profile", "mode"),
    [
        ("llama/v1", "llama-server", "constrained"),
        ("vllm/v1", "vllm", "constrained"),
        ("plain/v1", "openai-compatible", "native"),
    ],
)
def test_a_server_is_recognised_by_what_it_says_of_itself(
    server: str, path: str, profile: str, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "forge")
    desk = Desk()
    assert finished(Server(f"{server}/{path}", probe=False), desk.workflow).prompt.mode == mode
    assert desk.log == DONE
    assert f"is taken for {profile}: mode {mode}, 4096 tokens" in caplog.text


def test_a_template_without_tools_is_prompted_and_it_is_said(server: str, caplog: pytest.LogCaptureFixture) -> None:
    """Such a server ignores `tools` with status 200: the model would never hear of them."""
    desk = Desk()
    profile = Profile(name="mine", context="props")
    assert finished(Server(f"{server}/toolless/v1", profile=profile), desk.workflow).prompt.mode == "prompted"
    assert desk.log == DONE
    assert "template has no tools" in caplog.text


def test_a_refusal_of_tools_is_fallen_back_from_once_and_it_is_said(
    server: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    desk, seen, journal = Desk(), list[Event](), tmp_path / "run.jsonl"
    backend = Server(f"{server}/wordy/v1", probe=False)
    state = (
        run_sync(desk.workflow, "Go.", backend=backend, on_event=heard_by(seen.append), journal=str(journal))
        .unwrap()
        .state
    )
    assert desk.log == DONE
    assert state.prompt.mode == "prompted"
    assert "support tool use" in state.ledger.fallback
    assert len([event for event in seen if isinstance(event, FellBack)]) == 1
    assert "refused, so the tools are written into the prompt" in caplog.text
    assert replay(journal, Desk().workflow).unwrap().state == state


def test_a_schema_that_is_refused_is_fallen_back_from_too(server: str, caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()
    state = finished(Server(f"{server}/picky/v1", profile="lm-studio", model="m"), desk.workflow)
    assert desk.log == DONE
    assert "failed to parse grammar" in state.ledger.fallback
    assert "refused, so the tools" in caplog.text


def test_a_mode_that_was_asked_for_is_kept(server: str) -> None:
    halt = run_sync(Desk().workflow, "Go.", backend=Server(f"{server}/wordy/v1", mode="native")).failure().halt
    assert isinstance(halt, BackendFailed)
    assert halt.fault.status == 400


@pytest.mark.parametrize("constrain", ["json_schema", "structured_outputs", "guided_json"])
def test_vllm_is_constrained_in_each_way_that_it_has_had(server: str, constrain: str) -> None:
    desk = Desk()
    profile = Profile(name="mine", mode="constrained", constrain=constrain, context="models")  # type: ignore[arg-type]
    finished(Server(f"{server}/vllm/v1", profile=profile), desk.workflow)
    assert desk.log == DONE


def test_adding_a_backend_is_one_file(server: str, tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    own = Profile(name="gateway", url=f"{server}/vllm", mode="constrained", constrain="json_schema", context="models")
    file.write_text(to_toml(own).replace("/vllm", "/vllm/v1"))
    desk = Desk()
    finished(Server(profile=file), desk.workflow)
    assert desk.log == DONE


def test_options_go_by_the_names_that_the_backend_has_for_them(server: str) -> None:
    desk = Desk()
    options = Sampling(repeat_penalty=1.1, extra={"min_tokens": 1})
    finished(Server(f"{server}/vllm/v1", sampling=options), desk.workflow)
    assert desk.log == DONE


def test_a_runs_own_options_go_before_those_of_the_backend(server: str, tmp_path: Path) -> None:
    backend = Server(f"{server}/plain/v1", profile="lm-studio", model="m", sampling=Sampling(temperature=0.9, seed=1))
    result = run_sync(Desk().workflow, "Go.", backend=backend, sampling=Sampling(temperature=0.1, max_tokens=64))
    head = json.loads(bytes(result.unwrap().state.memo.written[-1].request.head))
    assert (head["temperature"], head["seed"], head["max_tokens"]) == (0.1, 1, 64)


def test_a_runs_own_option_that_the_backend_has_not_is_refused(server: str) -> None:
    backend = Server(f"{server}/openai/v1", profile="openai", model="m", api_key="sk-test")
    with pytest.raises(ForgeError, match="sampling: it has no top_k"):
        run_sync(Desk().workflow, "Go.", backend=backend, sampling=Sampling(top_k=1))


def test_an_option_that_the_backend_has_not_is_refused_before_anything_is_sent(server: str) -> None:
    with pytest.raises(ForgeError, match="openai: it has no top_k, min_p"):
        Server(f"{server}/openai/v1", profile="openai", model="m", sampling=Sampling(top_k=1, min_p=0.1))


def test_a_proxy_is_gone_through(server: str) -> None:
    desk = Desk()
    finished(Server("http://models.invalid/vllm/v1", proxy=server), desk.workflow)
    assert desk.log == DONE


def test_a_proxy_of_the_environment_does_not_lead_to_this_machine(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    desk = Desk()
    finished(Server(f"{server}/vllm/v1"), desk.workflow)
    assert desk.log == DONE


@pytest.mark.parametrize(
    ("model", "given", "tokens"),
    [
        ("m", None, 4096),
        ("other", None, 2048),
        ("other:latest", None, 2048),
        ("other:8b", None, 4096),
        ("m", 9000, 9000),
    ],
)
def test_ollama_is_asked_for_the_context_that_it_is_loaded_with(
    server: str, model: str, given: int | None, tokens: int
) -> None:
    async def context() -> int:
        backend = Server(f"{server}/ollama", profile="ollama", model=model, context_tokens=given)
        async with backend.connect() as connection:
            return connection.setup.context_tokens

    assert asyncio.run(context()) == tokens


def test_ollama_says_which_model_it_has_not(server: str) -> None:
    with pytest.raises(ForgeError, match="ollama pull missing") as caught:
        run_sync(Desk().workflow, "Go.", backend=Server(f"{server}/ollama", profile="ollama", model="missing"))
    assert server not in str(caught.value), "callers of forge serve read it, and the address is not for them"


def test_a_profile_that_cannot_be_asked_for_its_models_wants_one(server: str) -> None:
    with pytest.raises(ForgeError, match="give model=…, or on the command line ollama:MODEL"):
        Server(server, profile="ollama")


@pytest.mark.parametrize(("profile", "mode"), [("openai-compatible", "constrained"), ("anthropic", "constrained")])
def test_a_mode_that_the_backend_has_not_is_refused(server: str, profile: str, mode: str) -> None:
    with pytest.raises(ForgeError, match="cannot constrain decoding"):
        Server(server, profile=profile, model="m", mode=mode)  # type: ignore[arg-type]  # of a table
