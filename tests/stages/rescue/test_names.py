"""Names of tools, as models write them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.rescue.names import Names, bare_name, indexed, name_pattern, name_search

KNOWN = Names({"get_weather": ("city", "day"), "stop": ()})


@pytest.mark.parametrize(
    "written",
    [
        "get_weather",
        "getWeather",
        "GET-WEATHER",
        "**get_weather**",
        "`get_weather`",
        "functions.get_weather",
        "functions.get_weather:0",
        "tools/get_weather",
        "get_weather()",
        "get_weather<|channel|>commentary",
    ],
)
def test_a_name_is_found_however_it_is_dressed(written: str) -> None:
    assert KNOWN.find(written) == ("get_weather",)
    assert KNOWN.parameters(written) == ("city", "day")


@pytest.mark.parametrize("written", ["", "weather", "get_weather_now", "___", "x" * 10_000])
def test_a_name_that_is_none(written: str) -> None:
    assert (KNOWN.find(written), KNOWN.knows(written), KNOWN.parameters(written)) == ((), False, ())


def test_a_name_that_fits_two_tools_is_neither() -> None:
    assert Names(["get_a", "getA"]).find("GetA") == ("get_a", "getA")
    assert Names(["get_a", "getA"]).find("getA") == ("getA",)


def test_what_is_known_of_parameters() -> None:
    assert (KNOWN.takes_nothing("stop"), KNOWN.takes_nothing("get_weather")) == (True, False)
    assert not Names(["stop"]).takes_nothing("stop"), "nothing is known of them"
    assert (KNOWN.begins("get_we"), KNOWN.begins("set")) == (True, False)


@given(st.text(max_size=300))
def test_a_bare_name_is_bounded_and_has_nothing_around_it(written: str) -> None:
    bare = bare_name(written)
    assert len(bare) <= 200
    assert bare == bare.strip("*_`\"' \t\r\n")


def test_a_name_is_a_word_of_its_own() -> None:
    found = name_pattern("get_weather")
    assert all(found.search(text) for text in ("call get_weather now", "getWeather(", "\\nget-weather"))
    assert not any(found.search(text) for text in ("forget_weather", "get_weathers", "get the weather"))


@given(names=st.lists(st.text(st.sampled_from("abAB_-. "), max_size=6)), text=st.text(st.sampled_from("abAB_-. ")))
def test_a_text_names_a_tool_wherever_a_pattern_of_its_letters_would_find_it(names: list[str], text: str) -> None:
    wanted = [name for name in names if name]
    spelt = [[re.escape(letter) for letter in name if letter.isalnum()] or [re.escape(name)] for name in wanted]
    pattern = re.compile("|".join(r"[\W_]*".join(letters) for letters in spelt) or "(?!)", re.IGNORECASE)
    assert name_search(names).finds(text) == bool(pattern.search(text))


def test_a_search_finds_other_spellings_and_none_of_no_names() -> None:
    assert name_search(["stop", "go"]).finds("It says GO.")
    assert name_search(["get_weather", "-"]).finds("getWeather(")
    assert name_search(["+1"]).finds("a - 1")
    assert not name_search([]).finds("anything")


@pytest.mark.parametrize("count", [2, 300])
@pytest.mark.parametrize(
    "written", ["get_weather", "getWeather", "GET-WEATHER", "get\\_weather", "g\\u0065t_weather", "get_w"]
)
def test_a_long_text_is_read_with_the_tools_that_it_names(count: int, written: str) -> None:
    names = indexed({"get_weather": ("city",), **{f"tool_{index}": () for index in range(count)}})
    near = names.within(f"{'{<[ ' * 200}{written}")
    assert "get_weather" in near.known
    assert near.find("getWeather") == names.find("getWeather")
    assert not names.within("{<[ " * 200).known
