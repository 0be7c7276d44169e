"""Fallback: for which halts another model is asked."""

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from stages.halt import Halt
from stages.retry import another_model_may_help

HELPED = {"BackendFailed", "BadReplies", "CannotFit", "PrerequisitesSkipped", "StepsSkipped", "ToolsFailing"}


@given(st.sampled_from(get_args(Halt)).flatmap(st.from_type))
def test_another_model_is_asked_where_it_was_this_one_that_failed(halt: Halt) -> None:
    assert another_model_may_help(halt) == (type(halt).__name__ in HELPED)
