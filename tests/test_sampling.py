"""Sampling: what makers recommend by exact names, and options that go over others one by one."""

import tomllib
from importlib import resources

import pytest
from msgspec import UNSET

from forge.backends.sampling import recommended
from forge.errors import ForgeError
from stages.wire.sampling import LIMIT, Sampling, options

THINKS: dict[str, object] = {"chat_template_kwargs": {"reasoning_effort": "medium"}}


@pytest.mark.parametrize(
    ("model", "sampling"),
    [
        ("qwen3:8b-q4_K_M", Sampling(temperature=0.6, top_p=0.95, top_k=20, min_p=0.0)),
        ("Qwen3-8B-Q4_K_M", Sampling(temperature=0.6, top_p=0.95, top_k=20, min_p=0.0)),
        ("/models/qwen3-8b-q4_k_m.gguf", Sampling(temperature=0.6, top_p=0.95, top_k=20, min_p=0.0)),
        (
            r"C:\models\gpt-oss-120b-Q4_K_M-00001-of-00003.gguf",
            Sampling(temperature=1.0, top_p=1.0, top_k=0, min_p=0.0, extra=THINKS),
        ),
        ("granite-4.0:h-tiny", Sampling(temperature=0.0, top_p=1.0, top_k=0)),
    ],
)
def test_a_known_model_has_what_its_makers_recommend(model: str, sampling: Sampling) -> None:
    assert recommended(model) == sampling


def test_every_row_can_be_looked_up_by_each_of_its_names_and_none_stands_in_two() -> None:
    rows = tomllib.loads((resources.files("forge.backends") / "sampling.toml").read_text())["model"]
    names = [name for row in rows for name in row["names"]]
    assert len({name.lower() for name in names}) == len(names)
    for row in rows:
        assert {recommended(name).temperature for name in row["names"]} == {row["temperature"]}


@pytest.mark.parametrize(
    ("model", "near"),
    [("qwen3:8b", "the nearest names are qwen3:8b-q"), ("qwen3:8b-q5_K_M", "qwen3:8b-q4_K_M"), ("x", "yourself")],
)
def test_an_unknown_model_is_refused_with_the_nearest_names(model: str, near: str) -> None:
    with pytest.raises(ForgeError, match=near):
        recommended(model)


def test_options_go_over_others_field_by_field() -> None:
    base = Sampling(temperature=0.6, top_p=0.9, max_tokens=64, extra={"a": 1, "b": 1})
    over = Sampling(temperature=0.0, extra={"b": 2}).over(base)
    assert over == Sampling(temperature=0.0, top_p=0.9, max_tokens=64, extra={"a": 1, "b": 2})
    assert Sampling().over(base) == base


def test_a_reply_is_always_limited() -> None:
    assert Sampling().limit == LIMIT
    assert Sampling(max_tokens=7).limit == 7
    assert options(Sampling(), {}) == {"max_tokens": LIMIT}


def test_every_option_is_sent_under_the_name_that_a_backend_has() -> None:
    every = Sampling(
        temperature=0.5,
        top_p=0.9,
        top_k=40,
        min_p=0.05,
        repeat_penalty=1.1,
        presence_penalty=0.1,
        frequency_penalty=0.2,
        seed=7,
        stop=("END",),
        max_tokens=64,
    )
    assert UNSET not in options(every, {}).values()
    assert len(options(every, {})) == 10
    assert options(every, {"repeat_penalty": "repetition_penalty"})["repetition_penalty"] == 1.1


@pytest.mark.parametrize("field", ["messages", "tools", "stream", "model"])
def test_a_field_that_forge_writes_itself_is_refused(field: str) -> None:
    with pytest.raises(ValueError, match=field):
        Sampling(extra={field: 1})
