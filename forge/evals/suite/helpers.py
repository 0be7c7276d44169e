"""Building blocks of scenarios: random data, declared tools, checks as values."""

import inspect
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import isclose
from typing import Protocol, TypeVar, Unpack

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from forge import ToolResolutionError, tool
from forge.evals.scenario import PerformedCall, Scenario, Trajectory, World
from forge.tools.definition import Tool
from forge.workflow.checks import OnText
from forge.workflow.workflow import TurnOptions, Workflow
from stages.effect import Said
from stages.state import Completed
from stages.tool import Prerequisite

_T = TypeVar("_T")

# Decorators that make scenarios from world functions and name them after these.


def scenario(
    about: str,
    *,
    ideal_calls: int,
    tags: set[str],
    context_tokens: int = 4096,
    not_counted: frozenset[str] = frozenset(),
) -> Callable[[Callable[[int], World]], Scenario]:
    """Makes a scenario of a function from a seed to a world."""

    def made(world: Callable[[int], World]) -> Scenario:
        return Scenario(
            name=world.__name__,
            about=about,
            world=world,
            ideal_calls=ideal_calls,
            tags=frozenset(tags),
            context_tokens=context_tokens,
            not_counted=not_counted,
        )

    return made


class _Twin(Protocol):
    __name__: str

    def __call__(self, seed: int, *, stateful: bool) -> World: ...


def twins(
    about: str,
    *,
    ideal_calls: int,
    tags: set[str],
    not_counted: frozenset[str] = frozenset(),
) -> Callable[[_Twin], tuple[Scenario, Scenario]]:
    """Makes two scenarios of the function, `NAME` and `NAME_stateful`.

    The tools of the first return the same for any arguments; those of the second look the arguments up, have entries
    that nobody asked about, and its check also looks at the calls.
    """

    def made(world: _Twin) -> tuple[Scenario, Scenario]:
        static = Scenario(
            name=world.__name__,
            about=about,
            world=partial(world, stateful=False),
            ideal_calls=ideal_calls,
            tags=frozenset({"seeds", *tags}),
            not_counted=not_counted,
        )
        stateful = replace(
            static,
            name=f"{static.name}_stateful",
            about=f"{about}; what was looked up is checked too",
            world=partial(world, stateful=True),
            tags=frozenset({"stateful", *static.tags}),
        )
        return static, stateful

    return made


def world(
    name: str,
    *messages: str,
    tools: Sequence[Callable[..., object]],
    right: "Check",
    harm: "Harm" = lambda _: "",
    on_text: OnText = "nudge",
    system_prompt: str = "You are a careful assistant. Use the tools to do what the user asks.",
    **options: Unpack[TurnOptions],
) -> World:
    """A world with these user messages and a workflow of that name, with these tools and options."""
    flow = Workflow(name, tools=tools, on_text=on_text, system_prompt=system_prompt, **options)
    return World(workflow=flow, messages=messages, right=right, harm=harm)


# Random data: ids, names, amounts. The same seed gives the same data, and ids are unique.

CITIES = ("Lisbon", "Oslo", "Kyoto", "Ghent", "Turin", "Quito", "Bergen", "Leeds", "Porto", "Riga", "Cusco", "Perth")
FIRST_NAMES = ("Alma", "Bruno", "Clara", "Dario", "Elif", "Femi", "Greta", "Hugo", "Ines", "Jonas", "Kira", "Luis")
FAMILY_NAMES = ("Abara", "Bergstrom", "Castell", "Dubrov", "Eklund", "Farouk", "Gallo", "Hartwig", "Ibsen", "Juarez")

PRODUCTS = (
    *("Kestrel lamp", "Marlow kettle", "Tundra jacket", "Osprey tent", "Cobalt drill", "Juniper desk"),
    *("Halden radio", "Pinto backpack", "Corvo printer", "Selkie wetsuit", "Argyle heater", "Lumen projector"),
)

MEDICINES = ("Velaprin", "Dorvastin", "Quenolol", "Maridex", "Tanoxil", "Serulane")
"""Fictitious medicines that no model knows."""


