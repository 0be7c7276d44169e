"""The functions that users give to a workflow, wrapped: one that fails is told with its place in the definition."""

from collections.abc import Mapping, Sequence
from types import NoneType

from msgspec.structs import replace

from forge.runtime.callbacks import placed, placed_guard
from stages.compaction import Compacted, Compactor, TieredCompact
from stages.guards import CompletionCheck, completion
from stages.halt import CannotFit
from stages.rescue import Family
from stages.rescue.found import Read
from stages.tool import ToolSpec
from stages.verdict import Guard
from stages.view.warnings import ContextWarning


def own_guards(
    checks: Mapping[str, CompletionCheck], guards: Sequence[Guard], tools: tuple[ToolSpec, ...]
) -> tuple[Guard, ...]:
    """The guard of the completion checks, if there are any, then the user's guards."""
    checked = {name: placed(check, f"completion_checks[{name!r}]", str, NoneType) for name, check in checks.items()}
    ends = (completion(checked, tools),) if checked else ()
    return (*ends, *(placed_guard(guard, f"guards[{i}]") for i, guard in enumerate(guards)))


def own_families(families: Sequence[Family]) -> tuple[Family, ...]:
    """The user's grammars of calls."""
    places = ((family, f"families[{i}].read") for i, family in enumerate(families))
    return tuple(replace(family, read=placed(family.read, place, Read, NoneType)) for family, place in places)


def own_compactor(compactor: Compactor | None) -> Compactor:
    """The user's compactor, or forge's."""
    return placed(compactor, "compactor", Compacted, CannotFit) if compactor else TieredCompact()


def own_warning(warning: ContextWarning | None) -> ContextWarning | None:
    """What the user has the model told of its context."""
    return placed(warning, "on_context_threshold", str, NoneType) if callable(warning) else warning
