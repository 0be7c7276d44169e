"""Work as a number that is the same on every machine: calls of functions, Python's and C's."""

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Self


class Calls:
    """Those that were `made` since it was entered."""

    made = 0

    def __enter__(self) -> Self:
        # A collection runs finalizers and Hypothesis's callback, and would count them wherever it happens to fall.
        self._collecting = gc.isenabled()
        gc.disable()
        self._before = sys.getprofile()
        sys.setprofile(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self._before)
        if self._collecting:
            gc.enable()

    def _count(self, _frame: FrameType, event: str, _of: object) -> None:
        self.made += event in {"call", "c_call"}


def calls_of(act: Callable[[], object]) -> int:
    """How many calls it takes."""
    with Calls() as calls:
        act()
    return calls.made
