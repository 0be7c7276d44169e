"""Every noun is a value: it survives JSON, and it cannot be changed."""

import ast
import re
from ast import unparse
from decimal import Decimal
from pathlib import Path
from typing import get_type_hints

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages import events
from stages.compaction import Compacted, ContextBudget, Meter
from stages.confidence.measure import AskLarger, AskPerson, StopRun, ThinkFirst, Vote, WhenUnsure
from stages.effect import Budget, CallResult, Effect, Fault, Outcome, RawCall, Reply
from stages.halt import Halt
from stages.message import Message
from stages.objection import Objection
from stages.retry import Backoff
from stages.rules import Rules
from stages.state import Ledger, Phase
from stages.tool import ToolSpec

ROOT = Path(__file__).parents[2]
OPEN_FIELD = re.compile(r"^\s+\w+: (dict|list|set)\b", re.MULTILINE)

# Its ranges are written in msgspec's way, which Hypothesis does not read.
st.register_type_strategy(
    ContextBudget,
    st.builds(
        ContextBudget,
        tokens=st.integers(0, 2**60),
        threshold=st.floats(0, 1),
        low=st.floats(0, 1),
        meter=st.builds(Meter, overhead=st.integers(0, 2**60), sizes=st.none() | st.lists(st.integers()).map(tuple)),
    ),
)
# JSON has no number that is none.
st.register_type_strategy(Decimal, st.decimals(allow_nan=False, allow_infinity=False))
_STEPS = st.sampled_from([ThinkFirst(), Vote(samples=5, temperature=1.0), AskLarger(), AskPerson(), StopRun()])
st.register_type_strategy(
    WhenUnsure,
    st.builds(
        WhenUnsure, below=st.floats(0, 1), then=_STEPS | st.lists(_STEPS).map(tuple), max_calls=st.integers(0, 2**60)
    ),
)
_RANGES = {
    "timeout": st.none() | st.floats(0.01, 1e9),
    "idle_timeout": st.none() | st.floats(0.01, 1e9),
    "max_parallel": st.none() | st.integers(1, 2**60),
    "result_limit": st.integers(1, 2**60),
}
_FIELDS = {name: st.from_type(hint) for name, hint in get_type_hints(ToolSpec).items()}
st.register_type_strategy(ToolSpec, st.builds(ToolSpec, **(_FIELDS | _RANGES)))
# A user's own functions are no data; rules without them are.
st.register_type_strategy(Rules, st.builds(Rules, checks=st.just({})))

NOUNS: list[object] = [
    *(Message, ToolSpec, Rules, Effect, Outcome, CallResult, RawCall, Reply, Fault, Halt, Objection, Budget, Ledger),
    *(Phase, events.Event, ContextBudget, Compacted, Backoff),
]
"""The parts of a state; what is saved of the whole is in test_saved_laws."""


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: str(getattr(noun, "__name__", noun))[:30])
@settings(max_examples=settings().max_examples // 2)
@given(data=st.data())
def test_it_survives_json(noun: type[object], data: st.DataObject) -> None:
    value = data.draw(st.from_type(noun))
    written = msgspec.json.encode(value, order="deterministic")  # a set has no order
    assert msgspec.json.encode(msgspec.json.decode(written, type=noun), order="deterministic") == written


def test_what_is_frozen_holds_nothing_that_can_be_changed() -> None:
    """A type checker refuses to write to a tuple or a Mapping; it would let a dict behind a frozen field be changed."""
    open_fields = [
        f"{path.relative_to(ROOT)}: {value.name}.{unparse(field.target)}: {kind}"
        for path in (*ROOT.glob("stages/**/*.py"), *ROOT.glob("forge/**/*.py"))
        if OPEN_FIELD.search(text := path.read_text())
        for value in ast.walk(ast.parse(text))
        if isinstance(value, ast.ClassDef) and any(unparse(option) == "frozen=True" for option in value.keywords)
        for field in value.body
        if isinstance(field, ast.AnnAssign) and (kind := unparse(field.annotation)).startswith(("dict", "list", "set"))
    ]
    assert open_fields == []
