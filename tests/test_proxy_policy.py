"""Policies of the proxy: the file, and sessions of real requests that are held to it."""

from pathlib import Path

import pytest

from forge.errors import ForgeError
from forge.proxy import ModelPolicy, Policy, ToolPolicy
from forge.proxy.policy_file import policy_from_toml, read_policy

FILE = """
required_steps = "read_file"
terminal_tool = ["commit", "push"]
max_repeats = 2

[[order]]
tool = "search"
at_most = 3

[tools.commit]
prerequisites = ["run_tests", { tool = "edit_file", match_arg = "path" }]
grounded = { path = "list_files" }

[model."Qwen*"]
required_steps = []
max_repeats = 3

[model."*-coder"]
on_text = "nudge"

[model."*-coder".tools.commit]
errors = ["*rejected*"]
"""


def test_a_models_table_replaces_what_it_names_and_keeps_the_rest() -> None:
    policy = policy_from_toml(FILE)
    general, qwen, coder = policy.of("llama"), policy.of("qwen2.5-coder"), policy.of("Deep-CODER")
    assert (general.required_steps, qwen.required_steps, coder.required_steps) == ("read_file", (), "read_file")
    assert (general.max_repeats, qwen.max_repeats, coder.max_repeats) == (2, 3, 2)
    assert qwen.terminal_tool == ("commit", "push")
    assert qwen.order[0].at_most == 3
    assert qwen.tools["commit"] == general.tools["commit"]
    assert coder.tools["commit"] == ToolPolicy(errors=("*rejected*",))


def test_the_first_name_that_a_pattern_matches_counts() -> None:
    one, other = ModelPolicy(max_repeats=1), ModelPolicy(max_repeats=9)
    policy = Policy(models=(("gpt*", one), ("q*", other)))
    assert policy.of("gpt-4", "qwen") is one
    assert policy.of("tiny", "qwen") is other
    assert policy.of("tiny") is policy.general


WRONG = """
required_stps = ["a"]
max_repeats = 0
terminal_tool = 3

[[order]]
tool = "x"
at_mst = 3

[[order]]
at_most = "3"

[tools.commit]
effct = "read"
prerequisites = ["a", { tool = "read", match = "path" }]

[tools]
b = 3

[model."qwen*"]
on_text = "acept"
model = {}

[model."qwen*".tools.commit]
grounded = 3
"""

FAULTS = [
    "required_stps: there is no such key",
    "Did you mean required_steps?",
    "max_repeats is 0; it must be a whole number, at least 1",
    "terminal_tool is 3; it must be a string or a list, each a string",
    "[order number 1] at_mst: there is no such key",
    "[order number 2] at_most is '3'",
    "[order number 2] tool: it is missing",
    "[tools.commit] effct: there is no such key",
    "[tools.commit.prerequisites number 2] match: there is no such key",
    "Did you mean match_arg?",
    "[tools.b]: it must be a table",
    "[model.\"qwen*\"] on_text is 'acept'; it must be one of nudge, accept",
    '[model."qwen*"] model: there is no such key',
    '[model."qwen*".tools.commit] grounded is 3',
]


def test_all_faults_of_a_file_are_told_at_once_with_their_tables_and_keys(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(WRONG)
    with pytest.raises(ForgeError) as raised:
        read_policy(file)
    said = str(raised.value)
    assert said.startswith(f"{file} is not a valid policy:\n")
    assert [fault for fault in FAULTS if fault not in said] == [], said
    assert len(said.splitlines()) == 1 + len(FAULTS) - 2


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"a = ", "is no TOML: Invalid value (at "), (b"\xff", "cannot be read"), (b"#" * (1 << 20) + b"#", "bytes")],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "policy.toml"
    file.write_bytes(content)
    with pytest.raises(ForgeError, match=r"policy\.toml") as raised:
        read_policy(file)
    assert said in str(raised.value)
    with pytest.raises(ForgeError, match="No such file"):
        read_policy(tmp_path / "none.toml")