class Draw(random.Random):
    """A source of random data with unique ids and names."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._given: set[str] = set()

    def id(self, prefix: str, digits: int = 4) -> str:
        """A new id such as `C-4821`."""
        while (made := f"{prefix}{self.randrange(10 ** (digits - 1), 10**digits)}") in self._given:
            pass
        self._given.add(made)
        return made

    def amount(self, low: int, high: int) -> float:
        """An amount of money; the cents are never zero."""
        return self.randrange(low, high) + self.randrange(11, 99) / 100

    def person(self) -> str:
        """A new name, first and family."""
        while (made := f"{self.choice(FIRST_NAMES)} {self.choice(FAMILY_NAMES)}") in self._given:
            pass
        self._given.add(made)
        return made


# Tools. Most are declared: `lookup` reads an entry of a table, `fixed` always reads the same, `action` only says that
# it was done. A tool with a rule of its own is a function.

read = tool(effect="read")
"""Makes a read-only tool of a function."""


def found(register: Mapping[str, _T], key: str, what: str) -> _T:
    """The entry with this key, ignoring case. ToolResolutionError, shown to the model, if there is none."""
    for name, entry in register.items():
        if name.casefold() == key.strip().casefold():
            return entry
    raise ToolResolutionError(f"There is no {what} {key!r}.")


class Known(Struct, frozen=True):
    """A text argument that must be one of these keys, ignoring case."""

    what: str
    keys: Iterable[str]
    about: str = ""


def lookup(
    name: str,
    about: str,
    described: str = "",
    /,
    *,
    what: str = "",
    after: Sequence[str] = (),
    lenient: bool = False,
    **by: Mapping[str, object],
) -> Tool[..., object]:
    """A tool that reads an entry of a table; `order_id={"A-1": …}` names the argument and holds the table.

    `described` is the argument's description. `what` is what errors call an entry, by default the argument's name
    without `_id`. `lenient`: return the first entry for any key.
    """
    ((argument, entries),) = by.items()

    def run(given: Mapping[str, object]) -> object:
        if lenient:
            return next(iter(entries.values()))
        return found(entries, str(given[argument]), what or argument.removesuffix("_id"))

    return tool(effect="read", prerequisites=after)(declared(name, about, {argument: (str, described)}, run))


def fixed(name: str, about: str, reply: object, /, **arguments: object) -> Tool[..., object]:
    """A tool that reads: it returns `reply`, with `{argument}` in its texts replaced by the given value."""
    return read(declared(name, about, arguments, lambda given: _filled(reply, given)))


def _filled(reply: object, given: Mapping[str, object]) -> object:
    match reply:
        case str():
            return reply.format(**given)
        case list():
            return [_filled(one, given) for one in reply]
        case dict():
            return {name: _filled(one, given) for name, one in reply.items()}
        case _:
            return reply


def action(
    name: str, about: str, reply: str, /, *, after: Sequence[str | Prerequisite] = (), **arguments: object
) -> Tool[..., object]:
    """A tool that writes: it returns `reply`, with `{argument}` replaced by the given value.

    An argument is declared by its type, by type and description, or as `Known`.
    """

    def run(given: Mapping[str, object]) -> object:
        for argument, declared in arguments.items():
            if isinstance(declared, Known):
                found(dict.fromkeys(declared.keys), str(given[argument]), declared.what)
        return reply.format(**given)

    return tool(prerequisites=after)(declared(name, about, arguments, run))


def declared(
    name: str, about: str, arguments: Mapping[str, object], run: Callable[[Mapping[str, object]], object]
) -> Callable[..., object]:
    """A function with that signature and docstring, as if written out."""

    def function(**given: object) -> object:
        return run(given)

    typed = {argument: _typed(declared) for argument, declared in arguments.items()}
    described = [f"    {argument}: {text}" for argument, (_, text) in typed.items() if text]
    function.__name__ = name
    function.__doc__ = "\n".join([about, *(["", "Args:", *described] if described else [])])
    kind = inspect.Parameter.KEYWORD_ONLY
    function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(argument, kind, annotation=hint) for argument, (hint, _) in typed.items()]
    )
    return function


def _typed(declared: object) -> tuple[object, str]:
    """The type and the description of an argument."""
    match declared:
        case Known(about=about):
            return str, about
        case (hint, str(about)):
            return hint, about
        case hint:
            return hint, ""


# Checks, as values: `right=every(…)` and `harm=…` of a World. Values are compared by value, facts are found in a text
# as whole words and numbers. Each returns what is wrong; empty if nothing is.

Check = Callable[[Trajectory], str]
Harm = Callable[[tuple[PerformedCall, ...]], str]

Fact = str | float
"""One or more words, matched literally; or a number, matched by value."""

_Facts = Sequence[Fact | tuple[Fact, ...]]
"""Facts that a text must contain; one element of a tuple is enough."""

_NUMBER = re.compile(r"(?<![A-Za-z]-)(?<![A-Za-z\d.])\d[\d,]*(?:\.\d+)?")


def every(*checks: Check) -> Check:
    """The first problem that any of the checks finds."""
    return lambda trajectory: first_of(*[check(trajectory) for check in checks])


def sent(tool: str, **wanted: object) -> Check:
    """The last call of the tool had these values."""

    def check(trajectory: Trajectory) -> str:
        made = last_call(trajectory, tool)
        return _differing(made, wanted) if made else f"{tool} was not called"

    return check


def called(tool: str, otherwise: str) -> Check:
    """The tool was called."""
    return lambda trajectory: "" if trajectory.of(tool) else otherwise


def looked_up(tool: str, **wanted: object) -> Check:
    """One of the calls of the tool had these values."""

    def check(trajectory: Trajectory) -> str:
        if any(not _differing(call, wanted) for call in trajectory.of(tool)):
            return ""
        return f"{tool} was not asked for {', '.join(map(str, wanted.values()))}"

    return check


def wrote(tool: str, argument: str, facts: _Facts, never: Sequence[Fact] = ()) -> Check:
    """The text in the tool's last call contains the facts and none of the wrong ones."""
    return lambda trajectory: told(written(trajectory, tool, argument), facts, never)


