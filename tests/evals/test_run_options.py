"""The options of `forge eval run`, from the command line and from a file: what is taken, and what is refused."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from forge.cli.eval_run import ModelOptions
from forge.errors import ForgeError
from forge.evals.results import read_results
from forge.evals.serving import serving
from tests.backends.test_server_manager import gguf, installed
from tests.commands import forge
from tests.evals.running import run, served
from tests.evals.scenarios import SCENARIOS


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with served() as address:
        yield address


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--scenario", "refund_rihgtly"), "Did you mean refund_rightly?"),
        (("--tags", "mony"), "Did you mean money?"),
        (("--tags", "broken", "--scenario", "refund_wrong"), "none of the scenarios refund_wrong has the tag broken"),
        (("--ablation", "no_resque"), "Did you mean no_rescue?"),
        (("--think", "hard"), "there is no --think 'hard'"),
        (
            ("--suite", "sedes"),
            "there is no suite 'sedes'; there are: all, seeds, and files FILE.py. Did you mean seeds?",
        ),
        (("--suite=nowhere.py",), "there is no file nowhere.py"),
        (("--against", "plane"), "Did you mean plain?"),
        (("--against", "plain:native"), "the player 'plain' has no modes of its own"),
        (("--against", "forge"), "forge plays anyway, so it is not to be named in --against; --mode chooses its modes"),
        (("empty.py",), "empty.py has no scenario"),
        (("again.py",), "two scenarios are named flat"),
        (("-o", "mine.py/r.jsonl"), "the results cannot be written to mine.py/r.jsonl: Not a directory"),
        (("--backend", "http://127.0.0.1:1"), "cannot connect"),
        (("-o", "."), ". is a folder; name a file in it for the results, such as results.jsonl"),
        (("--tags", ","), "--tags: it is empty"),
        (("--temperature", "-1"), "temperature"),
        (("--slots", "2"), "--slots is for a server that forge starts"),
        (
            ("--context", "4096"),
            "the server has 4,096. If it has more, say so with --context",
        ),
        (("--context", "9999999"), "9999999 tokens of context are more than the server has"),
        (("--chat-template", "no.jinja"), "--chat-template is for a server that forge starts"),
        (("--runs", "0"), "at least 1"),
    ],
)
def test_what_makes_no_sense_is_a_sentence_and_exit_2(
    tmp_path: Path, server: str, words: tuple[str, ...], said: str
) -> None:
    (tmp_path / "empty.py").write_text("x = 1\n")
    (tmp_path / "again.py").write_text(SCENARIOS)
    ended = run(tmp_path, server, *words)
    assert (ended.returncode, "Traceback" in ended.stderr) == (2, False)
    assert said in ended.stderr
    assert not (tmp_path / "r.jsonl").exists()


def configured(folder: Path, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "mine.py").write_text(SCENARIOS)
    (folder / "evals.toml").write_text(text)
    return forge("eval", "run", "--config", "evals.toml", *words, cwd=folder)


def test_several_models_and_options_from_a_file_with_the_command_line_over_it(tmp_path: Path) -> None:
    with served(model="first") as one, served(model="second") as other:
        models = "".join(
            f'[[model]]\nbackend = "{server}"\nmodel = "{name}"\n'
            for server, name in ((one, "first"), (other, "second"))
        )
        asked = 'files = ["mine.py"]\nscenario = ["refund_rightly"]\nruns = 7\noutput = "r.jsonl"'
        ended = configured(tmp_path, f"{asked}\n{models}temperature = 0.5", "--runs", "1")
    assert (ended.returncode, ended.stderr) == (0, "")
    found = [row.configuration for row in read_results(tmp_path / "r.jsonl")]
    assert [(known.model, known.temperature) for known in found] == [("first", None), ("second", 0.5)]


def test_an_empty_list_of_options_is_refused(tmp_path: Path, server: str) -> None:
    ended = configured(tmp_path, f'files = ["mine.py"]\nmode = []\n[[model]]\nbackend = "{server}"')
    assert ended.returncode == 2
    assert "mode is empty; name at least one of auto, " in ended.stderr


@pytest.mark.parametrize("backend", ["local", "llama-server:x.gguf"])
def test_a_server_that_forge_starts_gets_the_context_that_the_scenarios_need(backend: str) -> None:
    with pytest.raises(ForgeError, match="--context is for a server that runs already"):
        ModelOptions(backend=backend, context=4096).server(300.0)


def test_a_server_that_forge_starts_has_the_slots_and_the_template_that_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORGE_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", str(Path(installed(tmp_path)).parent), prepend=os.pathsep)
    (tmp_path / "mine.jinja").write_text("{{ messages }}")
    options = ModelOptions(
        backend=f"llama-server:{gguf(tmp_path)}", slots=2, chat_template=str(tmp_path / "mine.jinja")
    )

    async def started() -> tuple[int, int]:
        async with serving(options.server(300.0), ["auto"], 4096) as ready:
            return ready.slots, ready.connections["auto"].setup.context_tokens

    assert asyncio.run(started()) == (2, 4096)


@pytest.mark.parametrize(("seconds", "call"), [(1800.0, 1800.0), (20.0, 300.0)])
def test_a_model_call_may_take_as_long_as_a_run(server: str, seconds: float, call: float) -> None:
    async def limit() -> float:
        async with serving(ModelOptions(backend=server).server(seconds), ["auto"], 0) as ready:
            endpoint = ready.connections["auto"].endpoint
            assert endpoint is not None
            return endpoint.timeout

    assert asyncio.run(limit()) == call


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("rnus = 3", (), "Did you mean runs?"),
        ("runs = 0", (), "evals.toml: runs is 0; it must be a whole number, at least 1"),
        ("[[model]]\nmodel = 'x'", (), "evals.toml: [model number 1] backend is missing"),
        ("[[model]]\nbakend = 'local'", (), "[model number 1] bakend: unknown key. "),
        ("max_tokens = 9\n[[model]]\nbackend = 'local'", (), "max_tokens: it belongs in the table [[model]]"),
        ("runs = 3", (), "no model is given"),
        ("[[model]]\nbackend = 'local'", ("--backend", "local"), "leave out --backend, or remove the [[model]] tables"),
        ("mode = ['natve']\n[[model]]\nbackend = 'local'", (), "Did you mean native?"),
    ],
)
def test_a_wrong_file_is_told_in_a_sentence(tmp_path: Path, text: str, words: tuple[str, ...], said: str) -> None:
    ended = configured(tmp_path, text, *words)
    assert (ended.returncode, "Traceback" in ended.stderr) == (2, False)
    assert said in ended.stderr
