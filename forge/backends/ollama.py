"""What Ollama says of a model: the size of its context, and what it is running with now."""

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
    """Tokens of context to ask for, and the most that may be asked for.

    `wished`, which is the most then, else as it is loaded or its Modelfile says, else `default`; never more than the
    model can have. ForgeError for a model that Ollama has not, BackendError if nobody answers.
    """
    says = await ask_model(client, base, model)
    tokens = min(filter(None, (wished or says.loaded or says.modelfile or default, says.most)))
    return tokens, tokens if wished else max(tokens, says.most or 0)


async def ask_model(client: httpx.AsyncClient, base: str, model: str) -> OllamaSays:
    """What it says of the model. ForgeError for a model that it has not, BackendError if nobody answers."""
    shown = await ask(client, base + "/api/show", msgspec.json.encode({"model": model}))
    if shown.status == httpx.codes.NOT_FOUND and b"not found" in shown.body:
        tags = (await ask(client, base + "/api/tags")).read(OllamaTagList) or OllamaTagList()
        meant = did_you_mean(model, (each.name for each in tags.models))
        raise ForgeError(f"Ollama at {base} has no model {model!r}; run: ollama pull {model}.{meant}")
    return read_ollama(model, await ask(client, base + "/api/ps"), shown)


def read_ollama(model: str, ps: ServerAnswer, show: ServerAnswer) -> OllamaSays:
    """The two answers, read; what cannot be read is as if it were not said."""
    running = (ps.read(OllamaRunningList) or OllamaRunningList()).models or []
    shown = show.read(OllamaModel) or OllamaModel()
    set_ = re.search(r"^num_ctx\s+(\d{1,9})\s*$", shown.parameters, re.MULTILINE)
    return OllamaSays(
        loaded=next((n for m in running if _full(m.name) == _full(model) and (n := m.context_length or 0) > 0), None),
        modelfile=int(set_[1]) if set_ else None,
        most=shown.trained_context,
    )


def _full(name: str) -> str:
    """The name with its tag: Ollama adds `latest` where there is none."""
    return name if ":" in name.rsplit("/", 1)[-1] else f"{name}:latest"
