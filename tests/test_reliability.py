"""What the reliability benchmark counts as right, and its statistics."""

import pytest

from benchmarks.reliability.report import mcnemar, wilson
from benchmarks.reliability.tasks import TASKS


@pytest.mark.parametrize("name", TASKS)
def test_the_right_values_are_right_and_others_wrong(name: str) -> None:
    assert TASKS[name](3).verdict == "unfinished"
    task = TASKS[name](3)
    task.end(**task.right)
    assert task.verdict == "right"
    task.end(invented="later")
    assert task.verdict == "right"
    other = TASKS[name](3)
    other.end(**dict.fromkeys(other.right, "invented"))
    assert other.verdict == "wrong"


@pytest.mark.parametrize("name", TASKS)
def test_a_seed_makes_the_data_and_another_one_others(name: str) -> None:
    assert TASKS[name](3).right == TASKS[name](3).right
    assert len({str(TASKS[name](seed).right) for seed in range(20)}) > 5


def test_harm_is_wrong_whatever_is_sent() -> None:
    task = TASKS["distractors"](1)
    next(tool for tool in task.tools if tool.name == "cancel_order").function(order_id="A-1")
    task.end(**task.right)
    assert task.verdict == "wrong"


def test_the_ten_boxes_lead_to_the_word() -> None:
    task = TASKS["chain"](7)
    code, opened = task.message.split()[6].rstrip(":"), []
    while True:
        found = task.tools[0].function(code=code)
        assert isinstance(found, dict)
        opened.append(code)
        if "secret_word" in found:
            break
        code = found["next_box"]
    assert (len(opened), found["secret_word"]) == (10, task.right["word"])


@pytest.mark.parametrize(("one", "other", "p"), [(0, 0, 1.0), (0, 6, 0.03125), (3, 3, 1.0), (1, 9, 0.021484375)])
def test_mcnemar(one: int, other: int, p: float) -> None:
    assert mcnemar(one, other) == mcnemar(other, one) == pytest.approx(p)


def test_wilson() -> None:
    assert wilson(20, 20) == pytest.approx((0.8389, 1.0), abs=1e-3)
    assert wilson(10, 20) == pytest.approx((0.2993, 0.7007), abs=1e-3)
