"""Options: values from users' code, checked at run time, with errors that say what to write instead."""

import inspect
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache, partial, wraps
from itertools import chain, islice
from math import isnan
from operator import contains
from types import FunctionType, NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ForwardRef,
    Literal,
    ParamSpec,
    TypeAlias,
    TypeGuard,
    TypeVar,
    Union,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

from msgspec import Meta, Struct, StructMeta, UnsetType, structs
from msgspec.structs import astuple
from typing_extensions import get_protocol_members, is_typeddict

from stages.decoding import is_sound

# Users' functions, checked before they are called: whether they are async, and which arguments they take.


def unfit_function(given: Callable[..., object], *arguments: str, awaited: bool = False) -> str | None:
    """Why the function cannot be called with these arguments, as a sentence; None if it can. It may be `awaited`."""
    name = getattr(given, "__name__", type(given).__name__)
    made = getattr(given, "__annotations__", {}).get("return")
    if get_origin(made) is Callable or made == "Guard":
        return f"{name} makes a function; call it, as in {name}(…)"
    # Guards and stages are created for each run, and most are plain functions; `inspect` would take 20 times as long.
    if type(given) is FunctionType and not given.__dict__:
        code = given.__code__
        fits = code.co_argcount == len(arguments) and not code.co_kwonlyargcount
        if fits and (awaited or not code.co_flags & _ASYNC):
            return None
    if not awaited and is_async(given):
        return _told_async(given)
    try:
        inspect.signature(given).bind(*arguments)
    except ValueError:  # some functions written in C have no signature
        return None
    except TypeError as error:
        return f"{name} cannot be called as {name}({', '.join(arguments)}): {error}"
    return None


def _told_async(given: Callable[..., object]) -> str:
    name = getattr(given, "__name__", type(given).__name__)
    return f"{name} is async, but it is called without await; define it with `def`"


_ASYNC = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def is_async(given: Callable[..., object]) -> bool:
    """Whether calling the function returns an awaitable or an async iterator."""
    if type(given) is FunctionType and not given.__dict__:
        return bool(given.__code__.co_flags & _ASYNC)
    kinds = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return any(kind(function) for kind in kinds for function in (given, type(given).__call__))


# Suggestions: the known name that the user may have meant.

_COMPARED = 200
"""Maximum number of known names that are compared."""

_SIMILAR = 0.65
"""Minimum similarity of two names, from 0 to 1: `model` is not meant to be `order`, which is 0.6."""

