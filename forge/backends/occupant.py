"""Occupant: what answers at an address, whatever it is: a model server and its models, or something else."""

from pathlib import Path
from typing import TypeVar

import httpx
import msgspec
from msgspec import Struct

SECONDS = 2.0
"""How long a server may take to say what it is."""

BYTES = 4_000_000


class _Settings(Struct):
    n_ctx: int


class _Props(Struct):
    default_generation_settings: _Settings
    model_path: str = ""
    model_alias: str = ""
    total_slots: int = 1


class _Model(Struct):
    id: str
    root: str | None = None
    max_model_len: int | None = None


class _Models(Struct):
    data: list[_Model] | None = None


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


T = TypeVar("T", _Props, _Models, _Version)


async def occupant(client: httpx.AsyncClient, url: str) -> Occupant | None:
    """What answers at this address (without `/v1`); None if nothing does."""
    try:
        props = await _ask(client, f"{url}/props", _Props)
        models = await _ask(client, f"{url}/v1/models", _Models)
        version = None if props else await _ask(client, f"{url}/api/version", _Version)
    except httpx.ConnectError:
        return None
    except httpx.HTTPError as error:
        return Occupant(kind=f"something that is no model server ({type(error).__name__})")
    data = (models.data if models else None) or []
    names = tuple(model.id for model in data)
    if props:
        names = tuple(dict.fromkeys([*names, *filter(None, [props.model_alias])]))
        context = props.default_generation_settings.n_ctx
        return Occupant(
            kind="a llama.cpp server",
            models=names,
            path=props.model_path,
            context_tokens=context,
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


async def _ask(client: httpx.AsyncClient, url: str, form: type[T]) -> T | None:
    async with client.stream("GET", url, timeout=SECONDS) as response:
        if not response.is_success:
            return None
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > BYTES:
                return None
    try:
        return msgspec.json.decode(body, type=form)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def serves(found: Occupant, model: Path | str) -> bool:
    """Whether it serves this very model: the same file, or the name that was asked for."""
    if isinstance(model, Path):
        return bool(found.path) and Path(found.path).is_absolute() and Path(found.path).resolve() == model.resolve()
    return model.casefold() in {name.casefold() for name in found.models}
