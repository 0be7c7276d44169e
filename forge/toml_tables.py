"""TOML files read and checked against a Struct: every fault at once, each with its table and key."""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import get_args, get_origin

import msgspec
from msgspec import Struct, UnsetType

from forge.errors import DefinitionError
from stages.options import OptionError, did_you_mean, wrong_options

_DOTS_LIMIT = 500
"""Maximum dots in a line: for a dotted key, tomllib takes time and memory with the square of its parts."""

_FAULTS_TOLD = 50
"""Maximum number of faults listed."""


def read_toml(path: Path, kind: type[Struct], what: str, limit: int = 1 << 20) -> dict[str, object]:
    """The tables of a TOML file of at most `limit` bytes, checked against the Struct; `what` names it in errors.

    DefinitionError listing every fault.
    """
    try:
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise DefinitionError((f"the {what} {path} cannot be read: {error.strerror or error}",)) from None
    if len(content) > limit:
        raise DefinitionError((f"the {what} {path} has more than {limit:,} bytes",))
    try:
        text = content.decode("utf-8-sig")  # Windows' editors write a byte order mark
    except UnicodeDecodeError as error:
        raise DefinitionError((f"the {what} {path} is not valid UTF-8: byte {error.start}",)) from None
    return parse_toml(text, kind, str(path))


def parse_toml(text: str, kind: type[Struct], origin: str) -> dict[str, object]:
    """The tables of a TOML text, checked against the Struct; `origin` names it in errors.

    DefinitionError listing every fault.
    """
    if any(line.count(".") > _DOTS_LIMIT for line in text.split("\n")):
        raise DefinitionError((f"{origin}: a line has more than {_DOTS_LIMIT} dots",))
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # an integer of 5,000 digits is a plain ValueError
        raise DefinitionError((f"{origin} is not valid TOML: {error}",)) from None
    refuse_faults(table_faults(tables, kind), origin)
    return tables


def refuse_faults(faults: Iterator[str], origin: str) -> None:
    """DefinitionError with these faults, if there are any."""
    if told := [f"{origin}: {fault}" for fault in islice(faults, _FAULTS_TOLD)]:
        more = [f"{origin}: and more"] if next(faults, None) else []
        raise DefinitionError((*told, *more))


def table_faults(table: Mapping[str, object], kind: type[Struct], header: str = "") -> Iterator[str]:
    """A sentence for each invalid value, each unknown key and each missing key of a table.

    A field that takes a function cannot be set in a file, so it is not a key.
    """
    fields = msgspec.structs.fields(kind)
    known = {field.encode_name: field for field in fields if not _takes_function(field.type)}
    known_keys = f" Known keys: {', '.join(known)}"
    for key, value in table.items():
        if (field := known.get(key)) is not None:
            yield from _wrong(value, field.type, header, key)
        elif table_with_it := next((name for name, one in known.items() if key in _keys(one.type)), None):
            table_name = joined(header, table_with_it)
            listed = _is_list(known[table_with_it].type)
            yield f"{_at(header)}{key}: it belongs in the table {f'[[{table_name}]]' if listed else f'[{table_name}]'}"
        else:
            yield f"{_at(header)}{key}: unknown key.{did_you_mean(key, known)}{known_keys}"
            known_keys = ""
    yield from (
        f"{_at(header)}{name} is missing" for name, field in known.items() if field.required and name not in table
    )


def _wrong(value: object, hint: object, header: str, key: str) -> Iterator[str]:
    """The faults of one value, and of the tables in it."""
    inner = _struct_in(hint)
    if inner is not None and _is_one(hint):
        yield from _wrong_table(value, inner, joined(header, key))
    elif inner is not None and (
        (isinstance(value, dict) and get_origin(hint) not in (Mapping, dict))
        or (_is_list(hint) and not isinstance(value, list))
    ):
        table = joined(header, key)
        yield f"[{table}] must be a list of tables; write [[{table}]]"
    elif inner is not None and isinstance(value, dict):
        for name, table in value.items():
            yield from _wrong_table(table, inner, joined(header, key, name))
    elif inner is not None and isinstance(value, list) and any(isinstance(one, dict) for one in value):
        for number, table in enumerate(value, start=1):
            if isinstance(table, dict):
                yield from _wrong_table(table, inner, f"{joined(header, key)} number {number}")
        yield from _misfit([one for one in value if not isinstance(one, dict)], hint, header, key)
    else:
        yield from _misfit(value, hint, header, key)


def _misfit(value: object, hint: object, header: str, key: str) -> Iterator[str]:
    try:
        msgspec.convert(value, hint)
    except msgspec.ValidationError as error:
        said = wrong_options({key: value}, {key: hint}).get(key) or (f"{key}: {error}",)
        # TOML has no null: an optional key is left out.
        yield from (f"{_at(header)}{sentence.removesuffix(' or None')}" for sentence in said)


def _wrong_table(table: object, kind: type[Struct], header: str) -> Iterator[str]:
    if isinstance(table, dict):
        faults = tuple(table_faults(table, kind, header))
        yield from faults or _contradictions(table, kind, header)
    else:
        yield f"[{header}] must be a table"


def _contradictions(table: Mapping[str, object], kind: type[Struct], header: str) -> Iterator[str]:
    """The faults that only the whole table has, such as two keys that contradict each other."""
    try:
        msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        said = error.__cause__.problems if isinstance(error.__cause__, OptionError) else (str(error),)
        yield from (f"[{header}] {problem.removeprefix(f'{kind.__name__}: ')}" for problem in said)


def _keys(hint: object) -> tuple[str, ...]:
    """The keys of a table, or of each table in a list."""
    inner = _struct_in(hint) if _is_one(hint) or _is_list(hint) else None
    return () if inner is None else inner.__struct_encode_fields__


def _struct_in(hint: object) -> type[Struct] | None:
    """The Struct of the tables in a value; None if there are none."""
    if isinstance(hint, type) and issubclass(hint, Struct):
        return hint
    return next(filter(None, map(_struct_in, get_args(hint))), None)


def _is_one(hint: object) -> bool:
    """Whether the value is one table, which may be optional."""
    return all(
        kind in {type(None), UnsetType} or (isinstance(kind, type) and issubclass(kind, Struct))
        for kind in get_args(hint) or (hint,)
    )


def _is_list(hint: object) -> bool:
    """Whether the value is a list of tables."""
    return get_origin(hint) in (tuple, list, Sequence) and _is_one(get_args(hint)[0])


def _takes_function(hint: object) -> bool:
    return get_origin(hint) is Callable or any(map(_takes_function, get_args(hint)))


def _at(header: str) -> str:
    return f"[{header}] " if header else ""


def joined(header: str, *names: str) -> str:
    """The header of a nested table."""
    quoted = (name if re.fullmatch(r"[\w-]+", name) else f'"{name}"' for name in names)
    return ".".join(filter(None, (header, *quoted)))
