"""A policy read from a TOML file: every fault in it in one message, each with its table and key."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args

import msgspec
from msgspec import Struct

from forge.errors import ForgeError
from forge.proxy.policy import ModelPolicy, Policy
from forge.proxy.policy_rules import contradictions
from forge.workflow.suggestions import did_you_mean
from stages.options.types import wrong_options

SIZE_LIMIT = 1 << 20
"""Bytes of a policy file."""


class _File(ModelPolicy, frozen=True, kw_only=True, forbid_unknown_fields=True, eq=False):
    """The whole file: what holds for all models, and a table for each pattern of names."""

    model: Mapping[str, ModelPolicy] = msgspec.field(default_factory=dict)


def given_policy(given: Policy | Path | str) -> Policy:
    """The policy that is meant by itself or by a file. ForgeError for a file that cannot be read, or is none."""
    return given if isinstance(given, Policy) else read_policy(Path(given))


def read_policy(path: Path) -> Policy:
    """The policy in a file. ForgeError if it cannot be read, or is none."""
    try:
        with path.open("rb") as file:
            data = file.read(SIZE_LIMIT + 1)
        if len(data) > SIZE_LIMIT:
            raise ForgeError(f"the policy {path} has more than {SIZE_LIMIT} bytes")
        return policy_from_toml(data.decode(), str(path))
    except OSError as error:
        raise ForgeError(f"the policy {path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ForgeError(f"the policy {path} cannot be read: it is not UTF-8 ({error.reason})") from None


def policy_from_toml(text: str, origin: str = "the policy") -> Policy:
    """The policy that a TOML text says. ForgeError with every fault in it; `origin` says where it came from."""
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ForgeError(f"{origin} is not valid TOML: {error}") from None
    faults = [*_faults(tables, _File, "")]
    if not faults:
        policy = _converted(tables)
        faults = [*_contradictions(policy)]
        if not faults:
            return policy
    raise ForgeError("\n".join((f"{origin} is not a valid policy:", *(f"  {fault}" for fault in faults))))


def _contradictions(policy: Policy) -> Iterator[str]:
    """What contradicts itself in the general rules, then in each model's, without what it has from the general ones."""
    general = contradictions(policy.general)
    yield from general
    for pattern, own in policy.models:
        header = _joined("", "model", pattern)
        yield from (f"{_at(header)}{said}" for said in contradictions(own) if said not in general)


def _converted(tables: Mapping[str, object]) -> Policy:
    general = {name: value for name, value in tables.items() if name != "model"}
    patterns = msgspec.convert(tables.get("model", {}), dict[str, dict[str, object]])
    models = ((pattern, msgspec.convert(_over(table, general), ModelPolicy)) for pattern, table in patterns.items())
    return Policy(general=msgspec.convert(general, ModelPolicy), models=tuple(models))


def _over(table: Mapping[str, object], general: Mapping[str, object]) -> dict[str, object]:
    """A model's table with what it leaves to the general one; of `tools`, each table stands for itself."""
    tools = {"tools": {**_table(general, "tools"), **_table(table, "tools")}}
    return {**general, **table, **tools}


def _table(tables: Mapping[str, object], name: str) -> dict[str, object]:
    return msgspec.convert(tables.get(name, {}), dict[str, object])


def _faults(table: Mapping[str, object], kind: type[Struct], header: str) -> Iterator[str]:
    """A sentence for each value of a table that is wrong, for each key that there is not, and for those that lack."""
    known = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    for key, value in table.items():
        if (field := known.get(key)) is not None:
            yield from _wrong(value, field.type, header, key)
        else:
            meant = did_you_mean(key, known)
            yield f"{_at(header)}{key}: there is no such key; there are: {', '.join(known)}.{meant}"
    yield from (
        f"{_at(header)}{name}: it is missing" for name, field in known.items() if field.required and name not in table
    )


def _wrong(value: object, hint: object, header: str, key: str) -> Iterator[str]:
    """What is wrong with one value, looked for in the tables within it."""
    inner = _struct_in(hint)
    if inner is not None and isinstance(value, dict):
        for name, table in value.items():
            yield from _wrong_table(table, inner, _joined(header, key, name))
    elif inner is not None and isinstance(value, list) and any(isinstance(one, dict) for one in value):
        for number, table in enumerate(value, start=1):
            if isinstance(table, dict):
                yield from _faults(table, inner, f"{_joined(header, key)} number {number}")
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
        yield from _faults(table, kind, header)
    else:
        yield f"[{header}]: it must be a table"


def _struct_in(hint: object) -> type[Struct] | None:
    """The kind of table that a value holds, if it holds some."""
    if isinstance(hint, type) and issubclass(hint, Struct):
        return hint
    return next(filter(None, map(_struct_in, get_args(hint))), None)


def _at(header: str) -> str:
    return f"[{header}] " if header else ""


def _joined(*parts: str) -> str:
    header, *names = parts
    quoted = (name if re.fullmatch(r"[\w-]+", name) else f'"{name}"' for name in names)
    return ".".join(filter(None, (header, *quoted)))
