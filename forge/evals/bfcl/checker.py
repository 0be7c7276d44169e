"""BFCL's own checkers, and the functions that its conversations simulate."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from forge.evals.bfcl.child import ask_child
from forge.evals.bfcl.child_program import SimulatedCall

_Object = Mapping[str, object]


class Checker(Struct, frozen=True):
    """The checker of the package in that folder, for questions of one turn."""

    package: Path

    def wrong(self, category: str, functions: Sequence[_Object], calls: Sequence[_Object], answer: object) -> str:
        """What is wrong with the calls, each `{name: arguments}`; empty: nothing."""
        return ask_child(self.package, "calls", category=category, functions=functions, calls=calls, answer=answer)

    def prompt(self, functions: Sequence[_Object]) -> str:
        """The system prompt by which BFCL asks a model that has no tool calls of its own."""
        return ask_child(self.package, "prompt", functions=functions)


class Simulation(Struct, frozen=True, kw_only=True):
    """A conversation's simulated classes. `entry` is it as the package has it, `names` are the functions offered.

    It holds no state: each time a new process makes all calls so far again, which takes no longer than its start.
    """

    package: Path
    entry: Mapping[str, Any]
    names: tuple[str, ...]

    def last_result(self, calls: Sequence[SimulatedCall]) -> str:
        """What the last of these calls returns, as text. ForgeError if it takes too long, or too much memory."""
        return ask_child(self.package, "result", entry=self.entry, names=self.names, calls=calls)

    def wrong(self, turns: Sequence[Sequence[SimulatedCall]], answer: object) -> str:
        """What is wrong with the calls for each message; empty: nothing."""
        return ask_child(self.package, "conversation", entry=self.entry, names=self.names, turns=turns, answer=answer)
