"""Which backend answers at an address, where the user names none: told by its own endpoints."""

import httpx
from msgspec import Struct

from forge.backends.credentials import origin
from forge.backends.profile import Profile, named_profile, names
from forge.backends.questions import KNOCK, LOADING, Answer, ask


class Settings(Struct):
    n_ctx: int


class Props(Struct):
    """What llama.cpp says of itself at /props: https://github.com/ggml-org/llama.cpp/tree/master/tools/server."""

    default_generation_settings: Settings
    chat_template: str = ""
    chat_template_caps: dict[str, bool] = {}
    model_path: str = ""
    model_alias: str = ""
    total_slots: int = 1


class Model(Struct):
    id: str
    owned_by: str = ""
    max_model_len: int | None = None
    root: str | None = None


class Models(Struct):
    """What a server of the chat completions protocol lists at /v1/models."""

    data: list[Model]


class About(Struct, frozen=True, kw_only=True):
    """What a server said of itself; None where it did not know the question."""

    props: Props | None = None
    models: Models | None = None

    @property
    def first(self) -> Model | None:
        """The first model that it lists."""
        return self.models.data[0] if self.models and self.models.data else None


def addressed(url: str) -> Profile | None:
    """The profile whose own address that is; None for an address in the local network, where anything may run."""
    profiles = (named_profile(name) for name in names())
    return next((p for p in profiles if p.url.startswith("https://") and origin(p.url) == origin(url)), None)


def recognised(about: About) -> Profile | None:
    """The profile of a server of the chat completions protocol that said this of itself; None where it says little."""
    if about.props is not None:
        return named_profile("llama-server")
    first = about.first
    if first is not None and (first.owned_by == "vllm" or first.max_model_len is not None):
        return named_profile("vllm")
    return None


async def ask_about(
    client: httpx.AsyncClient, base: str, *, props: bool, seconds: float = KNOCK, loading: float = LOADING
) -> About:
    """Ask a server of the chat completions protocol, `base` being its address with `/v1`; for `/props` too.

    `seconds` and `loading` as in `ask`, which raises the same.
    """

    async def answer(url: str) -> Answer:
        return await ask(client, url, seconds=seconds, loading=loading)

    said = (await answer(base.removesuffix("/v1") + "/props")).read(Props) if props else None
    return About(props=said, models=(await answer(base + "/models")).read(Models))
