"""Tools as data: which calls may simply be made again."""

import pytest
from msgspec import Raw

from stages.tool import ToolEffect, ToolSpec


@pytest.mark.parametrize(
    ("effect", "idempotent", "retriable"),
    [("read", False, True), ("write", False, False), ("write", True, True), ("terminal", False, False)],
)
def test_only_what_is_safe_to_repeat_is_repeated(effect: ToolEffect, *, idempotent: bool, retriable: bool) -> None:
    tool = ToolSpec(name="t", description="", parameters=Raw(b"{}"), effect=effect, idempotent=idempotent)
    assert tool.retriable == retriable


def test_a_tool_of_which_nothing_is_said_is_treated_with_care() -> None:
    tool = ToolSpec(name="t", description="", parameters=Raw(b"{}"))
    assert (tool.effect, tool.retriable, tool.repeatable) == ("write", False, False)
