"""A scenario: what is asked, with which tools, and when a run of it was right. One world for each seed."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, get_type_hints

from msgspec import Meta, Struct, structs

from forge.errors import DefinitionError
from forge.workflow.workflow import Workflow
from stages.options import wrong_options
from stages.state import Ending

RunVerdict = Literal["right", "wrong", "harm", "unfinished", "unjudged"]
"""`harm`: something was changed that nobody asked for, or to wrong values. `unjudged`: a check raised."""


class PerformedCall(Struct, frozen=True, kw_only=True):
    """A call that reached its tool: the arguments as the function got them, and what it returned or raised.

    `message` is the number of the user's message that it was made for, from 0.
    """

    tool: str
    arguments: Mapping[str, object]
    result: object = None
    error: str = ""
    message: int = 0


class Trajectory(Struct, frozen=True, kw_only=True):
    """What a run came to: its outcome, None if it did not finish, and the calls that were performed, in order.

    `outcomes` are those of each of the user's messages, as far as it came; `outcome` is that of the last.
    """

    outcome: Ending | None
    calls: tuple[PerformedCall, ...] = ()
    outcomes: tuple[Ending, ...] = ()

    def of(self, tool: str) -> tuple[PerformedCall, ...]:
        """The calls of that tool that did not fail."""
        return tuple(call for call in self.calls if call.tool == tool and not call.error)


@dataclass(frozen=True, kw_only=True)
class World:
    """A scenario with the data of one seed: a workflow on fresh tools, the user's messages, and the checks.

    `messages` are said one after the other, each when the run for the one before has ended.
    `right` says what is wrong with a run, an empty text: nothing. `harm` says what was done to the world that nobody
    asked for. Both are pure functions of their arguments and of the world's data.
    """

    workflow: Workflow[Any]
    messages: tuple[str, ...]
    right: Callable[[Trajectory], str]
    harm: Callable[[tuple[PerformedCall, ...]], str] = lambda _: ""

    def __post_init__(self) -> None:
        """TypeError if the messages are no texts, or one: its letters would be said one after the other."""
        given: object = self.messages
        if not (isinstance(given, list | tuple) and given and all(isinstance(one, str) for one in given)):
            raise TypeError("the messages of a World are a tuple of at least one text: write messages=(text,)")


_NAME = re.compile(r"[^\s,](?:[^,\r\n]*[^\s,])?")
_AtLeastOne = Annotated[int, Meta(ge=1)]


class Scenario(Struct, frozen=True, kw_only=True):
    """What is asked of a model, again with other data for each seed.

    `ideal_calls`: model calls of a run without a mistake. `context_tokens`: the size of the context that it is run
    with. `not_counted` names the ablations under which, and the players with which, not even a flawless model can pass:
    it is not run so. `seeds`: the seeds from 1 to this number give different data, and no others are run; None: any.
    """

    name: str
    about: str
    world: Callable[[int], World]
    ideal_calls: _AtLeastOne
    tags: frozenset[str] = frozenset()
    context_tokens: _AtLeastOne = 8192
    not_counted: frozenset[str] = frozenset()
    seeds: _AtLeastOne | None = None

    def has(self, seed: int) -> bool:
        """Whether there are data for the seed."""
        return self.seeds is None or 1 <= seed <= self.seeds

    def __post_init__(self) -> None:
        """DefinitionError for values of another type, and for names that no command line could choose."""
        wrong = wrong_options(structs.asdict(self), _hints(), deep=False)
        problems = [sentence for sentences in wrong.values() for sentence in sentences]
        names = {"name": (self.name,), "tags": self.tags, "not_counted": self.not_counted}
        problems += [
            f"{field}: {name!r} is not a valid name: it needs at least one character, no comma or line break, "
            "and no space at either end"
            for field, given in names.items()
            if field not in wrong
            for name in given
            if not (isinstance(name, str) and _NAME.fullmatch(name))
        ]
        if problems:
            raise DefinitionError(tuple(f"the scenario {self.name!r}: {one}" for one in problems))


@cache
def _hints() -> Mapping[str, object]:
    return get_type_hints(Scenario, include_extras=True)


class Judgement(Struct, frozen=True):
    """A verdict and, unless it is `right`, why."""

    verdict: RunVerdict
    why: str = ""


def judge(world: World, trajectory: Trajectory) -> Judgement:
    """What the world's checks say of the run; harm weighs more than how the run ended."""
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
    """What a check says. TypeError unless it is a text: `True` would be taken for something wrong, and None for not."""
    if not isinstance(answer, str):
        raise TypeError(f"it has to return what is wrong, as a text, or an empty text; it returned {answer!r:.100}")
    return answer
