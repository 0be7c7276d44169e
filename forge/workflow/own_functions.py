"""The functions that users give to a workflow, wrapped: one that fails is told with its place in the definition."""

from collections.abc import Mapping, Sequence
from types import NoneType

from msgspec.structs import replace

from forge.runtime.callbacks import placed, placed_guard
from stages.compaction import Compacted, Compactor, TieredCompact
from stages.halt import CannotFit
from stages.objection import Guard
from stages.rescue import Family
from stages.rescue.found import Read
from stages.rules import CompletionCheck, PastCall, Use, sees_results
from stages.view.notes import ContextWarning


def own_guards(guards: Sequence[Guard]) -> tuple[Guard, ...]:
    """The user's guards."""
    return tuple(placed_guard(guard, f"guards[{i}]") for i, guard in enumerate(guards))


def own_checks(checks: Mapping[str, CompletionCheck]) -> Mapping[str, CompletionCheck]:
    """The user's completion checks."""
    return {name: _own_check(check, f"completion_checks[{name!r}]") for name, check in checks.items()}


def _own_check(check: CompletionCheck, place: str) -> CompletionCheck:
    asked = placed(check, place, str, NoneType)
    if not sees_results(check):
        return asked

    def of_both(arguments: dict[str, object], results: tuple[PastCall, ...]) -> str | None:
        return asked(arguments, results)  # what `placed` makes does not say how many it takes

    return of_both


def own_order(order: Sequence[Use]) -> tuple[Use, ...]:
    """The user's rules of order; what says when an answer counts is asked under its place."""
    return tuple(
        replace(use, counts_if=placed(use.counts_if, f"order[{i}].counts_if", bool)) if use.counts_if else use
        for i, use in enumerate(order)
    )


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
