"""What Ollama says of a model: the size of its context, and what it is running with now."""

import httpx
import msgspec
from msgspec import Struct

from forge.backends.ask import ask
from forge.errors import ForgeError


class _Shown(Struct):
    """POST /api/show: https://docs.ollama.com/api-reference/show-model-details."""

    model_info: dict[str, object] = {}


class _Running(Struct):
    name: str = ""
    context_length: int | None = None


class _Loaded(Struct):
    """GET /api/ps: https://docs.ollama.com/api/ps."""

    models: list[_Running] = []


async def context_of(client: httpx.AsyncClient, base: str, model: str, default: int) -> int:
    """Tokens of context to ask for: what the model is loaded with now, else `default`; never more than it can have.

    ForgeError for a model that Ollama has not, BackendError if nobody answers.
    """
    most = await _most(client, base, model)
    loaded = (await ask(client, base + "/api/ps")).read(_Loaded) or _Loaded()
    now = next((m.context_length for m in loaded.models if _full(m.name) == _full(model)), None)
    return min(filter(None, (now or default, most)))


async def _most(client: httpx.AsyncClient, base: str, model: str) -> int | None:
    """What the model was trained for, None where Ollama does not say."""
    answer = await ask(client, base + "/api/show", msgspec.json.encode({"model": model}))
    if answer.status == httpx.codes.NOT_FOUND and b"not found" in answer.content:
        raise ForgeError(f"Ollama at {base} has no model {model!r}; run: ollama pull {model}")
    shown = answer.read(_Shown) or _Shown()
    lengths = (n for name, n in shown.model_info.items() if name.endswith(".context_length"))
    return next((n for n in lengths if isinstance(n, int) and n > 0), None)


def _full(name: str) -> str:
    """The name with its tag: Ollama adds `latest` where there is none."""
    return name if ":" in name.rsplit("/", 1)[-1] else f"{name}:latest"
