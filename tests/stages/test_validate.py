"""The stage `validate` by itself."""

import pytest

from stages.effect import Reply
from stages.rules import Rules
from stages.state import Answered, Ready, State, Vetted
from stages.validate import validate
from stages.wire.target import Target
from tests.flows import Desk

CALL = '{"tool": "look", "args": {"what": "a"}}'


@pytest.mark.parametrize(("in_text", "phase"), [(True, Vetted), (False, Ready)])
def test_without_families_only_what_was_asked_for_is_a_call(in_text: bool, phase: type) -> None:
    rules: Rules = Desk().workflow.rules
    stage = validate(rules, Target(mode="prompted" if in_text else "native", families=()))
    after = stage(State(history=(), phase=Answered(reply=Reply(text=CALL)))).unwrap()
    assert isinstance(after.phase, phase)
