"""The doctor on real models: it finds by itself what holds, and chooses what works. All of it: docs/doctor.md."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from forge import run_sync
from forge.backends import Server
from forge.backends.doctor import Visit, consult, profile_of
from forge.backends.doctor.examination import examine
from forge.backends.doctor.facts import MODELS
from forge.backends.doctor.probes import CALLS, REPLY, SCHEMA
from forge.cli import demo
from stages.state import Completed
from stages.wire.sampling import Sampling
from tests.real.conftest import served

QUICK = (MODELS, REPLY, CALLS, SCHEMA)
"""What tells the cases apart; the whole visit takes some twenty seconds of such a model."""

FENCED = (Path(__file__).parent / "fenced.jinja").read_text(encoding="utf-8")


def visited(url: str, *, whole: bool) -> Visit:
    async def go() -> Visit:
        async with httpx.AsyncClient() as client:
            return await (consult(client, url) if whole else examine(client, f"{url}/v1", QUICK))

    return asyncio.run(go())


@pytest.fixture(scope="module")
def fitting() -> Iterator[str]:
    """Qwen2.5-Coder 0.5B with a template that has it write calls as it does anyway."""
    with served("qwen2.5-coder-0.5b", FENCED) as url:
        yield url


def finishes(url: str, visit: Visit) -> bool:
    """Whether a run goes to its end by the profile that was chosen."""
    sampling = Sampling(temperature=0, max_tokens=256)
    backend = Server(url, profile=profile_of(visit), sampling=sampling)
    result = run_sync(demo.workflow, demo.request("A-17"), backend=backend)
    return isinstance(result.unwrap().outcome, Completed)


@pytest.mark.soak  # twenty seconds; what is made of such answers is in tests/backends/test_doctor.py, on recorded ones
def test_a_template_without_tools_is_found_out_and_a_schema_is_enforced_all_the_same(smol: str) -> None:
    """SmolLM2: `tools` and `required` are ignored with status 200."""
    visit = visited(smol, whole=True)
    facts = visit.facts
    assert (facts.kind, facts.context.tokens, facts.about.slots) == ("llama-server", 4096, 1)
    assert (facts.calls, facts.constrains) == ("ignored", True)
    verdicts = {finding.topic: finding.verdict for finding in visit.findings}
    assert verdicts["prompt over the context"] == "yes"
    assert (facts.tokenizer, facts.alternating) == (True, False)
    profile = profile_of(visit)
    assert (profile.name, profile.mode, profile.native_calls) == ("llama-server", "constrained", False)


def test_calls_that_the_template_does_not_fit_come_as_text(qwen: str) -> None:
    visit = visited(qwen, whole=False)
    assert (visit.facts.calls, visit.facts.constrains) == ("text", True)
    assert any("of the family `fenced`" in finding.came for finding in visit.findings)


@pytest.mark.soak  # the one before tells as much, on a model that is loaded already
def test_with_a_template_that_fits_the_same_model_makes_native_calls(fitting: str) -> None:
    visit = visited(fitting, whole=False)
    facts = visit.facts
    assert (facts.calls, facts.valid_arguments) == ("native", True)
    assert facts.constrains
    assert profile_of(visit).mode == "constrained"
    assert finishes(fitting, visit)