def answered(facts: _Facts, never: Sequence[Fact] = ()) -> Check:
    """The answer to the user contains the facts and none of the wrong ones."""
    return lambda trajectory: told(answer(trajectory), facts, never)


def unused(*tools: str) -> Harm:
    """None of the tools ran."""

    def harm(calls: Sequence[PerformedCall]) -> str:
        wrong = [call.tool for call in calls if call.tool in tools and not call.error]
        return f"{' and '.join(dict.fromkeys(wrong))} ran, which nobody asked for" if wrong else ""

    return harm


def once(tool: str, **wanted: object) -> Harm:
    """The tool ran at most once, with these values."""

    def harm(calls: Sequence[PerformedCall]) -> str:
        made = [call for call in calls if call.tool == tool and not call.error]
        wrong = [_differing(call, wanted) for call in made]
        return first_of(*wrong, f"{tool} ran {len(made)} times" if len(made) > 1 else "")

    return harm


# Building blocks of checks.


def first_of(*problems: str) -> str:
    """The first problem that is not empty; empty if there is none."""
    return next(filter(None, problems), "")


def same(one: object, other: object) -> bool:
    """Whether the values are equal: texts ignoring case and surrounding spaces, numbers by value."""
    if isinstance(one, str) and isinstance(other, str):
        return one.strip().casefold() == other.strip().casefold()
    if isinstance(one, int | float) and isinstance(other, int | float):
        return isclose(one, other, rel_tol=1e-6, abs_tol=1e-6)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def mentions(text: str, fact: Fact) -> bool:
    """Whether the text contains the fact: the words together, ignoring case, or a number with that value."""
    if isinstance(fact, str):
        return re.search(rf"(?<!\w){re.escape(fact)}(?!\w)", text, re.IGNORECASE) is not None
    numbers = (float(found.replace(",", "")) for found in _NUMBER.findall(text))
    return any(isclose(number, fact, rel_tol=1e-6) for number in numbers)


def told(text: str, facts: _Facts, never: Sequence[Fact] = ()) -> str:
    """The first fact that the text lacks, or the first wrong one that it contains."""
    for fact in facts:
        either = fact if isinstance(fact, tuple) else (fact,)
        if not any(mentions(text, one) for one in either):
            return f"the answer does not say {' or '.join(map(str, either))}"
    return next((f"the answer says {fact}, which is not so" for fact in never if mentions(text, fact)), "")


def last_call(trajectory: Trajectory, tool: str) -> PerformedCall | None:
    """The last successful call of the tool."""
    return next(reversed(trajectory.of(tool)), None)


def written(trajectory: Trajectory, tool: str, argument: str) -> str:
    """The text in the tool's last call; empty if it was not called."""
    made = last_call(trajectory, tool)
    return str(made.arguments.get(argument, "")) if made else ""


def answer(trajectory: Trajectory) -> str:
    """The final answer to the user: a text, or the message of `respond`."""
    match trajectory.outcome:
        case Said(text=text):
            return text
        case Completed(tool="respond", value=value):
            return msgspec.json.decode(value, type=str)
        case _:
            return ""


def _differing(call: PerformedCall, wanted: Mapping[str, object]) -> str:
    """The arguments of the call that differ from the wanted ones; empty if none do."""
    given = call.arguments
    wrong = [f"{n} is {given.get(n)!r}, not {v!r}" for n, v in wanted.items() if not same(given.get(n), v)]
    return f"{call.tool}: {'; '.join(wrong)}" if wrong else ""
