"""An agent's instructions are a template in which every brace stands for itself."""

from hypothesis import given
from hypothesis import strategies as st

from forge.workflow.checks import fill, literal, placeholders


@given(st.text(st.sampled_from("{}ab_ 1"), max_size=40))
def test_a_literal_text_comes_out_as_it_went_in(text: str) -> None:
    assert fill(literal(text), {}) == text
    assert placeholders(literal(text)) == set()
