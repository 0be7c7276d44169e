"""Tables of a TOML file, checked against a Struct: every fault in them, a sentence each, with its table and key."""

import re
from collections.abc import Iterator, Mapping
from typing import get_args, get_origin

import msgspec
from msgspec import Struct, UnsetType

from stages.options import OptionError, did_you_mean, wrong_options


def table_faults(table: Mapping[str, object], kind: type[Struct], header: str = "") -> Iterator[str]:
    """A sentence for each value of a table that is wrong, for each key that there is not, and for those that lack."""
    known = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    for key, value in table.items():
        if (field := known.get(key)) is not None:
            yield from _wrong(value, field.type, header, key)
        elif table_with_it := next((name for name, one in known.items() if key in _keys(one.type)), None):
            yield f"{_at(header)}{key}: it is a key of the table [{joined(header, table_with_it)}]"
        else:
            meant = did_you_mean(key, known)
            yield f"{_at(header)}{key}: there is no such key; there are: {', '.join(known)}.{meant}"
    yield from (
        f"{_at(header)}{name}: it is missing" for name, field in known.items() if field.required and name not in table
    )


def _wrong(value: object, hint: object, header: str, key: str) -> Iterator[str]:
    """What is wrong with one value, looked for in the tables within it."""
    inner = _struct_in(hint)
    if inner is not None and _is_one(hint):
        yield from _wrong_table(value, inner, joined(header, key))
    elif inner is not None and isinstance(value, dict) and get_origin(hint) not in (Mapping, dict):
        table = joined(header, key)
        yield f"[{table}]: it must be a list of tables; write [[{table}]]"
    elif inner is not None and isinstance(value, dict):
        for name, table in value.items():
            yield from _wrong_table(table, inner, joined(header, key, name))
    elif inner is not None and isinstance(value, list) and any(isinstance(one, dict) for one in value):
        for number, table in enumerate(value, start=1):
            if isinstance(table, dict):
                yield from table_faults(table, inner, f"{joined(header, key)} number {number}")
        yield from _misfit([one for one in value if not isinstance(one, dict)], hint, header, key)
    else:
        yield from _misfit(value, hint, header, key)


def _misfit(value: object, hint: object, header: str, key: str) -> Iterator[str]:
    try:
        msgspec.convert(value, hint)
    except msgspec.ValidationError as error:
        said = wrong_options({key: value}, {key: hint}).get(key) or (f"{key}: {error}",)
        # TOML has no None: what may be None may be left out.
        yield from (f"{_at(header)}{sentence.removesuffix(' or None')}" for sentence in said)


def _wrong_table(table: object, kind: type[Struct], header: str) -> Iterator[str]:
    if isinstance(table, dict):
        faults = tuple(table_faults(table, kind, header))
        yield from faults or _contradictions(table, kind, header)
    else:
        yield f"[{header}]: it must be a table"


def _contradictions(table: Mapping[str, object], kind: type[Struct], header: str) -> Iterator[str]:
    """What a group of options says of its keys together."""
    try:
        msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        said = error.__cause__.problems if isinstance(error.__cause__, OptionError) else (str(error),)
        yield from (f"[{header}] {problem.removeprefix(f'{kind.__name__}: ')}" for problem in said)


def _keys(hint: object) -> tuple[str, ...]:
    """The keys of a value that is one table."""
    inner = _struct_in(hint) if _is_one(hint) else None
    return () if inner is None else inner.__struct_encode_fields__


def _struct_in(hint: object) -> type[Struct] | None:
    """The kind of table that a value holds, if it holds some."""
    if isinstance(hint, type) and issubclass(hint, Struct):
        return hint
    return next(filter(None, map(_struct_in, get_args(hint))), None)


def _is_one(hint: object) -> bool:
    """Whether the value is itself such a table, or may be left out."""
    return all(
        kind in {type(None), UnsetType} or (isinstance(kind, type) and issubclass(kind, Struct))
        for kind in get_args(hint) or (hint,)
    )


def _at(header: str) -> str:
    return f"[{header}] " if header else ""


def joined(header: str, *names: str) -> str:
    """The header of a table below another one."""
    quoted = (name if re.fullmatch(r"[\w-]+", name) else f'"{name}"' for name in names)
    return ".".join(filter(None, (header, *quoted)))
