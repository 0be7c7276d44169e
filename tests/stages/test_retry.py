"""The retry policy, as the pure function that it is; and what a server's Retry-After comes to."""

from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.interpreters.http import retry_after
from stages.effect import Fault
from stages.halt import Halt
from stages.retry import MAX_HOPS, Backoff, Tries, another_model_may_help, refused_hop

LOADING = Fault(kind="status", detail="", status=503, body='{"error":{"message":"Loading model","code":503}}')
BUSY = Fault(kind="status", detail="", status=503, body='{"error":{"message":"no slot available","code":503}}')
STUCK = Fault(kind="status", detail="", status=500, body='{"error":{"code":500,"message":"Failed to parse"}}')


def waits(*faults: Fault, policy: Backoff | None = None, chance: float = 1.0) -> list[float | None]:
    """What the policy says after each fault, until it gives up."""
    said: list[float | None] = []
    for end in range(1, len(faults) + 1):
        waited = sum(wait for wait in said if wait is not None)
        said.append((policy or Backoff())(Tries(faults=faults[:end], waited=waited, chance=chance)))
        if said[-1] is None:
            break
    return said


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault(kind="unreachable", detail=""), [0.5, 1.0, 2.0, None]),
        (BUSY, [0.5, 1.0, 2.0, None]),
        (STUCK, [0.5, None]),
        (Fault(kind="reported", detail="", status=529), [0.5, 1.0, 2.0, None]),
        (Fault(kind="reported", detail=""), [0.5, None]),
        (Fault(kind="reported", detail="", status=400), [None]),
        (Fault(kind="timeout", detail=""), [None]),
        (Fault(kind="status", detail="", status=429, retry_after=7.0), [7.5, 7.5, 7.5, None]),
        (Fault(kind="status", detail="", status=429, retry_after=61.0), [None]),
        (Fault(kind="status", detail="", status=429, retriable=False), [None]),
        (Fault(kind="status", detail="", status=400, retriable=True), [0.5, 1.0, 2.0, None]),
        (Fault(kind="no_tools", detail="", status=400, retriable=True), [None]),
    ],
)
def test_the_same_fault_again_and_again(fault: Fault, expected: list[float | None]) -> None:
    assert waits(*[fault] * 9) == expected


def test_another_500_is_another_matter() -> None:
    other = Fault(kind="status", detail="", status=500, body='{"error":{"code":500,"message":"Compute error"}}')
    assert waits(STUCK, other, STUCK, other) == [0.5, 1.0, 2.0, None]


def test_a_model_that_loads_is_waited_for_and_costs_no_attempt() -> None:
    long = [LOADING] * 30
    assert None not in waits(*long)
    assert waits(*long, BUSY, BUSY, BUSY, BUSY)[30:] == [0.5, 1.0, 2.0, None]


def test_a_model_that_never_loads_is_given_up_in_time() -> None:
    said = waits(*[LOADING] * 100)
    assert said[-1] is None
    assert 300 < sum(wait for wait in said if wait) <= 420


def test_chance_shortens_a_wait_to_no_less_than_half() -> None:
    assert waits(BUSY, BUSY, chance=0.0) == [0.25, 0.5]
    assert waits(Fault(kind="status", detail="", status=429, retry_after=7.0), chance=0.0) == [7.0]


@given(st.lists(st.builds(Fault), min_size=1), st.floats(0, 1), st.builds(Backoff, attempts=st.integers(1, 9)))
def test_waiting_is_bounded_whatever_comes(faults: list[Fault], chance: float, policy: Backoff) -> None:
    waited = 0.0
    for end in range(1, len(faults) + 1):
        wait = policy(Tries(faults=tuple(faults[:end]), waited=waited, chance=chance))
        if wait is None:
            return
        assert wait >= 0
        waited += wait
    assert waited <= policy.total + policy.loading


def test_it_is_over_in_the_end() -> None:
    policy = Backoff(attempts=3)
    faults: tuple[Fault, ...] = ()
    while not faults or policy(Tries(faults=faults)) is not None:
        faults = (*faults, BUSY)
    assert len(faults) == 3


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": " 2.5 "}, 2.5),
        ({"retry-after": "3", "retry-after-ms": "1200"}, 1.2),
        ({"retry-after": "Sun, 09 Sep 2001 01:46:50 GMT"}, 10.0),
        ({"retry-after": "Sun, 09 Sep 2001 01:46:50 GMT", "date": "Sun, 09 Sep 2001 01:46:45 GMT"}, 5.0),
        ({"retry-after": "Sun, 09 Sep 2001 01:00:00 GMT"}, 0.0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e9"}, None),
        ({"retry-after": "9" * 5000}, None),
        ({"retry-after": "Sun, 99 Sep 99999 01:00:00 GMT"}, None),
        ({"retry-after": "²"}, None),
        ({"retry-after-ms": "soon", "retry-after": "4"}, 4.0),
    ],
)
def test_what_a_server_asks_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=1_000_000_000) == seconds


@given(st.text(max_size=60) | st.from_regex(r"[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} \w{0,4}"))
def test_any_header_is_read_or_left(text: str) -> None:
    seconds = retry_after({"retry-after": text, "date": text}, now=0.0)
    assert seconds is None or seconds >= 0


# --- Hops: a message is handed over a bounded number of times, and never back and forth

AGENTS = ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("path", "to", "said"),
    [
        ("a", "b", ""),
        ("aba", "c", ""),
        ("aba", "b", "second time"),
        ("a", "a", "itself"),
        ("a", "x", "not one of the agents: a, b, c, d"),
    ],
)
def test_who_may_hand_over_to_whom(path: str, to: str, said: str) -> None:
    refused = refused_hop(path, to, AGENTS)
    assert said in refused
    assert bool(said) == bool(refused)


@given(st.lists(st.sampled_from(AGENTS), min_size=1, max_size=60), st.integers(0, MAX_HOPS))
def test_a_message_comes_to_rest(wishes: list[str], most: int) -> None:
    path = wishes[:1]
    for to in wishes[1:]:
        if not refused_hop(path, to, AGENTS, most):
            path.append(to)
    pairs = [*pairwise(path)]
    assert len(pairs) <= most
    assert len(pairs) == len({*pairs})


# --- Fallback: for which halts another model is asked

HELPED = {"BackendFailed", "BadReplies", "CannotFit", "PrerequisitesSkipped", "StepsSkipped", "ToolsFailing"}


@given(st.sampled_from(get_args(Halt)).flatmap(st.from_type))
def test_another_model_is_asked_where_it_was_this_one_that_failed(halt: Halt) -> None:
    assert another_model_may_help(halt) == (type(halt).__name__ in HELPED)
