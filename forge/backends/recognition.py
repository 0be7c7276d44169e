"""Which server answers at an address, its models and its context, as it reports them."""

from pathlib import PurePath
from typing import Literal, TypeVar, get_args

import httpx
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from forge.backends.credentials import origin
from forge.backends.endpoints import ListedModel, ModelList, OllamaModel, Props, ServerVersion, StudioModelList
from forge.backends.profile import Profile, named_profile, names
from forge.backends.questions import KNOCK, LOADING, ask
from forge.errors import BackendError

ServerKind = Literal["llama-server", "vllm", "ollama", "lm-studio", "openai", "openai-compatible"]
"""Kinds of servers, by the name of their profile."""

SERVER_KINDS: tuple[ServerKind, ...] = get_args(ServerKind)

_OWNERS: dict[str, ServerKind] = {"llamacpp": "llama-server", "vllm": "vllm"}
"""Kinds by the `owned_by` of their models.

vLLM's `/version` and `max_model_len` do not identify it: MAX has both, SGLang lists the latter.
"""


class ContextSize(Struct, frozen=True):
    """The context in tokens, and the field that reports it; None and empty if unknown."""

    tokens: int | None = None
    source: str = ""


class About(Struct, frozen=True, kw_only=True):
    """What a server reported about itself; None if it was not asked or lacks the endpoint."""

    props: Props | None = None
    models: ModelList | None = None
    vllm: ServerVersion | None = None
    ollama: ServerVersion | None = None
    studio: StudioModelList | None = None
    shown: OllamaModel | None = None

    def listed(self, model: str = "") -> ListedModel | None:
        """The listed model with that name, otherwise the first: some servers serve their only model under any name."""
        models = self.models.data if self.models else []
        return next((each for each in models if each.id == model), models[0] if models else None)

    def instead_of(self, model: str) -> str:
        """The models that the server has instead of this one; empty if it may have it.

        Known for a llama-server with one model, which answers to any name, and for vLLM, which answers to no other.
        """
        match self.models.data if self.models else []:
            case [only] if model and self.props is not None:
                own = {only.id, *(only.aliases or ()), self.props.model_alias, self.props.model_path}
                files = {PurePath(name).name for name in own}
                return "" if model in own | files | {name.removesuffix(".gguf") for name in files} else only.id
            case [_, *_] as served if model and all(_OWNERS.get(each.owned_by.lower()) == "vllm" for each in served):
                names = [each.id for each in served]
                return "" if model in names else ", ".join(names)
            case _:
                return ""

    @property
    def template(self) -> str | None:
        """The model's chat template; None if the server does not show it."""
        return self.props.chat_template if self.props else None

    @property
    def slots(self) -> int | None:
        """How many requests the server runs at the same time; None if unknown."""
        return self.props.total_slots if self.props else None

    @property
    def build(self) -> str:
        """The server's version; empty if it reports none."""
        said = self.ollama or self.vllm
        return self.props.build_info if self.props else said.version if said else ""

    @property
    def template_has_tools(self) -> bool | None:
        """Whether the model's chat template supports tools; None if unknown."""
        if self.shown and self.shown.capabilities:
            return "tools" in self.shown.capabilities
        if self.props is None:
            return None
        said = self.props.chat_template_caps.get("supports_tools")
        return "tools" in self.props.chat_template if said is None and self.props.chat_template else said

    @property
    def may_be_ollama(self) -> bool:
        """Whether the `owned_by` of its models is Ollama's; other servers use it too."""
        listed = self.listed()
        return listed is not None and listed.owned_by.lower() == "library"


def kind_of(about: About, model: str = "") -> tuple[ServerKind, str]:
    """The server's kind, and how it was recognised; `openai-compatible` and empty if it was not."""
    if about.props is not None:
        return "llama-server", "it answers /props"
    if about.ollama is not None:
        return "ollama", "it answers /api/version"
    if about.studio is not None:
        return "lm-studio", "it answers /api/v0/models"
    listed = about.listed(model)
    if listed is not None and (kind := _OWNERS.get(listed.owned_by.lower())):
        return kind, f'/v1/models says owned_by "{listed.owned_by.lower()}"'
    return "openai-compatible", ""


def context_of(about: About, model: str = "") -> ContextSize:
    """The model's context: as loaded if the server reports that, otherwise its maximum."""
    listed = about.listed(model)
    loaded = next((each for each in about.studio.data if each.id == model), None) if about.studio else None
    said = (
        (about.props.default_generation_settings.n_ctx if about.props else None, "n_ctx of /props"),
        (loaded.loaded_context_length if loaded else None, "loaded_context_length of /api/v0/models"),
        (loaded.max_context_length if loaded else None, "max_context_length of /api/v0/models"),
        (about.shown.trained_context if about.shown else None, "the model's own limit, in /api/show"),
        (listed.max_model_len if listed else None, "max_model_len of /v1/models"),
        (listed.meta.n_ctx if listed and listed.meta else None, "n_ctx of /v1/models"),
    )
    return next((ContextSize(tokens, source) for tokens, source in said if tokens), ContextSize())


def addressed(url: str) -> Profile | None:
    """The profile with that default address; None for local addresses, where anything may run."""
    meant = origin(url)
    profiles = map(named_profile, names()) if meant[0] == "https" else ()
    return next((profile for profile in profiles if origin(profile.url) == meant), None)


async def ask_about(client: httpx.AsyncClient, base: str, *, props: bool, loading: float = LOADING) -> About:
    """Ask a chat completions server about itself; `base` is its address with `/v1`, `props` also asks llama.cpp's.

    `loading` is that of `ask`, and so are the exceptions.
    """
    said = (await ask(client, base.removesuffix("/v1") + "/props", loading=loading)).read(Props) if props else None
    return About(props=said, models=(await ask(client, base + "/models", loading=loading)).read(ModelList))


_T = TypeVar("_T")


async def identify(client: httpx.AsyncClient, base: str, model: str, about: About, *, seconds: float = KNOCK) -> About:
    """`about`, which has the models, with all else that tells the server's kind, its version and its context.

    Asks only what is still open; a question without an answer is as one to which the server has none.
    """

    async def said(path: str, form: type[_T], question: bytes | None = None) -> _T | None:
        try:
            return (await ask(client, base.removesuffix("/v1") + path, question, seconds=seconds, loading=0)).read(form)
        except BackendError:
            return None

    kind, _ = kind_of(about, model)
    if kind == "llama-server" or (kind == "openai-compatible" and not about.may_be_ollama):
        about = replace(about, props=await said("/props", Props))
    elif kind == "vllm":
        about = replace(about, vllm=await said("/version", ServerVersion))
    if kind_of(about, model)[0] == "openai-compatible":
        about = replace(about, ollama=await said("/api/version", ServerVersion))
    if kind_of(about, model)[0] == "openai-compatible":
        about = replace(about, studio=await said("/api/v0/models", StudioModelList))
    if about.ollama:
        about = replace(about, shown=await said("/api/show", OllamaModel, msgspec.json.encode({"model": model})))
    return about
