"""Templates that want roles to take turns: found out before the first request, and given what they want."""

import json
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from msgspec.structs import replace

from forge.testing import histories
from stages import serialize
from stages.message import History, Tool, User
from stages.state import Folded, Prepared, State
from stages.wire.target import Target
from tests.chat_templates import seen
from tests.property.machine import RULES

WRITE = serialize(RULES, Target(model="model", alternating=True))
PLAIN = "{%- for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
STRICT = """{%- for m in messages if m.role in ['user', 'assistant'] and not m.tool_calls -%}
{%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif -%}
{{ m.content }}{% endfor %}"""
NO_WORD_AFTER_A_TOOL = """{%- for m in messages -%}
{%- if m.role == 'user' and not loop.first and messages[loop.index0 - 1].role == 'tool' -%}
{{ raise_exception('the assistant has the word') }}{% endif %}{{ m.content }}{% endfor %}"""


@pytest.mark.parametrize(
    ("template", "strict"),
    [
        (PLAIN, False),
        (STRICT, True),
        (NO_WORD_AFTER_A_TOOL, True),
        ("{{ raise_exception('never') }}", False),
        ("{% for x in %}", False),
        ("x" * 300_000, False),
    ],
)
def test_a_strict_template_is_known_by_what_it_refuses(template: str, strict: bool) -> None:
    assert seen(template).alternating is strict


def test_the_templates_of_known_models_can_be_asked() -> None:
    lines = (Path(__file__).parents[1] / "data/chat_templates.jsonl").read_text().splitlines()
    for line in lines:
        assert not seen(json.loads(line).get("template", "")).alternating, "none of these is strict"


def roles(state: State) -> list[str]:
    assert isinstance(state.phase, Prepared)
    return [m["role"] for m in msgspec.json.decode(state.phase.request.body)["messages"]]


@given(history=histories())
def test_roles_take_turns_and_a_request_that_extends_is_as_if_written_anew(history: History) -> None:
    state = State(history=())
    warning = User(text="Hurry.")
    for end in [n for n, m in enumerate(history) if n and isinstance(m, User | Tool)]:
        view = history[: end + 1]
        # Between a batch and its last answer no request is made.
        if end + 1 < len(history) and isinstance(history[end + 1], Tool):
            continue
        for shown in (view, (*view, warning)):
            state = WRITE(replace(state, history=view, phase=Folded(view=shown))).unwrap()
            assert state.phase == WRITE(State(history=view, phase=Folded(view=shown))).unwrap().phase
            said = roles(state)
            assert said[-1] in {"user", "tool"}
            pairs = set(pairwise(said))
            assert not pairs & {("user", "user"), ("tool", "user"), ("assistant", "assistant"), ("user", "tool")}
