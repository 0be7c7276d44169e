"""Followed: a journal's effects, compared one by one with those of a replay."""

from forge.journal.difference import Difference, differences
from forge.journal.marks import MARK
from forge.journal.records import Journal, shortened
from stages.effect import Effect, Request, Send


class Followed:
    """Compares each effect by what it adds to the previous one, so that a run takes time linear in its journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._asked = journal.asked()
        self._hidden = MARK if journal.header.redacted else None
        self._number = 0
        self._before = Request()

    def differences(self, effect: Effect) -> tuple[Difference, ...]:
        """How the run's next effect differs from the recorded one; empty after the end of the journal."""
        number, self._number = self._number, self._number + 1
        if number >= len(self._asked):
            return ()
        recorded, now = self._asked[number], shortened(effect, self._before)
        self._before = effect.request if isinstance(effect, Send) else self._before
        if recorded == now or not differences(recorded, now, self._hidden):
            return ()
        return differences(self._journal.effect(number), effect, self._hidden)
