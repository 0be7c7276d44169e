"""Sampling: what makers recommend by exact names, and options that go over others one by one."""

import asyncio
import math
import tomllib
from collections.abc import Iterator
from importlib import resources

import pytest
from msgspec import UNSET

from forge import Limits, run_sync
from forge.backends import Server
from forge.backends.profile import Profile, low_temperature, named_profile, names, recommended, usual
from forge.errors import ForgeError, explain
from forge.interpreters.scripted import Scripted
from stages.effect import RawCall, Reply
from stages.halt import BadReplies, ToolsFailing
from stages.wire.sampling import DEFAULT_MAX_TOKENS, Sampling, options
from tests.costly import costly
from tests.flows import Desk


def calling(arguments: str) -> Reply:
    """A call that was cut off in its arguments."""
    return Reply(calls=(RawCall(name="look", arguments=arguments),), finish="length")


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
    assert Sampling().limit == DEFAULT_MAX_TOKENS
    assert Sampling(max_tokens=7).limit == 7
    assert options(Sampling(), {}) == {"max_tokens": DEFAULT_MAX_TOKENS}


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


REFUSED = [
    ("temperature", -0.1, "a number, at least 0 and at most 100"),
    ("temperature", math.nan, "a number, at least 0 and at most 100"),
    ("temperature", math.inf, "a number, at least 0 and at most 100"),
    ("temperature", "hot", "a number, at least 0 and at most 100"),
    ("temperature", None, "a number, at least 0 and at most 100"),
    ("temperature", True, "a number, at least 0 and at most 100"),
    ("top_p", 0, "a number, over 0 and at most 1"),
    ("top_p", 1.1, "a number, over 0 and at most 1"),
    ("top_k", 1.5, "a whole number, at least -1"),
    ("top_k", -2, "a whole number, at least -1"),
    ("min_p", -1, "a number, at least 0 and at most 1"),
    ("repeat_penalty", 0, "a number, over 0 and at most 100"),
    ("presence_penalty", 3, "a number, at least -2 and at most 2"),
    ("frequency_penalty", -3, "a number, at least -2 and at most 2"),
    ("seed", "x", "a whole number"),
    ("max_tokens", 0, "a whole number, at least 1"),
    ("max_tokens", 2.5, "a whole number, at least 1"),
    ("stop", "END", "a list of strings"),
]


@pytest.mark.parametrize(("name", "value", "says"), REFUSED)
def test_what_no_server_takes_is_refused_in_words(name: str, value: object, says: str) -> None:
    with pytest.raises(ValueError) as refused:
        Sampling(**{name: value})  # type: ignore[arg-type]  # what a type checker would refuse too
    assert str(refused.value) == f"Sampling: {name} is {value!r}; it must be {says}"


def test_a_stop_that_stops_everything_is_refused() -> None:
    with pytest.raises(ValueError, match="stop holds an empty text"):
        Sampling(stop=("END", ""))


def test_every_mistake_is_told_at_once() -> None:
    with pytest.raises(ValueError, match=r"temperature is -1; .*\n.*max_tokens is 0; "):
        Sampling(temperature=-1, max_tokens=0)


def test_what_servers_take_at_the_edges_is_taken() -> None:
    Sampling(temperature=0, top_p=1, top_k=-1, min_p=0, presence_penalty=-2, frequency_penalty=2, seed=-1, max_tokens=1)


@pytest.mark.parametrize(
    ("profile", "url", "temperature"),
    [(name, "http://127.0.0.1:8080", 0.1) for name in names() if name not in {"openai", "anthropic"}]
    + [("vllm", "https://models.example.org/v1", 0.1), ("openai-compatible", "https://models.example.org/v1", None)]
    + [("openai", "https://api.openai.com/v1", None), ("anthropic", "https://api.anthropic.com", None)],
)
def test_a_low_temperature_is_asked_of_servers_of_one_s_own(profile: str, url: str, temperature: float | None) -> None:
    assert low_temperature(named_profile(profile), url) == temperature


