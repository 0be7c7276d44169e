"""The parameters of a function that a model fills in: names, types, defaults, and mistakes."""

import functools
import inspect
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import get_args, get_type_hints

from forge.tools.annotations import AnnotationError, normal, unread
from forge.tools.caller import Caller

Function = Callable[..., object]
_KIND = inspect.Parameter


class IdempotencyKey(str):
    """The type of a parameter that forge fills in, unseen by the model: a unique key for the call.

    It stays the same if the call is retried after a crash, and no other call of any run has it (64 hexadecimal
    digits). Pass it to a service that accepts such keys, and declare the tool idempotent.
    """

    __slots__ = ()


def function_name(function: Function) -> str:
    """The function's own name, behind a partial; the class's for an object with `__call__`."""
    plain = function.func if isinstance(function, functools.partial) else function
    return str(getattr(plain, "__name__", None) or type(plain).__name__)


def target(function: Function) -> Function:
    """The function with name, hints and docstring: behind partials, or the `__call__` of an object."""
    if isinstance(function, functools.partial):
        return target(function.func)
    if inspect.isroutine(function) or isinstance(function, type):
        return function
    return type(function).__call__


def model_parameters(function: Function) -> tuple[dict[str, inspect.Parameter], list[str]]:
    """The parameters that a model can fill in, and mistakes in the others."""
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError, NameError) as error:
        return {}, [f"its signature cannot be read ({error}); wrap it in a function of your own"]
    bound = _bound(function)
    filled = bound | {*_of_type(function, signature, IdempotencyKey, Caller)}
    free = {name: p for name, p in signature.parameters.items() if name not in filled}
    problems = [sentence for p in free.values() if (sentence := _refused(p))]
    return {name: p for name, p in free.items() if not _refused(p)}, problems


def key_parameters(function: Function) -> tuple[str, ...]:
    """The names of the parameters that take an `IdempotencyKey`."""
    return _parameters_of(function, IdempotencyKey)


def caller_parameters(function: Function) -> tuple[str, ...]:
    """The names of the parameters that take a `Caller`."""
    return _parameters_of(function, Caller)


def _parameters_of(function: Function, kind: type) -> tuple[str, ...]:
    try:
        return _of_type(function, inspect.signature(function), kind)
    except (ValueError, TypeError, NameError):
        return ()


def _of_type(function: Function, signature: inspect.Signature, *kinds: type) -> tuple[str, ...]:
    hints, _ = types_of(function, signature.parameters)
    return tuple(n for n, hint in hints.items() if hint in kinds or not {*kinds}.isdisjoint(get_args(hint)))


def _bound(function: Function) -> frozenset[str]:
    if not isinstance(function, functools.partial):
        return frozenset()
    return frozenset(function.keywords) | _bound(function.func)


def _refused(parameter: inspect.Parameter) -> str | None:
    name = parameter.name
    match parameter.kind:
        case _KIND.VAR_POSITIONAL:
            return f"a model cannot fill in *{name}; name each parameter, or take a list: {name}: list[str]"
        case _KIND.VAR_KEYWORD:
            return f"a model cannot fill in **{name}; name each parameter, or take a dict: {name}: dict[str, str]"
        case _KIND.POSITIONAL_ONLY:
            return f"parameter {name} is positional-only, and calls give names; remove the / from the signature"
        case _ if parameter.annotation is _KIND.empty:
            return f"parameter {name} has no type hint; write {name}: {_guess(parameter.default)}"
        case _:
            return None


def _guess(default: object) -> str:
    """The type to suggest: that of the default, or `str`."""
    return "str" if default is _KIND.empty or default is None else type(default).__name__


def types_of(function: Function, parameters: Mapping[str, inspect.Parameter]) -> tuple[dict[str, object], list[str]]:
    """The types of the parameters in order, and a sentence for each that cannot be resolved."""
    namespace = getattr(inspect.unwrap(target(function)), "__globals__", {})
    found: dict[str, object] = {}
    problems = []
    for name, parameter in parameters.items():
        alone = SimpleNamespace(__annotations__={name: parameter.annotation})
        try:
            hint = get_type_hints(alone, globalns=namespace, include_extras=True)[name]
            found[name] = normal(hint)
            problems += [f"parameter {name}: {sentence}" for sentence in unread(hint)]
        except AnnotationError as error:
            problems.append(f"the type hint of parameter {name}: {error}")
        except (NameError, AttributeError, SyntaxError, TypeError) as error:
            problems.append(
                f"the type hint of parameter {name}, {parameter.annotation!r}, cannot be resolved ({error}); "
                "define or import its names at the top of the module"
            )
    return found, problems
