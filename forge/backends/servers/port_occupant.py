"""What already answers at an address: a model server with its models, or something else."""

from pathlib import Path

import httpx
from msgspec import Struct
from msgspec.structs import replace

from forge.backends.endpoints import ServerVersion
from forge.backends.questions import ask
from forge.backends.recognition import About, ask_about, context_of, kind_of
from forge.errors import BackendError

_SECONDS = 2.0
"""Time-out of each question, in seconds."""


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
        about = await ask_about(client, f"{url}/v1", props=True, seconds=_SECONDS, loading=0)
        asked = None if about.props else await ask(client, f"{url}/api/version", seconds=_SECONDS, loading=0)
    except BackendError as error:
        if isinstance(error.__cause__, httpx.ConnectError):
            return None
        return Occupant(kind=f"something that is no model server ({type(error.__cause__).__name__})")
    return _told(replace(about, ollama=asked.read(ServerVersion) if asked else None))


def _told(about: About) -> Occupant:
    props, listed = about.props, about.models.data if about.models else []
    names = (*(model.id for model in listed), props.model_alias if props else "", *(model.root for model in listed))
    return Occupant(
        kind=_words(about),
        models=tuple(dict.fromkeys(name for name in names if name)),
        path=props.model_path if props else "",
        context_tokens=context_of(about).tokens or 0,
        slots=(props.total_slots if props else None) or 0,
    )


def _words(about: About) -> str:
    """What the server is, for people."""
    match kind_of(about)[0]:
        case "llama-server":
            return "a llama.cpp server"
        case "ollama":
            return f"Ollama {about.build[:20]}"
        case _:
            return "a chat completions server" if about.listed() else "a server that lists no models"


def serves(found: Occupant, model: Path | str) -> bool:
    """Whether it serves this very model: the same file, or the name that was asked for."""
    if isinstance(model, Path):
        return bool(found.path) and Path(found.path).is_absolute() and Path(found.path).resolve() == model.resolve()
    return model.casefold() in {name.casefold() for name in found.models}
