"""Tools from functions: `@tool`, `ToolDef`, the parameters a caller fills in."""

import dataclasses
import functools
import inspect
import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from inspect import Parameter
from itertools import chain
from types import SimpleNamespace
from typing import (
    Generic,
    ParamSpec,
    Self,
    TypedDict,
    TypeVar,
    Unpack,
    get_args,
    get_type_hints,
    overload,
)

import msgspec
from msgspec import Raw, Struct, structs
from msgspec.structs import replace

from forge.callbacks import Asker
from forge.errors import DefinitionError
from forge.outcome import short_repr
from forge.tools.schemas import (
    SUPPORTED_TYPES,
    AnnotationError,
    decoder_of,
    formless,
    normal,
    object_schema,
    result_json,
    schemas_of,
    unread,
)
from stages.effect import Budget, Paused, Spending
from stages.options import refuse_unknown, wrong_options
from stages.schema import SchemaError, checker, unchecked
from stages.schema.value import Json, members_of
from stages.tool import Calculated, Grounded, Prerequisite, ToolEffect, ToolSpec

# Calculated arguments: their schema for the model instead of a number, and mistakes in their definition.

Calculations = str | Sequence[str]
"""The arguments of a tool that are calculated, by name."""

_ASKED = "Write the calculation, such as 3 + 4; it is done for you."
"""End of such an argument's description; measured: small models then leave the result to forge."""


def calculations(given: Calculations) -> tuple[Calculated, ...]:
    """The names as `Calculated` values, without duplicates."""
    return tuple(Calculated(argument=name) for name in ((given,) if isinstance(given, str) else dict.fromkeys(given)))


def calculated_specs(specs: Iterable[ToolSpec], wanted: Mapping[str, Calculations]) -> tuple[ToolSpec, ...]:
    """The tools as the model sees them: with a string instead of each calculated number.

    What cannot be calculated is left unchanged; `calculated_mistakes` reports it.
    """
    made = []
    for spec in specs:
        if not (names := dict.fromkeys(bound.argument for bound in _calculated(spec, wanted))):
            made.append(spec)
            continue
        schema: dict[str, Json] = msgspec.json.decode(spec.parameters, type=dict)
        properties = members_of(schema)
        numbers = {name: number for name in names if _types(number := properties.get(name)) & _NUMBERS}
        asked: Json = {**properties, **{name: _text(number) for name, number in numbers.items()}}
        bound = (Calculated(argument=n, number=Raw(msgspec.json.encode(v))) for n, v in numbers.items())
        parameters = Raw(msgspec.json.encode({**schema, "properties": asked}))
        made.append(replace(spec, parameters=parameters, calculated=tuple(bound)))
    return tuple(made)


def _calculated(spec: ToolSpec, wanted: Mapping[str, Calculations]) -> tuple[Calculated, ...]:
    return (*spec.calculated, *calculations(wanted.get(spec.name, ())))


def calculated_mistakes(specs: Iterable[ToolSpec], wanted: Mapping[str, Calculations]) -> tuple[str, ...]:
    """All mistakes in the calculated arguments of these tools, one sentence each."""
    tools = {spec.name: spec for spec in specs}
    found = [f"calculated: there is no tool named {name!r}" for name in wanted if name not in tools]
    for name, spec in tools.items():
        for argument in (bound.argument for bound in _calculated(spec, wanted)):
            properties = members_of(msgspec.json.decode(spec.parameters, type=dict))
            types, problem = _types(properties.get(argument)), ""
            if argument not in properties:
                problem = f"it has no argument {argument!r}; it has: {', '.join(properties) or 'none'}"
            elif not types & _NUMBERS or types - _NUMBERS - {"null"}:
                problem = f"its argument {argument} is not a number; only integers and floats can be calculated"
            elif argument in [bound.argument for bound in spec.grounded]:
                problem = f"{argument} is calculated, so its numbers are grounded already; leave it out of grounded"
            found += [f"tool {name}: calculated: {problem}"] if problem else []
    return tuple(dict.fromkeys(found))


_NUMBERS = frozenset({"number", "integer"})


def _types(schema: Json) -> frozenset[str]:
    """The types that the schema allows."""
    match schema:
        case {"type": str(name)}:
            return frozenset({name})
        case {"type": [*names]}:
            return frozenset(map(str, names))
        case {"anyOf": [*parts]}:
            return frozenset[str]().union(*map(_types, parts))
        case _:
            return frozenset({"anything"})


