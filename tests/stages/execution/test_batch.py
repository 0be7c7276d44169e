"""The planner: which calls run together, and in what order, whatever the model made of a reply."""

from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from stages.effect import CallResult, Failed, Succeeded
from stages.execution import (
    batch_record,
    idempotency_key,
    next_group,
    terminal_success,
    unanswered_calls,
    without_terminal,
)
from stages.message import Assistant, Tool, ToolCall
from stages.state import Batch
from stages.tool import ToolEffect, ToolSpec

EFFECTS: dict[str, ToolEffect] = {"read": "read", "slow": "read", "write": "write", "end": "terminal"}
SPECS = {
    name: ToolSpec(name=name, description="", parameters=Raw(b"{}"), effect=effect, max_parallel={"slow": 2}.get(name))
    for name, effect in EFFECTS.items()
}


def batch(*names: str) -> Batch:
    return Batch(
        said=Assistant(
            calls=tuple(ToolCall(id=f"{n} {name}", name=name, arguments="{}") for n, name in enumerate(names))
        )
    )


def fine(call: ToolCall) -> CallResult:
    return Succeeded(call_id=call.id, text="fine")


def broken(call: ToolCall) -> CallResult:
    return Failed(call_id=call.id, error="ValueError", message="broken")


def plan(underway: Batch, at_once: int = 4, bad: frozenset[str] = frozenset()) -> list[list[str]]:
    """The groups in which the calls run, one after the other; those named in `bad` fail."""
    groups = []
    while left := unanswered_calls(underway := without_terminal(underway, SPECS)):
        group = next_group(unanswered_calls(underway), SPECS, at_once)
        assert {*group} <= {*left}
        groups.append([call.name for call in group])
        came = tuple(broken(call) if call.name in bad else fine(call) for call in group)
        underway = replace(underway, results=underway.results + came)
    return groups


@pytest.mark.parametrize(
    ("calls", "groups"),
    [
        ("read", "read"),
        ("read read read", "read+read+read"),
        ("read read read read read", "read+read+read+read read"),
        ("write write", "write write"),
        ("read write read read write", "read write read+read write"),
        ("end read write", "read write end"),
        ("read end read", "read+read end"),
        ("slow slow slow read", "slow+slow slow+read"),
        ("slow read slow slow", "slow+read+slow slow"),
        ("stranger read", "stranger read"),
        ("end end", "end"),
    ],
)
def test_the_groups_in_which_calls_run(calls: str, groups: str) -> None:
    assert plan(batch(*calls.split())) == [group.split("+") for group in groups.split()]


names = st.lists(st.sampled_from(sorted(EFFECTS)), min_size=1, max_size=12)


@given(names, st.integers(1, 5), st.sets(st.sampled_from(sorted(EFFECTS))))
def test_what_every_plan_keeps_to(calls: list[str], at_once: int, bad: set[str]) -> None:
    groups = plan(batch(*calls), at_once, frozenset(bad))
    ran = [name for group in groups for name in group]
    assert all(len(group) <= at_once and group.count("slow") <= 2 for group in groups)
    assert all(len(group) == 1 or all(EFFECTS[name] == "read" for name in group) for group in groups)
    lasting = [name for name in calls if name != "end"]
    assert [name for name in ran if name != "end"] == lasting, "each once, in the order of the calls"
    if "end" in ran:
        assert not bad & {*lasting}
        assert ran.index("end") == len(lasting), "terminal last"
    widest = max((len([*run]) for read, run in groupby(lasting, lambda n: n == "read") if read), default=0)
    assert max(map(len, groups), default=0) >= min(widest, at_once), "neighbouring reads do run together"


@given(st.permutations(range(4)))
def test_history_keeps_the_order_of_the_calls_whatever_comes_back_first(order: list[int]) -> None:
    made = batch("read", "write", "slow", "end")
    came = replace(made, results=tuple(fine(made.calls[n]) for n in order))
    assert [m.name for m in batch_record(came).messages if isinstance(m, Tool)] == ["read", "write", "slow", "end"]
    assert terminal_success(came, SPECS) == ("end", fine(made.calls[3]))


parts = st.tuples(st.sampled_from(["", "r", "r1"]), st.sampled_from(["1", "11"]), st.sampled_from(["w", "1w"]))


@given(parts, parts)
def test_idempotency_keys_are_equal_for_equal_calls_only(one: tuple[str, str, str], two: tuple[str, str, str]) -> None:
    first, second = (
        idempotency_key(run, ToolCall(id=number, name=name, arguments='{"a":1}')) for run, number, name in (one, two)
    )
    assert (first == second) == (one == two)
