"""Reading a policy from a TOML file; one error lists every fault with its table and key."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from forge.proxy.policy import ModelPolicy, Policy
from forge.toml_tables import parse_toml, read_toml, refuse_faults
from stages.options import OptionError

_SIZE_LIMIT = 1 << 16
"""Maximum bytes of a policy file."""


class _File(ModelPolicy, frozen=True, kw_only=True, forbid_unknown_fields=True, eq=False):
    """The whole file: the policy for all models, and a table for each pattern of names."""

    model: Mapping[str, ModelPolicy] = msgspec.field(default_factory=dict)


def given_policy(given: Policy | Path | str) -> Policy:
    """The policy itself, or read from a file. ForgeError if the file cannot be read or is invalid."""
    if isinstance(given, Policy):
        return given
    return _policy(read_toml(Path(given), _File, "policy", _SIZE_LIMIT), str(given))


def policy_from_toml(text: str, origin: str = "the policy") -> Policy:
    """The policy in a TOML text. ForgeError with every fault in it; `origin` names it there."""
    return _policy(parse_toml(text, _File, origin), origin)


def _policy(tables: Mapping[str, object], origin: str) -> Policy:
    general = {name: value for name, value in tables.items() if name != "model"}
    patterns = msgspec.convert(tables.get("model", {}), dict[str, dict[str, object]])
    models = ((pattern, msgspec.convert(_over(table, general), ModelPolicy)) for pattern, table in patterns.items())
    try:
        return Policy(general=msgspec.convert(general, ModelPolicy), models=tuple(models))
    except OptionError as error:
        refuse_faults((problem.removeprefix("Policy: ") for problem in error.problems), origin)
        raise


def _over(table: Mapping[str, object], general: Mapping[str, object]) -> dict[str, object]:
    """A model's table merged with the general one; each table in `tools` is replaced as a whole."""
    inner = {name: {**_table(general, name), **_table(table, name)} for name in ("tools", "limits", "calls")}
    return {**general, **table, **inner}


def _table(tables: Mapping[str, object], name: str) -> dict[str, object]:
    return msgspec.convert(tables.get(name, {}), dict[str, object])