def _text(number: Json) -> Json:
    """The schema of a calculation of that number, as a string."""
    notes = number if isinstance(number, dict) else {}
    kind: Json = ["string", "null"] if "null" in _types(number) else "string"
    default: dict[str, Json] = {"default": notes["default"]} if notes.get("default", 0) is None else {}
    return {"type": kind, "description": f"{notes.get('description', '')} {_ASKED}".strip(), **default}


# Caller: information about the calling run, for a tool that makes model calls of its own.


class Caller(Struct, frozen=True, kw_only=True):
    """The type of a parameter filled in by forge, hidden from the model: the calling run and its call.

    The tool may spend `budget` and reports its costs with `spend`. To ask the user something, it returns a `Paused`; it
    is called again with the answer and that value as `continued`. `ask` decides about calls that need approval, and
    `journal` is the run's journal; each is None if there is none.
    """

    call_id: str
    budget: Budget
    spend: Callable[[Spending], None]
    continued: Paused | None = None
    ask: Asker | None = None
    journal: str | None = None


# The parameters of a function that a model fills in: names, types, defaults, and mistakes.

Function = Callable[..., object]
_KIND = inspect.Parameter


class IdempotencyKey(str):
    """The type of a parameter filled in by forge, hidden from the model: a unique key for the call.

    It stays the same if the call is retried after a crash, and no other call of any run has it (64 hexadecimal digits).
    Pass it to a service that accepts such keys, and declare the tool idempotent.
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


def _model_parameters(function: Function) -> tuple[dict[str, inspect.Parameter], list[str]]:
    """The parameters that a model can fill in, and mistakes in the others."""
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError, NameError) as error:
        return {}, [f"its signature cannot be read ({error}); wrap it in a function of your own"]
    filled = _bound(function) | {*_of_type(function, signature, IdempotencyKey, Caller)}
    free = {name: p for name, p in signature.parameters.items() if name not in filled}
    refused = {name: sentence for name, p in free.items() if (sentence := _refused(p))}
    return {name: p for name, p in free.items() if name not in refused}, [*refused.values()]


def parameters_of(function: Function, kind: type) -> tuple[str, ...]:
    """The names of the parameters that take that type, such as an `IdempotencyKey` or a `Caller`."""
    try:
        return _of_type(function, inspect.signature(function), kind)
    except (ValueError, TypeError, NameError):
        return ()


def _of_type(function: Function, signature: inspect.Signature, *kinds: type) -> tuple[str, ...]:
    hints, _ = _types_of(function, signature.parameters)
    # Compared, not looked up in a set: the arguments of a Callable contain a list, which has no hash.
    return tuple(n for n, hint in hints.items() if any(kind in (hint, *get_args(hint)) for kind in kinds))


def _bound(function: Function) -> frozenset[str]:
    if not isinstance(function, functools.partial):
        return frozenset()
    return frozenset(function.keywords) | _bound(function.func)


_FIELDS = (("dataclasses", "Field"), ("msgspec", "Field"), ("pydantic", "FieldInfo"))
"""The types of what `field()` and `Field()` return, by package: they describe a default in a class, and are none."""


def _refused(parameter: inspect.Parameter) -> str | None:
    name, described = parameter.name, type(parameter.default)
    match parameter.kind:
        case _KIND.VAR_POSITIONAL:
            return f"a model cannot fill in *{name}; name each parameter, or take a list: {name}: list[str]"
        case _KIND.VAR_KEYWORD:
            return f"a model cannot fill in **{name}; name each parameter, or take a dict: {name}: dict[str, str]"
        case _KIND.POSITIONAL_ONLY:
            return (
                f"parameter {name} is positional-only, and calls give names; remove the / from the signature, "
                "or wrap the function in one of your own"
            )
        case _ if (described.__module__.partition(".")[0], described.__name__) in _FIELDS:
            return (
                f"parameter {name} has a Field as its default, which works only in a class; "
                f"write {name}: Annotated[<type>, Field(…)] = <default>, without a default in the Field"
            )
        case _ if name == "self" and parameter.annotation is _KIND.empty:
            return (
                "it is the method of a class; make a tool of an object's method, as in tool(shop.get_order), "
                "instead of decorating it in the class"
            )
        case _ if parameter.annotation is _KIND.empty:
            default = parameter.default
            likely = "str" if default is _KIND.empty or default is None else type(default).__name__
            return f"parameter {name} has no type hint; write {name}: {likely}"
        case _:
            return None


def _types_of(function: Function, parameters: Mapping[str, inspect.Parameter]) -> tuple[dict[str, object], list[str]]:
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


# Signatures: from a Python function to the JSON Schema that a model is given, and from its JSON to values.


class Signature(Struct, frozen=True, kw_only=True):
    """A function as the model sees it. `parameters` is a closed JSON Schema of an object, in the function's order."""

    name: str
    description: str
    parameters: Raw


