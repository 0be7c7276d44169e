"""Example forms: what a refused value becomes, and which are left as they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge import Workflow, run_sync, tool
from forge.errors import ToolResolutionError
from forge.interpreters.scripted import Scripted, call
from stages.offer import in_the_form_of


@pytest.mark.parametrize(
    ("example", "value", "written"),
    [
        ("0007", "19", "0019"),
        ("2023-05-01", "2024/3/7", "2024-03-07"),
        ("09:05", "8.30", "08:30"),
        ("EUR", "usd", "USD"),
        ("A-17", "b18", "B-18"),
        ("A-17", "\N{LATIN SMALL LETTER DOTLESS I}18", "\N{LATIN SMALL LETTER DOTLESS I}-18"),
        ("inv_0007", "INV-123", "inv_0123"),
    ],
)
def test_it_has_the_parts_of_the_value_and_the_form_of_the_example(example: str, value: str, written: str) -> None:
    assert in_the_form_of(example, value) == written


@pytest.mark.parametrize(
    ("example", "value"),
    [
        ("0007", "0019"),
        ("0007", "12345"),
        ("0007", "-19"),
        ("0007", "19 %"),
        ("0007", "nineteen"),
        ("1234", "19"),
        ("INV-0007", "7"),
        ("0.05", "1.5"),
        ("that", "Those"),
        ("2023-12-24", "2024-3-7"),
        ("0007", ""),
    ],
    ids=lambda text: text or "nothing",
)
def test_what_could_be_another_value_is_left_alone(example: str, value: str) -> None:
    assert in_the_form_of(example, value) is None


@given(example=st.text(max_size=60), value=st.text(max_size=80))
def test_nothing_but_zeros_and_signs_is_added_and_nothing_is_lost(example: str, value: str) -> None:
    written = in_the_form_of(example, value)
    if written is not None:
        assert _content(written) == _content(value)


def _content(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold().replace("0", "")


@tool(effect="read")
def fetch(count: str) -> str:
    """Fetch records."""
    if len(count) != 4:
        raise ToolResolutionError(f"count must have four digits, such as '0007'; got {count!r}")
    return f"{count} records"


@tool
def finish(text: str) -> str:
    """End."""
    return text


def test_a_model_whose_value_was_refused_is_held_to_its_proper_form() -> None:
    workflow = Workflow("records", tools=[fetch, finish], terminal_tool="finish", required_steps=["fetch"])
    wrong = call("fetch", count="29")
    model = Scripted([wrong, call("fetch", count="0029"), call("finish", text="29")], mode="constrained")
    assert run_sync(workflow, "Fetch 29 records.", backend=model).unwrap().value == "29"
    assert [request.count(b'"0029"') for request in model.requests][:2] == [0, 1]
