"""Reading a policy from a TOML file; one error lists every fault with its table and key."""

import tomllib
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

import msgspec

from forge.errors import ForgeError
from forge.proxy.policy import ModelPolicy, Policy, contradictions
from forge.workflow.toml_tables import joined, table_faults

_SIZE_LIMIT = 1 << 16
"""Maximum bytes of a policy file."""

_DOTS_LIMIT = 500
"""Maximum dots in a line: tomllib's memory grows with the square of a dotted key's parts."""

_MODELS_LIMIT = 100
"""Maximum tables of models: each one's rules are checked together with the general ones."""

_FAULTS_TOLD = 50
"""Maximum faults listed."""


class _File(ModelPolicy, frozen=True, kw_only=True, forbid_unknown_fields=True, eq=False):
    """The whole file: the policy for all models, and a table for each pattern of names."""

    model: Mapping[str, ModelPolicy] = msgspec.field(default_factory=dict)


def given_policy(given: Policy | Path | str) -> Policy:
    """The policy itself, or read from a file. ForgeError if the file cannot be read or is invalid."""
    return given if isinstance(given, Policy) else read_policy(Path(given))


def read_policy(path: Path) -> Policy:
    """The policy in a file. ForgeError if it cannot be read or is invalid."""
    try:
        with path.open("rb") as file:
            data = file.read(_SIZE_LIMIT + 1)
        if len(data) > _SIZE_LIMIT:
            raise ForgeError(f"the policy {path} has more than {_SIZE_LIMIT} bytes")
        return policy_from_toml(data.decode(), str(path))
    except OSError as error:
        raise ForgeError(f"the policy {path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ForgeError(f"the policy {path} cannot be read: it is not UTF-8 ({error.reason})") from None


def policy_from_toml(text: str, origin: str = "the policy") -> Policy:
    """The policy in a TOML text. ForgeError with every fault; `origin` names the source."""
    if any(line.count(".") > _DOTS_LIMIT for line in text.split("\n")):
        raise ForgeError(f"{origin} has a line with more than {_DOTS_LIMIT} dots")
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a whole number of 5,000 digits is a plain ValueError
        raise ForgeError(f"{origin} is not valid TOML: {error}") from None
    faults = [*islice(table_faults(tables, _File), _FAULTS_TOLD + 1)]
    if not faults:
        policy = _converted(tables)
        faults = [*islice(_contradictions(policy), _FAULTS_TOLD + 1)]
        if not faults:
            return policy
    if len(faults) > _FAULTS_TOLD:
        faults[_FAULTS_TOLD:] = ["and more"]
    raise ForgeError("\n".join((f"{origin} is not a valid policy:", *(f"  {fault}" for fault in faults))))


def _contradictions(policy: Policy) -> Iterator[str]:
    """The contradictions in the general rules, then those of each model that the general rules do not have."""
    if len(policy.models) > _MODELS_LIMIT:
        yield f"model: there are {len(policy.models)} tables; the maximum is {_MODELS_LIMIT}"
        return
    general = contradictions(policy.general)
    yield from general
    for pattern, own in policy.models:
        header = joined("model", pattern)
        yield from (f"[{header}] {said}" for said in contradictions(own) if said not in general)


def _converted(tables: Mapping[str, object]) -> Policy:
    general = {name: value for name, value in tables.items() if name != "model"}
    patterns = msgspec.convert(tables.get("model", {}), dict[str, dict[str, object]])
    models = ((pattern, msgspec.convert(_over(table, general), ModelPolicy)) for pattern, table in patterns.items())
    return Policy(general=msgspec.convert(general, ModelPolicy), models=tuple(models))


def _over(table: Mapping[str, object], general: Mapping[str, object]) -> dict[str, object]:
    """A model's table merged with the general one; each table in `tools` is replaced as a whole."""
    inner = {name: {**_table(general, name), **_table(table, name)} for name in ("tools", "limits", "calls")}
    return {**general, **table, **inner}


def _table(tables: Mapping[str, object], name: str) -> dict[str, object]:
    return msgspec.convert(tables.get(name, {}), dict[str, object])
