"""Which server answers, and with how much context: one reading of what it says of itself, for all who ask."""

import msgspec
import pytest

from forge.backends.endpoints import (
    GenerationSettings,
    ListedModel,
    ModelList,
    Props,
)
from forge.backends.recognition import About
from tests.fake_vllm import recorded


def listed(**fields: object) -> About:
    return About(models=ModelList(data=[ListedModel(id="m", **fields)]))  # type: ignore[arg-type]  # a table of fields


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
