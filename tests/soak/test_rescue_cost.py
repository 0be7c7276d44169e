"""Calls of every format, damaged ones too, over and over, on one line and on many: the time grows with the length."""

import time
from collections.abc import Mapping

import pytest

from stages.rescue import rescue
from tests.stages.rescue import test_fresh, test_shapes
from tests.stages.rescue.test_cost import work
from tests.stages.rescue.test_shapes import Case

KNOWN: Mapping[str, tuple[str, ...]] = {
    **{name: tuple(given) for name, given in test_fresh.TWELFTH.items()},
    **{name: tuple(given) for name, given in test_shapes.PARAMETERS.items()},
    **{name: tuple(given) for name, given in test_fresh.PARAMETERS.items()},
}
CASES = [case for case in (*test_fresh.CASES, *test_shapes.CASES) if case.calls]


def _pumped(case: Case, joint: str, length: int) -> str:
    call = (case.text if joint == "\n" else case.text.replace("\n", " ")) + joint
    return call * (length // len(call) + 1)


def _least(text: str) -> float:
    """Seconds of processor time, the least of three times."""
    taken: list[float] = []
    for _ in range(3):
        begun = time.process_time()
        rescue(text, KNOWN)
        taken.append(time.process_time() - begun)
    return min(taken)


@pytest.mark.parametrize("joint", ["", " ", "\n"], ids=["glued", "one line", "many lines"])
def test_the_time_of_repeated_calls_grows_with_their_number(joint: str) -> None:
    """Five times the text: a time that grew with its square would be twenty-five times as much."""
    times = ((case.id, _least(_pumped(case, joint, 8_000)), _least(_pumped(case, joint, 40_000))) for case in CASES)
    assert [(name, short, long) for name, short, long in times if long > 10 * short + 0.05] == []


@pytest.mark.parametrize("joint", [" ", "\n"], ids=["one line", "many lines"])
def test_so_does_the_work_as_it_is_counted(joint: str) -> None:
    counted = (
        (case.id, work(_pumped(case, joint, 2_000), KNOWN), work(_pumped(case, joint, 10_000), KNOWN)) for case in CASES
    )
    assert [(name, short, long) for name, short, long in counted if long > 8 * short + 5_000] == []
