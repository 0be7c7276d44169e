"""The functions that users give to a workflow, wrapped: one that fails is told with its place in the definition."""

from collections.abc import Mapping, Sequence
from types import NoneType

from msgspec.structs import replace

from forge.runtime.callbacks import placed, placed_guard
from stages.compaction import Compacted, Compactor, TieredCompact
from stages.guards import CompletionCheck, PastCall, completion
from stages.guards.completion_checks import sees_results
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
    places = {name: f"completion_checks[{name!r}]" for name in checks}
    checked = {name: _own_check(check, places[name]) for name, check in checks.items()}
    ends = (completion(checked, tools),) if checked else ()
    return (*ends, *(placed_guard(guard, f"guards[{i}]") for i, guard in enumerate(guards)))


def _own_check(check: CompletionCheck, place: str) -> CompletionCheck:
    if sees_results(check):
        asked = placed(check, place, str, NoneType)

        def of_both(arguments: dict[str, object], results: tuple[PastCall, ...]) -> str | None:
            return asked(arguments, results)  # what `placed` makes does not say how many it takes

        return of_both
    return placed(check, place, str, NoneType)


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
