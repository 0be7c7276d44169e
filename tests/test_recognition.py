"""Which server answers, and with how much context: one reading of what it says of itself, for all who ask."""

import msgspec
import pytest

from forge.backends.endpoints import (
    GenerationSettings,
    ListedModel,
    Meta,
    ModelList,
    OllamaModel,
    Props,
    ServerVersion,
    StudioModel,
    StudioModelList,
)
from forge.backends.recognition import About, ContextSize, context_of, kind_of
from tests.fake_vllm import recorded


def listed(**fields: object) -> About:
    return About(models=ModelList(data=[ListedModel(id="m", **fields)]))  # type: ignore[arg-type]  # a table of fields


PROPS = Props(default_generation_settings=GenerationSettings(n_ctx=4096), build_info="b1")
NONE = About()


@pytest.mark.parametrize(
    ("about", "kind", "known_by"),
    [
        (NONE, "openai-compatible", ""),
        (About(props=PROPS), "llama-server", "it answers /props"),
        (listed(owned_by="llamacpp"), "llama-server", '/v1/models says owned_by "llamacpp"'),
        (listed(owned_by="VLLM"), "vllm", '/v1/models says owned_by "vllm"'),
        (listed(max_model_len=8192), "openai-compatible", ""),  # MAX and SGLang say it too
        (
            About(ollama=ServerVersion(version="0.12"), vllm=ServerVersion(version="1")),
            "ollama",
            "it answers /api/version",
        ),
        (About(studio=StudioModelList(data=[])), "lm-studio", "it answers /api/v0/models"),
        (listed(owned_by="library"), "openai-compatible", ""),  # Ollama writes it, and so do others
        (listed(owned_by="me"), "openai-compatible", ""),
        (About(models=ModelList(data=[])), "openai-compatible", ""),
    ],
)
def test_the_kind_of_a_server_and_how_it_is_known(about: About, kind: str, known_by: str) -> None:
    assert kind_of(about) == (kind, known_by)


SIZED = StudioModelList(data=[StudioModel(id="m", max_context_length=9, loaded_context_length=5), StudioModel(id="n")])


@pytest.mark.parametrize(
    ("about", "model", "found"),
    [
        (NONE, "m", ContextSize()),
        (About(props=PROPS), "m", ContextSize(4096, "n_ctx of /props")),
        (listed(max_model_len=8192), "m", ContextSize(8192, "max_model_len of /v1/models")),
        (listed(max_model_len=8192), "under-another-name", ContextSize(8192, "max_model_len of /v1/models")),
        (listed(meta=Meta(n_ctx=2048)), "m", ContextSize(2048, "n_ctx of /v1/models")),
        (About(props=PROPS, models=listed(max_model_len=9).models), "m", ContextSize(4096, "n_ctx of /props")),
        (About(studio=SIZED), "m", ContextSize(5, "loaded_context_length of /api/v0/models")),
        (About(studio=SIZED), "n", ContextSize()),
        (
            About(shown=OllamaModel(model_info={"x.context_length": 32768})),
            "m",
            ContextSize(32768, "the model's own limit, in /api/show"),
        ),
        (About(shown=OllamaModel(model_info={"x.context_length": "many"})), "m", ContextSize()),
    ],
)
def test_the_context_and_which_field_says_so(about: About, model: str, found: ContextSize) -> None:
    assert context_of(about, model) == found


@pytest.mark.parametrize(
    ("about", "has"),
    [
        (NONE, None),
        (About(props=PROPS), None),
        (About(props=Props(default_generation_settings=GenerationSettings(), chat_template="{{ tools }}")), True),
        (About(props=Props(default_generation_settings=GenerationSettings(), chat_template="{{ messages }}")), False),
        (
            About(
                props=Props(
                    default_generation_settings=GenerationSettings(),
                    chat_template="{{ tools }}",
                    chat_template_caps={"supports_tools": False},
                )
            ),
            False,
        ),
        (About(shown=OllamaModel(capabilities=["completion", "tools"])), True),
        (About(shown=OllamaModel(capabilities=["completion"])), False),
        (About(shown=OllamaModel()), None),
    ],
)
def test_whether_the_template_has_a_place_for_tools(about: About, has: bool | None) -> None:
    assert about.template_has_tools is has


VLLM_LIST = msgspec.json.decode(recorded("tools__models")[1], type=ModelList)
VLLM = About(models=VLLM_LIST)
SERVED = Props(default_generation_settings=GenerationSettings(), model_path="/models/q.gguf", model_alias="q")


@pytest.mark.parametrize(
    ("about", "model", "only"),
    [
        (About(props=SERVED, models=listed(aliases=["small"]).models), "nope", "m"),
        (About(props=SERVED, models=listed(aliases=["small"]).models), "small", ""),
        (About(props=SERVED, models=listed().models), "", ""),
        *((About(props=SERVED, models=listed().models), name, "") for name in ("m", "q", "q.gguf", "/models/q.gguf")),
        (About(props=Props(default_generation_settings=GenerationSettings()), models=listed().models), "m.gguf", "m"),
        (About(props=SERVED, models=ModelList(data=[ListedModel(id="/models/big-1.5b.gguf")])), "big-1.5b", ""),
        (About(props=SERVED), "nope", ""),
        (About(props=SERVED, models=ModelList(data=[ListedModel(id="m"), ListedModel(id="n")])), "nope", ""),
        (listed(), "nope", ""),
        (VLLM, "nope", "qwen05"),
        (VLLM, "qwen05", ""),
        (VLLM, "", ""),
        (About(models=ModelList(data=[*VLLM_LIST.data, ListedModel(id="adapter", owned_by="vllm")])), "adapter", ""),
        (
            About(models=ModelList(data=[*VLLM_LIST.data, ListedModel(id="adapter", owned_by="vllm")])),
            "nope",
            "qwen05, adapter",
        ),
        (About(models=ModelList(data=[*VLLM_LIST.data, ListedModel(id="other", owned_by="openai")])), "nope", ""),
        (About(models=ModelList(data=[])), "nope", ""),
    ],
)
def test_a_server_that_is_known_not_to_have_a_model_says_which_it_has(about: About, model: str, only: str) -> None:
    assert about.instead_of(model) == only
