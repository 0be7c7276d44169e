"""Profiles: data that round-trips, and that is refused with a reason where it makes no sense."""

from pathlib import Path

import pytest

from forge.backends.http_client import refuses_tools
from forge.backends.profile import Profile, from_toml, load_profile, named_profile, names, to_toml
from forge.errors import ForgeError
from stages.effect import Fault
from tests.fake_vllm import recorded


@pytest.mark.parametrize("name", names())
def test_what_ships_is_sound_and_survives_a_round_trip(name: str) -> None:
    profile = named_profile(name)
    assert profile.name == name
    assert from_toml(to_toml(profile)) == profile


def test_odd_texts_and_nested_values_survive_a_round_trip() -> None:
    body = {"top_n_sigma": 1.5, "deep": {"list": [1, "two", True]}}
    profile = Profile(name="mine", headers={"x-team": 'a "b" \x7f'}, body=body, alternating=True)
    assert from_toml(to_toml(profile)) == profile


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('name = "a"\nmode = "native"\nnative_calls = false', "needs native_calls = true"),
        ('name = "a"\nmode = "constrained"', "needs constrain"),
        ('name = "a"\nwire = "anthropic"\nconstrain = "format"', "not for the wire"),
        ('name = "a"\nwire = "ollama"\nconstrain = "json_schema"', "not for the wire"),
        ('name = "a"\ncolour = "red"', "colour"),
        ('name = "a"\nwire = "smoke"', "smoke"),
        (
            'name = "a"\n[option_names]\ntemprature = ""',
            "option_names has no option 'temprature'.* Did you mean temperature?",
        ),
        ('name = "a"\n[option_names]\nextra = "x"', "option_names has no option 'extra'"),
        ('name = "a"\nurl = "not a url"', "url: 'not a url' is not a server's address"),
        ('name = "a"\nurl = "https://me:secret@example.org"', "url: the server's address holds a user name"),
        ('name = "a"\ncontext = "show"', 'context = "show" is not for the wire "openai"; .*: given, props, models'),
        ('name = "a"\nwire = "ollama"\ncontext = "models"', 'not for the wire "ollama"; there it may be: given, show'),
        ('name = "a"\nwire = "anthropic"\ncontext = "props"', 'not for the wire "anthropic"; there it may be: given'),
        ("wire = 1", "wire"),
        ("name = ", "is not valid TOML"),
        ("name = 1\nurl = 2", "name is 1(?s:.*)url is 2"),
    ],
)
def test_a_profile_that_makes_no_sense_is_refused_with_the_reason(text: str, says: str) -> None:
    with pytest.raises(ForgeError, match=says):
        from_toml(text)


def test_a_file_is_named_where_it_is_wrong(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("name = 1")
    for path in (wrong, tmp_path / "missing.toml"):
        with pytest.raises(ForgeError, match=path.name):
            load_profile(path)


def test_an_unknown_name_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ForgeError, match="llama-server, llamafile"):
        named_profile("../../secrets")


@pytest.mark.parametrize("name", ["vllm", "openai-compatible"])
@pytest.mark.parametrize("what", ["plain__tools_auto", "plain__tools_required", "plain__tools_named"])
def test_each_of_vllms_refusals_of_tools_is_known(name: str, what: str) -> None:
    status, body = recorded(what)
    fault = Fault(kind="status", detail="", status=status, body=body.decode())
    assert refuses_tools(fault, named_profile(name).refusals("native"))


def test_a_schema_that_vllms_grammar_cannot_do_is_known_as_such() -> None:
    status, body = recorded("tools__schema_unsupported")
    fault = Fault(kind="status", detail="", status=status, body=body.decode())
    assert refuses_tools(fault, named_profile("vllm").refusals("constrained"))