_LONGEST = 80
"""Maximum characters of a wrong name that are compared, because the time grows with the product of lengths."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name that is most similar to the word, or None if none is similar."""
    import difflib  # noqa: PLC0415 - only a mistake needs it

    by_lower, wrong = {name.lower(): name for name in islice(known, _COMPARED)}, word[:_LONGEST].lower()
    swapped = [name for name in by_lower if sorted(name) == sorted(wrong)]
    # The beginning of a long name: `max_iter` is not similar to all of `max_iterations`.
    beginnings = {name[: len(wrong) + 1]: name for name in by_lower}
    for names in ({name: name for name in by_lower}, beginnings):
        if close := swapped or difflib.get_close_matches(wrong, names, n=1, cutoff=_SIMILAR):
            return by_lower[names.get(close[0], close[0])]
    return None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question to append to an error, ` Did you mean X?`; empty if no known name is similar."""
    meant = nearest(word, known)
    return f" Did you mean {meant}?" if meant else ""


# Check option types at run time: wrong types and values out of range, each with the expected type.

Hint: TypeAlias = object
"""An annotation: classes, choices (`Literal`), ranges (`Annotated[int, Meta(ge=1)]`) and combinations of them."""

Count: TypeAlias = Annotated[int, Meta(ge=0)]
AtLeastOne: TypeAlias = Annotated[int, Meta(ge=1)]
Tokens: TypeAlias = AtLeastOne
Positive: TypeAlias = Annotated[float, Meta(gt=0)]
Seconds: TypeAlias = Positive
Fraction: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Share: TypeAlias = Annotated[float, Meta(gt=0, le=1)]

_WORDS: Mapping[Hint, str] = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a string",
    NoneType: "None",
}
_PLURALS: Mapping[Hint, str] = {int: "whole numbers", float: "numbers", str: "strings"}
_BOUNDS = {"ge": "at least {}", "gt": "over {}", "le": "at most {}", "lt": "under {}"}
_SHOWN = 200
"""Maximum characters of a wrong value that are shown."""


def wrong_options(
    options: Mapping[str, object], hints: Mapping[str, Hint], *, deep: bool = True
) -> dict[str, tuple[str, ...]]:
    """The options that do not match their annotations, each with what is wrong.

    `deep` also checks the fields of Structs.
    """
    found = {
        name: tuple(_wrong(name, value, hints[name], deep=deep)) or tuple(_unfit(name, value, hints[name]))
        for name, value in options.items()
    }
    return {name: sentences for name, sentences in found.items() if sentences}


def _unfit(name: str, value: object, hint: Hint) -> Iterator[str]:
    """What is wrong if the option is a function that cannot be called with the arguments in the annotation."""
    takes = [inside for origin, inside in map(_parts, _kinds(hint)) if origin is Callable]
    if not takes or not callable(value) or isinstance(value, type) or not isinstance(takes[0][0], list):
        return
    arguments = [getattr(one, "__name__", "…") for one in takes[0][0]]
    if said := unfit_function(value, *arguments, awaited=_may_be_awaited(takes[0][1])):
        yield f"{name}: {said}"


Test: TypeAlias = Callable[[object], bool]
"""Whether a value matches an annotation."""


@cache
def _test(hint: Hint, deep: bool) -> Test:
    """The test for an annotation. A bool is no number, and nan is refused.

    Cached, because analysing an annotation takes longer than most tests.
    """
    tests = tuple(_test_of(kind, deep=deep) for kind in _kinds(hint))
    return tests[0] if len(tests) == 1 else lambda value: any(test(value) for test in tests)


def _test_of(kind: Hint, *, deep: bool) -> Test:
    origin, inside = get_origin(kind), get_args(kind)
    if kind is object or kind is Any or isinstance(kind, TypeVar):
        return lambda _: True
    if isinstance(kind, ForwardRef):
        name = kind.__forward_arg__
        return lambda value: not name.isidentifier() or any(base.__name__ == name for base in type(value).__mro__)
    if origin is Annotated:
        bare, metas = _test(inside[0], deep), inside[1:]
        return lambda value: bare(value) and all(_within(value, meta) for meta in metas)
    if origin is Literal:
        return lambda value: any(value == one and type(value) is type(one) for one in inside)
    if origin is Callable:
        # A class was probably passed instead of its instance, unless any callable is allowed.
        awaited = _may_be_awaited(inside[1])
        return lambda value: (
            callable(value)
            and (inside[0] is ... or not isinstance(value, type))
            and (awaited or isinstance(value, type) or not is_async(value))
        )
    if origin is tuple and inside[1:] != (...,):
        each = tuple(_test(one, deep) for one in inside)
        return lambda value: (
            _is_list(value)
            and len(value) == len(each)
            and all(test(one) for test, one in zip(each, value, strict=True))
        )
    if is_typeddict(kind):
        return lambda value: isinstance(value, dict)
    if origin in _LISTS:
        listed = _test_of_all(inside[0], deep=deep)
        return lambda value: _is_list(value) and listed(value)
    if origin is Mapping:
        mapped = _test_of_all(inside[1], deep=deep)
        return lambda value: isinstance(value, Mapping) and mapped(value.values())
    return _test_of_class(kind, origin or kind, deep=deep)


def _test_of_class(kind: Hint, wanted: object, *, deep: bool) -> Test:
    if getattr(wanted, "_is_protocol", False) and isinstance(wanted, type):
        members = get_protocol_members(wanted)
        return lambda value: not isinstance(value, type) and all(hasattr(value, name) for name in members)
    if not isinstance(wanted, type):
        return lambda _: False
    is_number = kind in (int, float)

    def test(value: object) -> bool:
        if is_number and isinstance(value, int):
            return not isinstance(value, bool)
        if not isinstance(value, wanted):
            return False
        if deep and isinstance(value, Struct) and not isinstance(value, Options):  # Options have checked themselves
            return all(_test(inner.type, True)(getattr(value, inner.name)) for inner in structs.fields(value))
        return not (isinstance(value, float) and isnan(value)) and (not isinstance(value, str) or is_sound(value))

    return test


def _may_be_awaited(returned: Hint) -> bool:
    """Whether a function that is annotated to return that may be async."""
    classes = [get_origin(kind) or kind for kind in _kinds(returned)]
    return any(
        one in (object, Any) or not isinstance(one, type) or issubclass(one, Awaitable) for one in classes if one
    )


_LISTS = (Sequence, Collection, tuple)
"""Kinds of lists in annotations; each also accepts a set."""


def _test_of_all(hint: Hint, *, deep: bool) -> Callable[[Collection[object]], bool]:
    test, plain = _test(hint, deep), frozenset[Hint]() if deep else _plain_classes(hint)
    return lambda values: ({*map(type, values)} <= plain) or all(map(test, values))


def _within(value: object, meta: object) -> bool:
    """Whether a number is within the annotated bounds; True for other values."""
    if not isinstance(meta, Meta) or not isinstance(value, int | float):
        return True
    low = (meta.ge is None or value >= meta.ge) and (meta.gt is None or value > meta.gt)
    return low and (meta.le is None or value <= meta.le) and (meta.lt is None or value < meta.lt)


def _wrong(name: str, value: object, hint: Hint, *, deep: bool) -> Iterator[str]:
    """What is wrong, at the innermost place: an element of a list, a field of a Struct."""
    if _test(hint, deep)(value):
        return
    inner = {get_origin(kind): get_args(kind) for kind in _kinds(hint)}
    listed = next((inner[kind] for kind in _LISTS if kind in inner), ())
    if listed and listed[1:] in ((), (...,)) and _is_list(value):
        for number, one in enumerate(value):
            yield from _wrong(f"{name}[{number}]", one, listed[0], deep=deep)
    elif Mapping in inner and isinstance(value, Mapping):
        for key, one in value.items():
            yield from _wrong(f"{name}[{key!r}]", one, inner[Mapping][1], deep=deep)
    elif deep and isinstance(value, Struct) and type(value) in _kinds(hint):
        for part in structs.fields(value):
            yield from _wrong(f"{name}.{part.name}", getattr(value, part.name), part.type, deep=deep)
    elif isinstance(value, type) and any(_makes(value, kind) for kind in _kinds(hint)):
        yield f"{name} is the class {value.__name__}; write {value.__name__}()"
    elif callable(value) and not isinstance(value, type) and is_async(value) and Callable in inner:
        yield f"{name}: {_told_async(value)}"
    elif isinstance(value, str) and not is_sound(value):
        yield f"{name} is {ascii(value)[:_SHOWN]}; half of a surrogate pair is no character, and nothing can carry it"
    else:
        yield f"{name} is {repr(value)[:_SHOWN]}; it must be {_words(hint)}{_held(name, value, hint)}"


def _held(name: str, value: object, hint: Hint) -> str:
    """A hint if the value has the wanted one as an attribute of that name, such as the state of a finished run."""
    wanted = tuple(kind for kind in _kinds(hint) if isinstance(kind, type) and kind.__name__.lower() == name)
    return f": pass its `.{name}`" if wanted and isinstance(getattr(value, name, None), wanted) else ""


def _makes(made: type, kind: Hint) -> bool:
    """Whether the class itself was passed instead of an instance."""
    origin, inside = _parts(kind)
    if origin is Annotated:
        return any(_makes(made, one) for one in _kinds(inside[0]))
    if getattr(kind, "_is_protocol", False) and isinstance(kind, type):
        return all(hasattr(made, name) for name in get_protocol_members(kind))
    return origin is Callable or (isinstance(kind, type) and kind is not object and issubclass(made, kind))


@cache
def _kinds(hint: Hint) -> tuple[Hint, ...]:
    """The members of a union; the annotation itself if it is none."""
    if isinstance(hint, ForwardRef):
        names = map(str.strip, hint.__forward_arg__.split("|"))
        return tuple(NoneType if name == "None" else ForwardRef(name) for name in names)
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


@cache
def _parts(kind: Hint) -> tuple[object, tuple[Hint, ...]]:
    """Origin and arguments of an annotation, cached because typing takes microseconds to find them."""
    return get_origin(kind), get_args(kind)


@cache
def _plain_classes(hint: Hint) -> frozenset[Hint]:
    """The classes of the annotation whose instances always match; not float, because of nan."""
    return frozenset(kind for kind in _kinds(hint) if isinstance(kind, type) and kind is not float)


def _is_list(value: object) -> TypeGuard[Collection[object]]:
    """Whether the value is a collection other than a text or a mapping. Iterating over one does not consume it."""
    return isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping)


def choices_of(hint: Hint) -> tuple[object, ...]:
    """The values that the annotation names."""
    return tuple(one for kind in _kinds(hint) if get_origin(kind) is Literal for one in get_args(kind))


def _words(hint: Hint) -> str:
    choices = choices_of(hint)
    others = [_word(kind) for kind in _kinds(hint) if get_origin(kind) is not Literal and kind is not UnsetType]
    *first, last = dict.fromkeys(([f"one of {', '.join(map(str, choices))}"] if choices else []) + others)
    return f"{', '.join(first)} or {last}" if first else last


def _word(kind: Hint) -> str:
    origin, inside = _parts(kind)
    if origin is Annotated:
        bounds = [
            words.format(f"{most:g}")
            for meta in inside[1:]
            for name, words in _BOUNDS.items()
            if (most := getattr(meta, name, None)) is not None
        ]
        said = next((meta.description for meta in inside[1:] if isinstance(meta, Meta) and meta.description), None)
        return said or f"{_words(inside[0])}, {' and '.join(bounds)}".removesuffix(", ")
    if origin is Callable:
        return "a function"
    if origin is tuple and inside[1:] != (...,):
        return f"a tuple of {len(inside)}, each {_words(Union[inside])}"  # noqa: UP007 - made at run time
    if origin in _LISTS:
        plural = _plural(inside[0])
        return f"a list of {plural}" if plural else f"a list, each value {_words(inside[0])}"
    if origin is Mapping:
        return f"a dict, each value {_words(inside[1])}"
    if isinstance(kind, ForwardRef):
        return _one(kind.__forward_arg__)
    return _WORDS.get(kind) or _one(getattr(origin or kind, "__name__", str(kind)))


def _plural(hint: Hint) -> str:
    """The plural for values of the annotation; empty for a union or a class, which has none."""
    kinds = tuple(_kinds(hint))
    origin, inside = _parts(kinds[0])
    if len(kinds) > 1 or origin not in (None, Sequence, tuple):
        return ""
    if origin is None:
        return _PLURALS.get(kinds[0], "")
    inner = _plural(inside[0]) if origin is Sequence or inside[1:] == (...,) else ""
    return f"lists of {inner}" if inner else ""


def _one(name: str) -> str:
    return f"{'an' if name[:1] in 'AEIO' else 'a'} {name}"


# Unknown option names: the error names the option that was probably meant, and its group.

_ELSEWHERE = {"system_prompt": "instructions", "instructions": "system_prompt"}
"""Options of a workflow that an agent calls otherwise, and the other way round."""


def unknown_options(
    given: Mapping[str, object], known: Collection[str], hints: Callable[[], Mapping[str, Hint]]
) -> tuple[str, ...]:
    """A sentence for each unknown option.

    For a field of another option, it says how to write it: `limits=Limits(max_iterations=5)`.
    """
    unknown = [name for name in given if name not in known]
    if not unknown:
        return ()
    kinds = [(name, get_origin(kind) or kind) for name, hint in hints().items() for kind in _kinds(hint)]
    groups = [(name, kind) for name, kind in kinds if isinstance(kind, type) and _is_group(kind)]
    owners = {field: group for group in groups for field in inspect.signature(group[1]).parameters}
    inner = {field: group for field, group in owners.items() if field not in known}
    moved: dict[tuple[str, str], list[str]] = {}
    for name in unknown:
        if name in inner:
            group, kind = inner[name]
            moved.setdefault((group, kind.__name__), []).append(f"{name}={repr(given[name])[:_SHOWN]}")
    sentences = [f"write {group}={kind}({', '.join(fields)})" for (group, kind), fields in moved.items()]
    listed = f". There are: {', '.join(known)}"
    for name in unknown:
        if name not in inner:
            same = _ELSEWHERE.get(name, "")
            meant = same if same in known else nearest(name, (*known, *inner))
            group, kind = inner.get(meant or "", ("", Struct))
            question = f". Did you mean {f'{group}={kind.__name__}({meant}=…)' if group else meant}?" if meant else ""
            sentences.append(f"there is no option {name!r}{question}{listed.removeprefix('.' * bool(question))}")
            listed = ""
    return tuple(sentences)


def _is_group(kind: type) -> bool:
    """Whether its fields are options: those of a group, or of a Workflow."""
    return issubclass(kind, Options) or is_dataclass(kind)


def refuse_unknown(
    given: Mapping[str, object], known: Collection[str], hints: Callable[[], Mapping[str, Hint]]
) -> None:
    """Raise a TypeError for unknown options, with one sentence for each."""
    if unknown := unknown_options(given, known, hints):
        raise TypeError("\n".join(unknown))


def _further(
    make: Callable[..., object], given: Mapping[str, object], known: Collection[str], wrong: Collection[str]
) -> Iterator[str]:
    """Further mistakes, found by leaving out the options that are unknown or wrong; none that follows from those."""
    unknown = [name for name in given if name not in known]
    left_out = {*wrong, *unknown, *(nearest(name, known) for name in unknown)}
    try:
        make(**{name: value for name, value in given.items() if name not in left_out})
    except OptionError as error:
        yield from (problem for problem in error.problems if left_out.isdisjoint(re.findall(r"\w+", problem)))
    except Exception:  # noqa: BLE001, S110 - it cannot be made without them
        pass


# Functions and Structs that check their own options.

_P = ParamSpec("_P")
_R = TypeVar("_R")


class OptionError(ValueError):
    """Options are invalid; `problems` lists every mistake, one sentence each."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class Named(StructMeta):
    """The metaclass of Structs that explain unknown option names."""

    if not TYPE_CHECKING:  # a type checker sees the fields

        def __call__(self, *args: object, **kwargs: object) -> object:
            known, make = self.__struct_fields__, super().__call__
            if unknown := unknown_options(kwargs, known, lambda: _fields(self)):
                raise TypeError("\n".join((*unknown, *_further(partial(make, *args), kwargs, known, ()))))
            return make(*args, **kwargs)