Convert = Callable[[str], dict[str, object]]
"""From arguments, JSON text that matches the schema, to keyword arguments of the function."""


class Explicit(functools.partial[object]):
    """A function with an explicit signature, for one whose own does not describe its parameters."""

    def __new__(cls, function: Function, signature: Signature, convert: Convert) -> Self:
        """The function with its signature and its conversion of arguments."""
        made = super().__new__(cls, function)
        made.signature, made.convert = signature, convert
        return made

    signature: Signature
    convert: Convert


class Returned(Struct, frozen=True):
    """Yielded last by an async generator, which cannot return: the result, and not progress."""

    value: object


def describe(function: Function) -> Signature | tuple[str, ...]:
    """The function's signature as the model sees it; or every mistake in it, one sentence each.

    Types are those that msgspec supports (primitives, Literal, enums, unions, collections, Struct, dataclass,
    TypedDict, `Annotated[..., msgspec.Meta(...)]`) and pydantic models; on a parameter, `Annotated` may also hold a
    pydantic `Field`, constraints of annotated_types, or a plain string. Descriptions come from the docstring, in
    Google, NumPy or Sphinx style, unless the annotation has one. Methods, partials (bound arguments are not offered
    to the model) and objects with `__call__` work too.
    """
    if isinstance(function, Explicit):
        return function.signature
    name = function_name(function)
    parameters, problems = _model_parameters(function)
    hints, unresolved = _types_of(function, parameters)
    problems += unresolved
    problems += [
        f"parameter {p} has a type without a JSON form ({reason}); use {SUPPORTED_TYPES}"
        for p, hint in hints.items()
        if (reason := formless(hint))
    ]
    if problems:
        return tuple(f"tool {name}: {problem}" for problem in problems)
    plain = function.func if isinstance(function, functools.partial) else function
    description, texts = _described(target(plain).__doc__ or plain.__doc__ or "")
    schemas, definitions = schemas_of([*hints.values()])
    described: Json = {
        parameter: {**texts.get(parameter, {}), **one, **_default(parameters[parameter].default, hint)}
        for (parameter, hint), one in zip(hints.items(), schemas, strict=True)
    }
    required: list[Json] = [name for name, p in parameters.items() if p.default is Parameter.empty]
    schema: dict[str, Json] = {
        "type": "object",
        "properties": described,
        "required": required,
        "additionalProperties": False,
    }
    return Signature(
        name=name,
        description=description,
        parameters=Raw(msgspec.json.encode({**schema, "$defs": definitions} if definitions else schema)),
    )


def _described(docstring: str) -> tuple[str, Mapping[str, dict[str, Json]]]:
    """What a docstring says of its function, and of each parameter that it describes: a part of the schema."""
    # One line without these describes no parameter in any style.
    if not any(sign in docstring for sign in "\n:@\t"):
        return docstring.lstrip(), {}
    from docstring_parser import ParseError, parse  # noqa: PLC0415 - slow to import: it reads every style

    try:
        doc = parse(docstring)
    except ParseError:
        return docstring, {}
    description = "\n\n".join(filter(None, (doc.short_description, doc.long_description)))
    return description, {each.arg_name: {"description": each.description} for each in doc.params if each.description}


