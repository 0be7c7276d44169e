"""Functions of users that cannot be asked as forge asks them are told in a sentence, before they are called."""

from collections.abc import Callable
from functools import partial

import pytest

from stages.options import unfit_function


async def slow(state: object, calls: object) -> None: ...


class Slow:
    async def __call__(self, state: object, calls: object) -> None: ...


def one(calls: object) -> None: ...


def three(state: object, calls: object, more: object) -> None: ...


def named(state: object, calls: object, *, strict: bool) -> None: ...


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (slow, "slow is async; it is asked for its answer at once, so define it with `def`"),
        (Slow(), "Slow is async; "),
        (one, "one cannot be called as one(state, calls): too many positional arguments"),
        (named, "named cannot be called as named(state, calls): missing a required "),
        (partial(one, None), "partial cannot be called as partial(state, calls): too many"),
    ],
)
def test_what_cannot_be_asked(given: Callable[..., object], says: str) -> None:
    assert (unfit_function(given, "state", "calls") or "").startswith(says)


@pytest.mark.parametrize("given", [lambda state, calls: [], lambda *_: [], partial(three, more=1), max])
def test_what_can(given: Callable[..., object]) -> None:
    assert unfit_function(given, "state", "calls") is None
