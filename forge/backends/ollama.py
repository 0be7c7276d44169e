"""What Ollama reports about a model: its context sizes."""

import re

import httpx
import msgspec

from forge.backends.budget import OllamaSays
from forge.backends.endpoints import OllamaModel, OllamaRunningList, OllamaTagList
from forge.backends.questions import ServerAnswer, ask
from forge.errors import ForgeError
from stages.options import did_you_mean


async def context_to_ask_for(
    client: httpx.AsyncClient, base: str, model: str, default: int, wished: int | None = None
) -> tuple[int, int]:
    """The context to request, and the maximum that may be requested, in tokens.

    `wished` if given (it is then also the maximum), otherwise the size as loaded or set in the Modelfile, otherwise
    `default`; never more than the model supports. ForgeError if Ollama does not have the model, BackendError if it does
    not answer.
    """
    says = await ask_model(client, base, model)
    tokens = min(filter(None, (wished or says.loaded or says.modelfile or default, says.most)))
    return tokens, tokens if wished else max(tokens, says.most or 0)


async def ask_model(client: httpx.AsyncClient, base: str, model: str) -> OllamaSays:
    """What Ollama reports about the model. ForgeError if it does not have it, BackendError if it does not answer."""
    shown = await ask(client, base + "/api/show", msgspec.json.encode({"model": model}))
    if shown.status == httpx.codes.NOT_FOUND and b"not found" in shown.body:
        tags = (await ask(client, base + "/api/tags")).read(OllamaTagList) or OllamaTagList()
        meant = did_you_mean(model, (each.name for each in tags.models))
        raise ForgeError(f"Ollama has no model {model!r}; run: ollama pull {model}.{meant}")
    return read_ollama(model, await ask(client, base + "/api/ps"), shown)


def read_ollama(model: str, ps: ServerAnswer, show: ServerAnswer) -> OllamaSays:
    """The two answers, decoded; unreadable parts count as missing."""
    running = (ps.read(OllamaRunningList) or OllamaRunningList()).models or []
    shown = show.read(OllamaModel) or OllamaModel()
    set_ = re.search(r"^num_ctx\s+(\d{1,9})\s*$", shown.parameters, re.MULTILINE)
    return OllamaSays(
        loaded=next((n for m in running if _full(m.name) == _full(model) and (n := m.context_length or 0) > 0), None),
        modelfile=int(set_[1]) if set_ else None,
        most=shown.trained_context,
    )


def _full(name: str) -> str:
    """The name with its tag; Ollama's default is `latest`."""
    return name if ":" in name.rsplit("/", 1)[-1] else f"{name}:latest"
