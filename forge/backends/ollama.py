"""What Ollama says of a model: the size of its context, and what it is running with now."""

import re

import httpx
import msgspec
from msgspec import Struct

from forge.backends.budget import OllamaSays
from forge.backends.questions import Answer, ask
from forge.errors import ForgeError
from forge.workflow.suggestions import did_you_mean


class _Shown(Struct):
    """POST /api/show: https://docs.ollama.com/api-reference/show-model-details."""

    parameters: str = ""
    model_info: dict[str, object] = {}


class _Running(Struct):
    name: str = ""
    context_length: int | None = None


class _Loaded(Struct):
    """GET /api/ps: https://docs.ollama.com/api/ps."""

    models: list[_Running] | None = None


class _Tag(Struct):
    name: str = ""


class _Tags(Struct):
    """GET /api/tags: https://docs.ollama.com/api/tags."""

    models: list[_Tag] = []


async def context_of(client: httpx.AsyncClient, base: str, model: str, default: int, wished: int | None = None) -> int:
    """Tokens of context to ask for: `wished`, else as it is loaded or its Modelfile says, else `default`.

    Never more than the model can have.
    ForgeError for a model that Ollama has not, BackendError if nobody answers.
    """
    says = await ask_model(client, base, model)
    return min(filter(None, (wished or says.loaded or says.modelfile or default, says.most)))


async def ask_model(client: httpx.AsyncClient, base: str, model: str) -> OllamaSays:
    """What it says of the model. ForgeError for a model that it has not, BackendError if nobody answers."""
    shown = await ask(client, base + "/api/show", msgspec.json.encode({"model": model}))
    if shown.status == httpx.codes.NOT_FOUND and b"not found" in shown.body:
        tags = (await ask(client, base + "/api/tags")).read(_Tags) or _Tags()
        meant = did_you_mean(model, (each.name for each in tags.models))
        raise ForgeError(f"Ollama at {base} has no model {model!r}; run: ollama pull {model}.{meant}")
    return read(model, await ask(client, base + "/api/ps"), shown)


def read(model: str, ps: Answer, show: Answer) -> OllamaSays:
    """The two answers, read; what cannot be read is as if it were not said."""
    running = (ps.read(_Loaded) or _Loaded()).models or []
    shown = show.read(_Shown) or _Shown()
    lengths = (n for name, n in shown.model_info.items() if name.endswith(".context_length"))
    set_ = re.search(r"^num_ctx\s+(\d{1,9})\s*$", shown.parameters, re.MULTILINE)
    return OllamaSays(
        loaded=next((n for m in running if _full(m.name) == _full(model) and (n := m.context_length or 0) > 0), None),
        modelfile=int(set_[1]) if set_ else None,
        most=next((n for n in lengths if isinstance(n, int) and n > 0), None),
    )


def _full(name: str) -> str:
    """The name with its tag: Ollama adds `latest` where there is none."""
    return name if ":" in name.rsplit("/", 1)[-1] else f"{name}:latest"
