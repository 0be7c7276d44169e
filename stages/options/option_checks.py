"""Check option types at run time: functions and Structs whose wrong options are explained in words."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cache, wraps
from operator import contains
from typing import Any, ForwardRef, ParamSpec, TypeVar, Unpack, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import astuple

from stages.options.types import Hint, plain_classes, wrong_options

_P = ParamSpec("_P")
_R = TypeVar("_R")


class OptionError(ValueError):
    """Options are not what they must be; `problems` lists every mistake, a sentence each."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class Options(Struct, frozen=True):
    """A Struct that is checked when it is made. OptionError for a field that does not match its annotation."""

    def __post_init__(self) -> None:
        """Refuse what is wrong."""
        # Most are of exactly the annotated type, which is quick to see.
        if all(map(contains, _plain_fields(type(self)), map(type, astuple(self)))):
            return
        hints = _fields(type(self))
        given = {name: getattr(self, name) for name in hints}
        if wrong := wrong_options(given, hints, deep=False):
            sentences = (sentence for several in wrong.values() for sentence in several)
            raise OptionError(tuple(f"{type(self).__name__}: {sentence}" for sentence in sentences))


@cache
def _fields(kind: type[Struct]) -> dict[str, Hint]:
    """The annotations of a Struct's fields: resolving them takes longer than a turn."""
    return get_type_hints(kind, include_extras=True)


@cache
def _plain_fields(kind: type[Struct]) -> tuple[frozenset[Hint], ...]:
    hints = _fields(kind)
    return tuple(plain_classes(hints[name]) for name in kind.__struct_fields__)


def checking(
    error: Callable[[tuple[str, ...]], Exception], did_you_mean: Callable[[str, Iterable[str]], str] = lambda *_: ""
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """A decorator that checks the function's arguments against its annotations first, and raises that error."""

    def checked(function: Callable[_P, _R]) -> Callable[_P, _R]:
        def check(args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
            known = _parameters(function)
            if known.keywords is not None and (strangers := kwargs.keys() - known.keywords):
                wrong, right = min(strangers), ", ".join(known.keywords)
                meant = did_you_mean(wrong, known.keywords)
                raise TypeError(f"there is no option {wrong!r}; there are: {right}.{meant}")
            if problems := _wrong_arguments(known, args, kwargs):
                raise error(problems)

        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def awaited(*args: _P.args, **kwargs: _P.kwargs) -> object:
                check(args, kwargs)
                return await function(*args, **kwargs)

            return awaited  # type: ignore[return-value]  # mypy cannot see that _R is a coroutine here

        @wraps(function)
        def called(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            check(args, kwargs)
            return function(*args, **kwargs)

        return called

    return checked


checked = checking(OptionError)


class _Parameters(Struct, frozen=True):
    """`rest` is the name of `*args`, empty where there is none; `keywords` is None where any keyword is taken."""

    positional: tuple[str, ...]
    rest: str
    keywords: tuple[str, ...] | None
    hints: Mapping[str, Hint]


def _wrong_arguments(known: _Parameters, args: tuple[object, ...], kwargs: Mapping[str, object]) -> tuple[str, ...]:
    """A sentence for each argument that does not match its annotation."""
    given = {**dict(zip(known.positional, args, strict=False)), **kwargs}
    if known.rest:
        given |= {f"{known.rest}[{i}]": one for i, one in enumerate(args[len(known.positional) :])}
    hinted = {name: known.hints[key] for name in given if (key := name.partition("[")[0]) in known.hints}
    wrong = wrong_options({name: given[name] for name in hinted}, hinted, deep=False)
    return tuple(sentence for several in wrong.values() for sentence in several)


@cache
def _parameters(function: Callable[..., object]) -> _Parameters:
    """What the function takes, and what each of it must be; what an `Unpack` stands for is named one by one."""
    parameters = inspect.signature(function).parameters.values()
    hints = _hints(function)
    by_name = [one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    keywords: tuple[str, ...] | None = tuple(name for name in by_name if name in hints)  # not self
    for one in parameters:
        if one.kind is one.VAR_KEYWORD:
            packed = hints.pop(one.name, None)
            fields = _hints(get_args(packed)[0]) if get_origin(packed) is Unpack else None
            hints |= fields or {}
            keywords = None if fields is None or keywords is None else (*keywords, *fields)
    positional = tuple(one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD))
    rest = next((one.name for one in parameters if one.kind is one.VAR_POSITIONAL), "")
    return _Parameters(positional, rest, keywords, hints)


def _hints(owner: Any) -> dict[str, Hint]:
    """Its annotations; for those that are only imported for type checkers, the name of the class."""
    try:
        return get_type_hints(owner, include_extras=True)
    except NameError:
        given = inspect.get_annotations(owner)
        return {name: ForwardRef(hint) if isinstance(hint, str) else hint for name, hint in given.items()}
