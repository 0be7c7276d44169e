"""Tool choice: a tool is named only where it is the only one and the backend may be told its name."""

import pytest

from stages.wire.wires import ToolChoice, anthropic_choice, openai_choice


@pytest.mark.parametrize(
    ("takes", "tools", "openai", "anthropic"),
    [
        ("named", ("look",), '{"type":"function","function":{"name":"look"}}', '{"type":"tool","name":"look"}'),
        ("named", ("look", "write"), '"required"', '{"type":"any"}'),
        ("required", ("look",), '"required"', '{"type":"any"}'),
    ],
)
def test_the_field(takes: ToolChoice, tools: tuple[str, ...], openai: str, anthropic: str) -> None:
    assert openai_choice(takes, tools).decode() == f'"tool_choice":{openai}'
    assert anthropic_choice(takes, tools).decode() == f'"tool_choice":{anthropic}'
