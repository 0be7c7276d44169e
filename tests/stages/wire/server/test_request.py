"""Custom tools: a text goes to the model as one argument and comes back as a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.wire.server.request import as_arguments, input_text


@given(st.text())
def test_a_text_comes_back_as_it_was(text: str) -> None:
    assert input_text(as_arguments(text)) == text


@pytest.mark.parametrize("arguments", ["SELECT 1", "", "[" * 1_000])
def test_what_a_model_wrote_in_another_form_is_taken_as_the_text(arguments: str) -> None:
    assert input_text(arguments) == arguments