def converter(function: Function) -> Convert:
    """The conversion from arguments, JSON text that matches the schema, to values of the parameters' types.

    It raises ValueError naming a parameter whose type refuses its value: a type can require more than its JSON
    Schema expresses.
    """
    if isinstance(function, Explicit):
        return function.convert
    parameters, _ = _model_parameters(function)
    hints, _ = _types_of(function, parameters)
    decode = {name: decoder_of(hint) for name, hint in hints.items()}
    split = msgspec.json.Decoder(dict[str, Raw])

    def convert(arguments: str) -> dict[str, object]:
        given = split.decode(arguments)
        if unknown := given.keys() - decode:
            known = ", ".join(hints) or "none"
            raise ValueError(f"{function_name(function)} has no parameter {min(unknown)}; it has: {known}")
        values: dict[str, object] = {}
        for name, raw in given.items():
            try:
                values[name] = decode[name](raw)
            except msgspec.ValidationError as error:
                raise ValueError(f"{name}: {error}") from error
        return values

    return convert


def _default(value: object, hint: object) -> dict[str, Json]:
    """The default as a schema keyword, if JSON can represent it so that the type accepts it; none for None."""
    if value is Parameter.empty or value is None:
        return {}
    try:
        text = result_json(value)
        decoder_of(hint)(text)
    except (TypeError, ValueError, NotImplementedError):
        return {}
    default: Json = msgspec.json.decode(text)
    return {"default": default}


# `@tool`: makes a tool of a function.

_P = ParamSpec("_P")
_R = TypeVar("_R")
_T = TypeVar("_T")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")

Grounds = str | Sequence[str] | Mapping[str, str | Sequence[str]]
"""Grounded arguments: by name, or each with the tools that its value must come from."""


def grounds(given: Grounds) -> tuple[Grounded, ...]:
    """The arguments as `Grounded` values."""
    if isinstance(given, Mapping):
        return tuple(Grounded(argument=name, sources=several(sources)) for name, sources in given.items())
    return tuple(Grounded(argument=name) for name in several(given))


def prerequisites_of(given: str | Collection[str | Prerequisite]) -> tuple[Prerequisite, ...]:
    """The tools as `Prerequisite` values."""
    return tuple(Prerequisite(tool=one) if isinstance(one, str) else one for one in several(given))


def several(names: str | Collection[_T]) -> tuple[str | _T, ...]:
    """The names as a tuple, also for a single name."""
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


class ToolOptions(TypedDict, total=False):
    """Options of `@tool` besides name and description; documented there."""

    effect: ToolEffect
    prerequisites: str | Sequence[str | Prerequisite]
    timeout: float | None
    idle_timeout: float | None
    approval: bool
    repeatable: bool
    idempotent: bool
    max_parallel: int | None
    result_limit: int
    grounded: Grounds
    calculated: Calculations


@overload
def tool(function: Callable[_P, _R], /) -> Tool[_P, _R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Unpack[ToolOptions],
) -> Callable[[Callable[_P, _R]], Tool[_P, _R]]: ...


