"""Occupant: what answers at an address, whatever it is: a model server and its models, or something else."""

from pathlib import Path

import httpx
from msgspec import Struct

from forge.backends.questions import ask
from forge.backends.recognise import About, ask_about
from forge.errors import BackendError

SECONDS = 2.0
"""How long a server may take to say what it is."""


class _Version(Struct):
    version: str


class Occupant(Struct, frozen=True, kw_only=True):
    """`models` are the names under which it serves; `path` the file, where it says so; the rest 0 where unknown."""

    kind: str
    models: tuple[str, ...] = ()
    path: str = ""
    context_tokens: int = 0
    slots: int = 0

    def __str__(self) -> str:
        """For people."""
        return f"{self.kind}, serving {', '.join(self.models[:5])}" if self.models else self.kind


async def occupant(client: httpx.AsyncClient, url: str) -> Occupant | None:
    """What answers at this address (without `/v1`); None if nothing does."""
    try:
        about = await ask_about(client, f"{url}/v1", props=True, seconds=SECONDS, loading=0)
        asked = None if about.props else await ask(client, f"{url}/api/version", seconds=SECONDS, loading=0)
    except BackendError as error:
        if isinstance(error.__cause__, httpx.ConnectError):
            return None
        return Occupant(kind=f"something that is no model server ({type(error.__cause__).__name__})")
    return _told(about, asked.read(_Version) if asked else None)


def _told(about: About, version: _Version | None) -> Occupant:
    data = about.models.data if about.models else []
    names = tuple(model.id for model in data)
    if props := about.props:
        return Occupant(
            kind="a llama.cpp server",
            models=tuple(dict.fromkeys([*names, *filter(None, [props.model_alias])])),
            path=props.model_path,
            context_tokens=props.default_generation_settings.n_ctx,
            slots=props.total_slots,
        )
    if version:
        return Occupant(kind=f"Ollama {version.version[:20]}", models=names)
    if not data:
        return Occupant(kind="a server that lists no models")
    roots = tuple(model.root for model in data if model.root)
    return Occupant(
        kind="a chat completions server",
        models=tuple(dict.fromkeys([*names, *roots])),
        context_tokens=data[0].max_model_len or 0,
    )


def serves(found: Occupant, model: Path | str) -> bool:
    """Whether it serves this very model: the same file, or the name that was asked for."""
    if isinstance(model, Path):
        return bool(found.path) and Path(found.path).is_absolute() and Path(found.path).resolve() == model.resolve()
    return model.casefold() in {name.casefold() for name in found.models}
