"""`@tool`: makes a tool of a function."""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Generic, ParamSpec, TypeVar, get_args, overload

from msgspec import Raw, structs

from forge.errors import DefinitionError
from forge.outcome import short_repr
from forge.tools.calculated_arguments import Calculations, calculations
from forge.tools.parameters import caller_parameters
from forge.tools.signature import Signature, describe
from stages.options import wrong_options
from stages.tool import RESULT_LIMIT, Grounded, Prerequisite, ToolEffect, ToolSpec

_P = ParamSpec("_P")
_R = TypeVar("_R")
_T = TypeVar("_T")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


Grounds = str | Sequence[str] | Mapping[str, str | Sequence[str]]
"""Grounded arguments: by name, or each with the tools that its value must come from."""


def grounds(given: Grounds) -> tuple[Grounded, ...]:
    """The arguments as `Grounded` values."""
    if isinstance(given, Mapping):
        return tuple(Grounded(argument=name, sources=_several(sources)) for name, sources in given.items())
    return tuple(Grounded(argument=name) for name in _several(given))


def _several(names: str | Sequence[_T]) -> tuple[str | _T, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


class Tool(Generic[_P, _R]):
    """A function and its description for the model; calling it calls the function.

    `problems` are the mistakes in its definition, one sentence each; a Workflow refuses a tool that has any.
    """

    def __init__(self, function: Callable[_P, _R], spec: ToolSpec, problems: tuple[str, ...] = ()) -> None:
        self.function = function
        self.spec = spec
        self.problems = problems
        self.__doc__ = function.__doc__

    def __repr__(self) -> str:
        """Its name and its effect."""
        return f"Tool({self.name!r}, {self.spec.effect})"

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Call the function."""
        return self.function(*args, **kwargs)

    @property
    def name(self) -> str:
        """The tool's name for the model."""
        return self.spec.name


@overload
def tool(function: Callable[_P, _R], /) -> Tool[_P, _R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    effect: ToolEffect = "write",
    prerequisites: str | Sequence[str | Prerequisite] = (),
    timeout: float | None = None,
    idle_timeout: float | None = None,
    approval: bool = False,
    repeatable: bool = False,
    idempotent: bool = False,
    max_parallel: int | None = None,
    result_limit: int = RESULT_LIMIT,
    grounded: Grounds = (),
    calculated: Calculations = (),
) -> Callable[[Callable[_P, _R]], Tool[_P, _R]]: ...


def tool(
    function: Callable[_P, _R] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    effect: ToolEffect = "write",
    prerequisites: str | Sequence[str | Prerequisite] = (),
    timeout: float | None = None,
    idle_timeout: float | None = None,
    approval: bool = False,
    repeatable: bool = False,
    idempotent: bool = False,
    max_parallel: int | None = None,
    result_limit: int = RESULT_LIMIT,
    grounded: Grounds = (),
    calculated: Calculations = (),
) -> Tool[_P, _R] | Callable[[Callable[_P, _R]], Tool[_P, _R]]:
    """Make a tool of a function: its signature gives the JSON Schema, its docstring the descriptions.

    `effect`: `read` may run concurrently with other reads, `write` runs alone, `terminal` ends the run.
    `prerequisites`: tools that must have succeeded before. `timeout`: maximum seconds per call; `idle_timeout`:
    maximum seconds between two values of a generator. `approval`: ask a person first. `idempotent`: safe to retry, so
    a call whose outcome is unknown after a crash is made again. `max_parallel`: maximum concurrent calls of a read.
    `result_limit`: maximum characters of a result that the model sees. `repeatable`: the same call may return
    something else the next time, so repeating it is no mistake.
    `grounded`: arguments whose values must have been seen, in what the user said or in an earlier result; a mapping
    also names the tool or tools whose result must contain each value. `calculated`: numbers that the model writes as
    calculations of numbers that were seen; the function gets the results.
    """
    if function is not None and not callable(function):
        raise DefinitionError(
            (f"tool takes a function, not {short_repr(function)}; its options are named, as in name=…",)
        )
    named = {"name": name, "prerequisites": prerequisites, "grounded": grounded, "calculated": calculated}
    wrong = wrong_options(named, tool.__annotations__)
    needed = () if "prerequisites" in wrong else _several(prerequisites)
    seen = () if "grounded" in wrong else grounds(grounded)
    worked_out = () if "calculated" in wrong else calculations(calculated)

    def make(function: Callable[_P, _R]) -> Tool[_P, _R]:
        described = describe(function)
        found = described if isinstance(described, Signature) else None
        own = found.name if found else str(getattr(function, "__name__", "?"))
        called = name if isinstance(name, str) and name else own
        spec = ToolSpec(
            name=called,
            description=description or (found.description if found else ""),
            parameters=found.parameters if found else Raw(b"{}"),
            effect=effect,
            prerequisites=tuple(Prerequisite(tool=p) if isinstance(p, str) else p for p in needed),
            timeout=timeout,
            idle_timeout=idle_timeout,
            approval=approval,
            repeatable=repeatable,
            idempotent=idempotent,
            max_parallel=max_parallel,
            result_limit=result_limit,
            grounded=seen,
            calculated=worked_out,
            delegates=bool(caller_parameters(function)),
        )
        problems = () if isinstance(described, Signature) else described
        return Tool(function, spec, (*problems, *_mistakes(spec, wrong)))

    return make if function is None else make(function)


def respond_tool() -> Tool[[str], str]:
    """A tool for answers in text, to be used as a terminal tool."""

    def respond(message: str) -> str:
        """Answer the user in words: to chat, to ask for what is missing, or to report the result.

        Args:
            message: What the user is told.
        """
        return message

    return tool(effect="terminal", idempotent=True)(respond)


def _mistakes(spec: ToolSpec, before: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    hints = {option.name: option.type for option in structs.fields(spec)}
    if wrong := {**before, **wrong_options(structs.asdict(spec), hints)}:
        return tuple(f"tool {spec.name}: {sentence}" for sentence in chain(*wrong.values()))
    found = []
    if not _NAME.fullmatch(spec.name):
        found.append(f"tool {spec.name!r}: a name is a letter, then letters, digits, _ or -, 64 at most")
    if spec.effect not in get_args(ToolEffect):
        found.append(
            f"tool {spec.name}: effect is {spec.effect!r}; it must be one of {', '.join(get_args(ToolEffect))}"
        )
    times = {"timeout": spec.timeout, "idle_timeout": spec.idle_timeout}
    found += [
        f"tool {spec.name}: {name} is in seconds and must be more than 0, not {value}"
        for name, value in times.items()
        if value is not None and value <= 0
    ]
    counts = {"max_parallel": spec.max_parallel, "result_limit": spec.result_limit}
    found += [
        f"tool {spec.name}: {name} must be at least 1, not {value}"
        for name, value in counts.items()
        if value is not None and value < 1
    ]
    return tuple(found)
