"""The laws of fact stores, tested by many series of operations."""

import asyncio
from collections.abc import Callable
from typing import Literal
from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from forge.agent.memory.protocol import FactStore
from forge.testing.laws import BrokenLawError, try_every, trying
from stages.memory import Fact, ranked

_TEXTS = (
    "Ada drinks tea.",
    "Ada has a DOG",
    "The dog is called Rex",
    "ein Tee für Zürich",
    "我喜欢喝茶",
    "?",
    "x' OR 1=1",
)
_QUERIES = ("", "tea", "the dog", "TEE zurich", "茶", '"dog" OR NEAR(tea*)', "AND", "no match", "'; --", "dog " * 500)


class FactStep(Struct, frozen=True, kw_only=True):
    """One operation on the facts of a space. `number` is the limit of a recall, or which fact to forget."""

    do: Literal["remember", "recall", "forget"]
    space: int
    text: str
    query: str
    number: int


def assert_fact_store_laws(open_store: Callable[[], FactStore], *, max_examples: int = 50) -> None:
    """Try series of operations on the facts of the store; as `assert_session_store_laws`."""
    steps = st.builds(
        FactStep,
        do=st.sampled_from(("remember", "remember", "recall", "recall", "forget")),
        space=st.integers(0, 1),
        text=st.sampled_from(_TEXTS),
        query=st.sampled_from(_QUERIES),
        number=st.integers(0, 5),
    )

    @trying(max_examples)
    @given(steps=st.lists(steps, min_size=1, max_size=15))
    def every_law(steps: list[FactStep]) -> None:
        asyncio.run(_Spaces(open_store).follow(steps))

    try_every(every_law)


class _Spaces:
    """The facts that the store should hold, beside those that it does hold."""

    def __init__(self, open_store: Callable[[], FactStore]) -> None:
        self._open = open_store
        self._prefix = f"{uuid4().hex[:12]} "
        self._kept: dict[str, list[Fact]] = {}
        self._where = ""

    async def follow(self, steps: list[FactStep]) -> None:
        for number, step in enumerate(steps, start=1):
            self._where = f"operation {number} of {len(steps)}: {step}"
            space = f"{self._prefix}{step.space}"
            kept = self._kept.setdefault(space, [])
            match step.do:
                case "remember":
                    self._remember(kept, await self._open().remember(space, step.text), step.text)
                case "recall":
                    found = await self._open().recall(space, step.query, limit=step.number)
                    if found != (wanted := ranked(kept, step.query, len(kept), step.number)):
                        remedy = "hand all facts that share a word to stages.memory.ranked, and what it returns on"
                        raise self._broken("recall finds what ranked does", f"{found}, not {wanted}", remedy)
                case "forget":
                    fact = kept[step.number % len(kept)].id if kept and step.number else -1
                    gone = await self._open().forget(space, fact)
                    if gone != any(one.id == fact for one in kept):
                        raise self._broken(
                            "forget says whether there was one", f"it said {gone}", "return False for none"
                        )
                    self._kept[space] = [one for one in kept if one.id != fact]

    def _broken(self, law: str, found: str, remedy: str) -> BrokenLawError:
        return BrokenLawError(law, found, remedy, self._where)

    def _remember(self, kept: list[Fact], fact: Fact, text: str) -> None:
        if same := next((one for one in kept if one.text == text), None):
            if fact != same:
                raise self._broken("a fact is kept once", f"{fact}, beside {same}", "return the one with the same text")
            return
        others = max((one.id for several in self._kept.values() for one in several), default=0)
        if fact.text != text or fact.id <= others:
            remedy = "give the new fact its text and an id that is higher than all before, in every space"
            raise self._broken("a new fact has its text and a higher id", f"{fact}, after id {others}", remedy)
        kept.append(fact)
