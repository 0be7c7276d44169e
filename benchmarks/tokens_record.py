"""Ask a llama.cpp server what each prompt of the runs takes, and keep that in tests/data/tokens/.

python -m benchmarks.tokens_record NAME URL     NAME: what the model is to be called
"""

import asyncio
import sys

import httpx
import msgspec

from forge.backends.questions import Tokenizer
from stages.fold import fold
from stages.pipeline import pipeline
from stages.rules import Rules
from stages.serialize import serialize
from stages.state import Prepared, State
from stages.wire.sampling import Sampling
from stages.wire.target import Mode, Target
from tests.token_runs import FOLDER, Recorded, Reports, reports, runs

MODES: tuple[Mode, ...] = ("native", "prompted", "constrained")
READ = 3
"""Prompts of a run that the model reads; to read all of them takes hours on a small machine."""


async def record(model: str, url: str) -> None:
    """Ask about all runs in each mode, and add what is said to what other models said."""
    kept = [r for r in reports() if r.model != model] if (FOLDER / "reports.jsonl").exists() else []
    async with httpx.AsyncClient(timeout=600) as client:
        tokenizer = Tokenizer(client, url)
        rate = await tokenizer.tokens_per_character() or 0.0
        for run in runs().values():
            for mode in MODES:
                asked = bodies(run, mode)
                tokens = tuple([await tokenizer.count(body) or 0 for body in asked])
                usage = tuple([await reported(client, url, body) for body in asked[:READ]])
                kept.append(Reports(model=model, run=run.name, mode=mode, tokens=tokens, usage=usage, rate=rate))
                sys.stdout.write(f"{model}, {run.name}, {mode}: {tokens}, {usage}\n")
    (FOLDER / "reports.jsonl").write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in kept))


def bodies(run: Recorded, mode: Mode) -> list[bytes]:
    """Each prompt of the run as it goes over the wire, with one token to be written."""
    written = pipeline(fold(), serialize(Rules(tools=run.tools), Target(mode=mode, sampling=Sampling(max_tokens=1))))
    phases = [written(State(history=run.history[:count])).unwrap().phase for count in run.prompts]
    return [phase.request.body for phase in phases if isinstance(phase, Prepared)]


async def reported(client: httpx.AsyncClient, url: str, body: bytes) -> int:
    """The prompt tokens that the server reports with a reply."""
    response = await client.post(f"{url}/v1/chat/completions", content=body)
    response.raise_for_status()
    return int(response.json()["usage"]["prompt_tokens"])


if __name__ == "__main__":
    asyncio.run(record(sys.argv[1], sys.argv[2].rstrip("/")))
