"""A scenario: a task with tools, and checks that judge a run. One world per seed."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from msgspec import Struct

from forge.errors import DefinitionError
from forge.workflow.workflow import Workflow
from stages.options import AtLeastOne, OptionError, Options
from stages.state import Ending

RunVerdict = Literal["right", "wrong", "harm", "unfinished", "unjudged"]
"""`harm`: an unwanted change, or one to wrong values. `unjudged`: a check raised an exception."""


class PerformedCall(Struct, frozen=True, kw_only=True):
    """A call that reached its tool: the arguments as passed, and the result or exception.

    `message` is the number of the user message that it was made for, from 0.
    """

    tool: str
    arguments: Mapping[str, object]
    result: object = None
    error: str = ""
    message: int = 0


class Trajectory(Struct, frozen=True, kw_only=True):
    """The result of a run: its outcome, None if it did not finish, and the performed calls, in order.

    `outcomes` has the outcome of each user message so far; `outcome` is the last one.
    """

    outcome: Ending | None
    calls: tuple[PerformedCall, ...] = ()
    outcomes: tuple[Ending, ...] = ()

    def of(self, tool: str) -> tuple[PerformedCall, ...]:
        """The successful calls of that tool."""
        return tuple(call for call in self.calls if call.tool == tool and not call.error)


@dataclass(frozen=True, kw_only=True)
class World:
    """A scenario with the data of one seed: a workflow with fresh tools, the user's messages, and the checks.

    Each message is sent when the run for the previous one has ended. `right` returns what is wrong with a run, `harm`
    which unwanted change was made; empty means nothing. Both are pure functions of their arguments and of the world's
    data.
    """

    workflow: Workflow[Any]
    messages: tuple[str, ...]
    right: Callable[[Trajectory], str]
    harm: Callable[[tuple[PerformedCall, ...]], str] = lambda _: ""

    def __post_init__(self) -> None:
        """TypeError unless the messages are a list or tuple of texts; a single text would be sent letter by letter."""
        given: object = self.messages
        if not (isinstance(given, list | tuple) and given and all(isinstance(one, str) for one in given)):
            raise TypeError("the messages of a World are a tuple of at least one text: write messages=(text,)")


_NAME = re.compile(r"[^\s,](?:[^,\r\n]*[^\s,])?")


class Scenario(Options, frozen=True, kw_only=True):
    """A task for a model, with different data for each seed. DefinitionError for values and names that cannot be.

    `ideal_calls`: model calls of a flawless run. `context_tokens`: the context that it is run with. `not_counted` names
    ablations and players with which even a flawless model could not pass; those are not run. `seeds`: only seeds from 1
    to this number have data of their own; None: any seed.
    """

    name: str
    about: str
    world: Callable[[int], World]
    ideal_calls: AtLeastOne
    tags: frozenset[str] = frozenset()
    context_tokens: AtLeastOne = 8192
    not_counted: frozenset[str] = frozenset()
    seeds: AtLeastOne | None = None

    def has(self, seed: int) -> bool:
        """Whether there is data for the seed."""
        return self.seeds is None or 1 <= seed <= self.seeds

    def __post_init__(self) -> None:
        """DefinitionError for wrong values, with the scenario's name: a file may have dozens."""
        try:
            super().__post_init__()
        except OptionError as error:
            problems = (problem.removeprefix("Scenario: ") for problem in error.problems)
            raise DefinitionError(tuple(f"the scenario {self.name!r}: {one}" for one in problems)) from None

    def contradictions(self, wrong: Collection[str]) -> Iterator[str]:
        """Names that a command line could not select."""
        for field, given in {"name": (self.name,), "tags": self.tags, "not_counted": self.not_counted}.items():
            if field in wrong:
                continue
            for name in given:
                if not (isinstance(name, str) and _NAME.fullmatch(name)):
                    yield (
                        f"{field}: {name!r} is not a valid name: it needs at least one character, no comma or line "
                        "break, and no space at either end"
                    )


class Judgement(Struct, frozen=True):
    """A verdict and, unless it is `right`, the reason."""

    verdict: RunVerdict
    why: str = ""


def judge(world: World, trajectory: Trajectory) -> Judgement:
    """The verdict of the world's checks; harm takes precedence over how the run ended."""
    try:
        if harm := _told(world.harm(trajectory.calls)):
            return Judgement("harm", harm)
        if trajectory.outcome is None:
            return Judgement("unfinished", "the run ended without an outcome")
        wrong = _told(world.right(trajectory))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a user's check: the row says so, and the other runs go on
        return Judgement("unjudged", f"a check raised {type(error).__name__}: {error}")
    return Judgement("wrong", wrong) if wrong else Judgement("right")


def _told(answer: object) -> str:
    """The check's answer. TypeError unless it is a text: `True` and None would be misunderstood."""
    if not isinstance(answer, str):
        raise TypeError(f"it must return what is wrong as a text, empty if nothing is; it returned {answer!r:.100}")
    return answer