def tool(
    function: Callable[_P, _R] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Unpack[ToolOptions],
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
    hints = ToolOptions.__annotations__
    refuse_unknown(options, ("name", "description", *hints), lambda: hints)
    # These are read before they are in the spec; what else is wrong shows there.
    read = {"prerequisites", "grounded", "calculated"}
    wrong = wrong_options(
        {"name": name, **{option: value for option, value in options.items() if option in read}},
        {"name": str | None, **hints},
    )
    needed = () if "prerequisites" in wrong else prerequisites_of(options.get("prerequisites", ()))
    seen = () if "grounded" in wrong else grounds(options.get("grounded", ()))
    worked_out = () if "calculated" in wrong else calculations(options.get("calculated", ()))
    others = {option: value for option, value in options.items() if option not in read}

    def make(function: Callable[_P, _R]) -> Tool[_P, _R]:
        if isinstance(function, Tool):
            raise DefinitionError((f"{function.name} is a tool already; give its options where it is made",))
        described = describe(function)
        found = described if isinstance(described, Signature) else None
        own = found.name if found else str(getattr(function, "__name__", "?"))
        called = name if isinstance(name, str) and name else own
        spec = ToolSpec(
            name=called,
            description=description or (found.description if found else ""),
            parameters=found.parameters if found else Raw(b"{}"),
            prerequisites=needed,
            grounded=seen,
            calculated=worked_out,
            delegates=bool(parameters_of(function, Caller)),
        )
        spec = replace(spec, **others)
        problems = () if isinstance(described, Signature) else described
        hints = {option.name: option.type for option in structs.fields(spec)}
        if mistakes := {**wrong, **wrong_options(structs.asdict(spec), hints)}:
            problems += tuple(f"tool {spec.name}: {sentence}" for sentence in chain(*mistakes.values()))
        elif not _NAME.fullmatch(spec.name):
            rule = "a name is a letter, then letters, digits, _ or -, 64 at most"
            problems += (f"tool {spec.name!r}: {rule}; give it another, as in tool(name=…)",)
        return Tool(function, spec, problems)

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


# `ToolDef`: tools whose parameters are given separately, as a JSON Schema or a type.


def ToolDef(  # noqa: N802 - a name that users know
    *,
    name: str,
    description: str,
    parameters: Mapping[str, object] | type,
    function: Function,
    **options: Unpack[ToolOptions],
) -> Tool[..., object]:
    """A tool whose function needs no type hints: `parameters` describes its arguments.

    They are a JSON Schema of an object, as a dict; or a class with fields: a pydantic model, a msgspec Struct, a
    dataclass, a TypedDict. The function gets the arguments by name; with a class, in the fields' types and with its
    defaults. The other options are those of `@tool`. Mistakes are in `problems`; a Workflow refuses the tool.
    """
    if not callable(function):
        raise DefinitionError((f"tool {name}: function is {function!r}, which cannot be called",))
    schema, convert, problems = _known(parameters)
    problems += _unfit(function, schema)
    signature = Signature(name=name, description=description, parameters=Raw(msgspec.json.encode(schema)))
    tell_unchecked(name, signature.parameters)
    made = tool(name=name, description=description, **options)(Explicit(function, signature, convert))
    return Tool(made.function, made.spec, (*(f"tool {name}: {problem}" for problem in problems), *made.problems))


def tell_unchecked(name: str, parameters: bytes | Raw) -> None:
    """Log what in the schema of a tool of that name costs too much to check."""
    if sentence := unchecked(parameters):
        logging.getLogger("forge").warning("the tool %s: %s", name, sentence)


def _known(parameters: Mapping[str, object] | type) -> tuple[Mapping[str, object], Convert, list[str]]:
    """The schema, the conversion of its values, and its mistakes."""
    if isinstance(parameters, type):
        if reason := formless(parameters):
            return {"type": "object"}, as_it_is, [f"its parameters have no JSON form ({reason})"]
        schema = object_schema(parameters)
        if schema is None:
            wrong = f"its parameters are {parameters.__name__}, which is not a class with fields"
            return {"type": "object"}, as_it_is, [wrong]
        decode = decoder_of(parameters)

        def fields(arguments: str) -> dict[str, object]:
            """The fields of the decoded value by their names in Python."""
            value = decode(arguments)
            if isinstance(value, dict):
                return value
            model = getattr(type(value), "model_fields", None) or getattr(value, "__struct_fields__", None)
            names = model if model is not None else [field.name for field in dataclasses.fields(value)]  # type: ignore[arg-type]
            return {name: getattr(value, name) for name in names}

        return schema, fields, unread(parameters)
    try:
        checker(msgspec.json.encode(parameters))
    except (SchemaError, TypeError, UnicodeEncodeError) as error:
        return {"type": "object"}, as_it_is, [f"its parameters are not a JSON Schema of an object: {error}"]
    return parameters, as_it_is, []


def as_it_is(arguments: str) -> dict[str, object]:
    """The arguments of a function whose parameters have no types in Python."""
    return msgspec.json.decode(arguments, type=dict[str, object])


def _unfit(function: Function, schema: Mapping[str, object]) -> list[str]:
    """Mismatches between the schema and the function's own parameters."""
    try:
        taken = inspect.signature(function).parameters
    except (ValueError, TypeError):
        return []  # a built-in without a signature
    if any(p.kind is p.VAR_KEYWORD for p in taken.values()):
        return []
    properties, required = schema.get("properties"), schema.get("required")
    named = [*properties] if isinstance(properties, Mapping) else []
    sure = [*required] if isinstance(required, Sequence) else []
    found = [f"its parameters have {n!r}, which the function does not take" for n in named if n not in taken]
    return found + [
        f"the function needs {p.name!r}, which the parameters do not require"
        for p in taken.values()
        if p.name not in parameters_of(function, IdempotencyKey)
        and p.default is p.empty
        and p.kind is not p.VAR_POSITIONAL
        and p.name not in sure
    ]
