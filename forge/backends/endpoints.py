"""Answers of model servers about themselves: a struct per endpoint, with a link to its documentation."""

from msgspec import Struct


class GenerationSettings(Struct):
    """A part of `Props`."""

    n_ctx: int | None = None


class Props(Struct):
    """llama.cpp, GET /props: https://github.com/ggml-org/llama.cpp/tree/master/tools/server."""

    default_generation_settings: GenerationSettings
    build_info: str = ""
    chat_template: str | None = None
    chat_template_caps: dict[str, bool] = {}
    model_path: str = ""
    model_alias: str = ""
    total_slots: int | None = None


class Meta(Struct):
    """A part of `ListedModel`."""

    n_ctx: int | None = None


class ListedModel(Struct):
    """A part of `ModelList`; `max_model_len` and `root` are vLLM's, `meta` and `aliases` are llama.cpp's."""

    id: str
    owned_by: str = ""
    max_model_len: int | None = None
    meta: Meta | None = None
    root: str | None = None
    aliases: list[str] | None = None


class ModelList(Struct):
    """Servers of the chat completions protocol, GET /v1/models: https://platform.openai.com/docs/api-reference/models."""

    data: list[ListedModel]


class ServerVersion(Struct):
    """GET /version of vLLM: https://docs.vllm.ai; GET /api/version of Ollama: https://docs.ollama.com/api/version."""

    version: str


class StudioModel(Struct):
    """A part of `StudioModelList`."""

    id: str
    max_context_length: int | None = None
    loaded_context_length: int | None = None


class StudioModelList(Struct):
    """LM Studio, GET /api/v0/models: https://lmstudio.ai/docs/developer/rest/endpoints."""

    data: list[StudioModel]


class OllamaModel(Struct):
    """Ollama, POST /api/show: https://docs.ollama.com/api-reference/show-model-details."""

    parameters: str = ""
    model_info: dict[str, object] = {}
    capabilities: list[str] = []

    @property
    def trained_context(self) -> int | None:
        """The tokens that the model was trained for; Ollama requests no more."""
        lengths = (n for name, n in self.model_info.items() if name.endswith(".context_length"))
        return next((n for n in lengths if isinstance(n, int) and n > 0), None)


class OllamaRunning(Struct):
    """A part of `OllamaRunningList`."""

    name: str = ""
    context_length: int | None = None


class OllamaRunningList(Struct):
    """Ollama, GET /api/ps: https://docs.ollama.com/api/ps."""

    models: list[OllamaRunning] | None = None


class OllamaTag(Struct):
    """A part of `OllamaTagList`."""

    name: str = ""


class OllamaTagList(Struct):
    """Ollama, GET /api/tags: https://docs.ollama.com/api/tags."""

    models: list[OllamaTag] = []


class TokenList(Struct):
    """llama.cpp, POST /tokenize; vLLM's answer has the same field, and `count`."""

    tokens: list[int]
    count: int | None = None


class RenderedPrompt(Struct):
    """llama.cpp, POST /apply-template."""

    prompt: str


class AnthropicModel(Struct):
    """Anthropic, GET /v1/models/{id}: https://platform.claude.com/docs/en/api/models/retrieve."""

    max_input_tokens: int | None = None


class AnthropicCount(Struct):
    """Anthropic, POST /v1/messages/count_tokens: https://platform.claude.com/docs/en/api/messages/count_tokens."""

    input_tokens: int