class Options(Struct, frozen=True, metaclass=Named):
    """A Struct that checks its fields on creation and raises an OptionError with every mistake."""

    def __post_init__(self) -> None:
        """Check the fields."""
        # Most values have exactly the annotated type, which is quick to check.
        plain = all(map(contains, _plain_fields(type(self)), map(type, astuple(self))))
        wrong = {} if plain else self._wrong_fields()
        if problems := (*chain(*wrong.values()), *self.contradictions(wrong)):
            raise OptionError(tuple(f"{type(self).__name__}: {problem}" for problem in problems))

    def _wrong_fields(self) -> dict[str, tuple[str, ...]]:
        kind = type(self)
        values = zip(kind.__struct_fields__, astuple(self), _plain_fields(kind), strict=True)
        unusual = {name: value for name, value, plain in values if type(value) not in plain}
        return wrong_options(unusual, _fields(kind), deep=False)

    def contradictions(self, wrong: Collection[str]) -> Iterator[str]:  # noqa: ARG002 - for those that override it
        """Contradictions between fields, one sentence each, ignoring fields that are `wrong` themselves."""
        return iter(())


@cache
def _fields(kind: type[Struct]) -> dict[str, Hint]:
    """The annotations of a Struct's fields: resolving them takes longer than a turn."""
    return get_type_hints(kind, include_extras=True)