def test_a_profile_of_the_user_s_asks_for_what_it_says() -> None:
    assert low_temperature(Profile(name="mine"), "http://127.0.0.1:8080") is None
    assert low_temperature(Profile(name="mine", temperature=0.5), "https://models.example.org") == 0.5


def test_a_model_that_thinks_first_keeps_the_temperature_of_its_makers() -> None:
    assert usual("qwen2.5-coder-0.5b", 0.1) == Sampling(temperature=0.1)
    assert usual("Qwen3-Coder-30B-A3B-Instruct-Q4_K_M", 0.1) == Sampling(temperature=0.1)
    assert usual("qwen3:8b-q4_K_M", 0.1) == Sampling(temperature=0.6)
    assert usual("gpt-oss-120b-Q4_K_M.gguf", 0.1) == Sampling(temperature=1.0)
    assert usual("qwen3:8b-q4_K_M", None) == Sampling()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with costly() as url:
        yield url


@pytest.mark.parametrize(
    ("options", "sampling"),
    [
        ({}, Sampling(temperature=0.1)),
        ({"sampling": Sampling(top_p=0.9)}, Sampling(temperature=0.1, top_p=0.9)),
        ({"sampling": Sampling(temperature=0.7)}, Sampling(temperature=0.7)),
        ({"model": "granite-4.0:h-tiny", "model_sampling": True}, Sampling(temperature=0.0, top_p=1.0, top_k=0)),
    ],
)
def test_what_is_asked_for_in_the_end(server: str, options: dict[str, object], sampling: Sampling) -> None:
    async def go() -> Sampling:
        async with Server(f"{server}/well", **options).connect() as connection:  # type: ignore[arg-type]  # of a table
            return connection.setup.sampling

    assert asyncio.run(go()) == sampling


def test_more_context_than_the_server_has_is_refused(server: str) -> None:
    async def go(context_tokens: int) -> int:
        async with Server(f"{server}/well", context_tokens=context_tokens).connect() as connection:
            return connection.setup.context_tokens

    assert asyncio.run(go(8192)) == 8192
    assert asyncio.run(go(512)) == 512
    with pytest.raises(ForgeError, match="8193 tokens of context are more than the server has: 8192"):
        asyncio.run(go(8193))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"context_tokens": 0}, "context_tokens is 0; it must be a whole number, at least 1 or None"),
        ({"context_tokens": -5}, "context_tokens is -5"),
        ({"timeout": math.nan}, "timeout is nan"),
        ({"total_timeout": -1.0}, "total_timeout is -1.0"),
    ],
)
def test_numbers_of_a_server_that_make_no_sense_are_refused(options: dict[str, object], says: str) -> None:
    with pytest.raises(ForgeError, match=says):
        Server("http://127.0.0.1:8080", **options)  # type: ignore[arg-type]  # of a table


@pytest.mark.parametrize("message", ["", " \n\t"])
def test_a_message_that_says_nothing_is_refused(message: str) -> None:
    with pytest.raises(ForgeError, match="the message is empty"):
        run_sync(Desk().workflow, message, backend=Scripted([]))


@pytest.mark.parametrize("reply", [Reply(text="I wi", finish="length"), calling('{"what":"a')])
def test_a_run_that_ends_because_replies_may_not_be_longer_says_which_option(reply: Reply) -> None:
    halted = run_sync(
        Desk(limits=Limits(max_retries_per_step=1, max_tool_errors=1)).workflow, "Go.", backend=Scripted([reply] * 4)
    )
    assert isinstance(halted.failure().halt, BadReplies | ToolsFailing)
    said = explain(halted.failure().halt)
    assert "reached the maximum number of tokens per reply" in said
    assert "--max-tokens" in said
    assert "Sampling(max_tokens=" in said