@cache
def _plain_fields(kind: type[Struct]) -> tuple[frozenset[Hint], ...]:
    hints = _fields(kind)
    return tuple(_plain_classes(hints[name]) for name in kind.__struct_fields__)


def checking(
    error: Callable[[tuple[str, ...]], Exception],
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """A decorator that checks a function's arguments against its annotations, and raises `error` with the mistakes."""

    def checked(function: Callable[_P, _R]) -> Callable[_P, _R]:
        make: Callable[..., object] = function

        def check(args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
            known = _parameters(function)
            keywords = kwargs if known.keywords is None else known.keywords
            unknown = unknown_options(kwargs, keywords, lambda: known.hints)
            wrong = _wrong_arguments(known, args, kwargs)
            if not unknown and not wrong:
                return
            problems = [*unknown, *chain(*wrong.values())]
            if function.__name__ == "__init__" and kwargs.keys() >= wrong.keys():  # calling another has effects
                problems += _further(partial(make, *args), kwargs, keywords, wrong)
            raise TypeError("\n".join(problems)) if unknown else error(tuple(problems))

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
    """A function's parameters. `rest`: the name of `*args`, or empty. `keywords`: None if it takes any keyword."""

    positional: tuple[str, ...]
    rest: str
    keywords: tuple[str, ...] | None
    hints: Mapping[str, Hint]
    plain: Mapping[str, frozenset[Hint]]
    """The `_plain_classes` of each annotation, because looking one up takes longer than most checks."""


def _wrong_arguments(
    known: _Parameters, args: tuple[object, ...], kwargs: Mapping[str, object]
) -> Mapping[str, tuple[str, ...]]:
    """The arguments that do not match their annotations, each with what is wrong."""
    given = {**dict(zip(known.positional, args, strict=False)), **kwargs}
    hints = known.hints
    if known.rest:
        rest = {f"{known.rest}[{i}]": one for i, one in enumerate(args[len(known.positional) :])}
        given |= rest
        hints = {**hints, **dict.fromkeys(rest, hints.get(known.rest, object))}
    unusual = {name: one for name, one in given.items() if name in hints and type(one) not in known.plain.get(name, ())}
    wrong = wrong_options(unusual, hints, deep=False)
    if not wrong:
        return wrong
    by_name = [name for name in hints if name not in {*known.positional, known.rest, "return"} and name not in given]

    def meant(name: str) -> str:
        """The first option passed by name that fits a value passed by position, unless such values fit anywhere."""
        if name in kwargs or isinstance(given[name], str | int | float | FunctionType | None):
            return ""
        fit = next((one for one in by_name if not wrong_options({one: given[name]}, hints)), "")
        return f". Did you mean {fit}=…?" if fit else ""

    return {name: tuple(f"{sentence}{meant(name)}" for sentence in wrong[name]) for name in hints if name in wrong}


@cache
def _parameters(function: Callable[..., object]) -> _Parameters:
    """The parameters of the function with their annotations; an `Unpack` is replaced by its fields."""
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
    return _Parameters(positional, rest, keywords, hints, {name: _plain_classes(hint) for name, hint in hints.items()})


def _hints(owner: Any) -> dict[str, Hint]:
    """The annotations of a function or class; names imported only for type checkers become forward references."""
    try:
        return get_type_hints(owner, include_extras=True)
    except NameError:
        given = inspect.get_annotations(owner)
        return {name: ForwardRef(hint) if isinstance(hint, str) else hint for name, hint in given.items()}
