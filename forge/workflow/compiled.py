"""A workflow compiled: what its runs share, whatever the backend. Made once, and never changed."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from forge.workflow.stage_list import StageName
from stages import Stage
from stages.compaction import Compactor, ContextBudget
from stages.fold import FailedAttempts, Reasoning
from stages.guards import guards_of, tool_calls
from stages.nudges import Reword
from stages.objection import Guard, NudgeKind
from stages.reading.toolset import Toolset
from stages.rescue.markers import Openers
from stages.rules import Rules
from stages.schema import Check
from stages.view.notes import ContextWarning
from stages.view.summary import Summarize
from stages.wire.tool_schemas import ToolSchemas


class GuardList(Struct, frozen=True, kw_only=True):
    """Which guards are asked: those of the rules, `tool_calls` where calls are `limited`, and `own`.

    Without those named in `without`.
    """

    limited: bool
    own: tuple[Guard, ...]
    without: frozenset[str] = frozenset()

    def named(self, rules: Rules) -> Mapping[str, Guard]:
        """The guards under these rules, in the order in which they are asked, by name.

        A name is that of the function, or of what it was made by; of several alike, the later ones are numbered.
        """
        limit = (tool_calls(rules),) if self.limited else ()
        guards = (*guards_of(rules), *limit, *self.own)
        names = [_name(guard) for guard in guards]
        numbered = [f"{n} {names[: i + 1].count(n)}" if names.count(n) > 1 else n for i, n in enumerate(names)]
        named = zip(numbered, guards, strict=True)
        return MappingProxyType({name: guard for name, guard in named if name not in self.without})


def _name(guard: Guard) -> str:
    *makers, own = getattr(guard, "__qualname__", type(guard).__name__).split(".<locals>.")
    return makers[-1] if makers and own == "guard" else own


class CompiledWorkflow(Struct, frozen=True, kw_only=True):
    """All of a workflow that its turns are made of; `forge.workflow.turn` adds what a backend decides.

    `openers` are of the grammars of calls: the user's, which are the first `own_families`, then forge's. `limits` is
    the budget of a prompt without its tokens. Functions of the user's are wrapped: one that fails is told with its
    place.
    """

    rules: Rules
    tools: Toolset
    schemas: ToolSchemas
    openers: Openers
    own_families: int
    guard_list: GuardList
    guards: Mapping[str, Guard]
    limits: ContextBudget
    compactor: Compactor
    summary: Summarize | None
    reasoning: Reasoning
    failed_attempts: FailedAttempts
    thresholds: tuple[float, ...]
    context_warning: ContextWarning | None
    iteration_warning: int
    progress_notes: bool
    rewords: Mapping[NudgeKind, Reword]
    stages: tuple[StageName | Stage, ...]

    def under(self, rules: Rules) -> Self:
        """The same under other rules of the same tools."""
        return replace(self, rules=rules, guards=self.guard_list.named(rules))

    def checked_by(self, other: Callable[[Check], Check]) -> Self:
        """The same with what this makes of each check of arguments."""
        checks = {name: other(check) for name, check in self.tools.checks.items()}
        return replace(self, tools=replace(self.tools, checks=MappingProxyType(checks)))

    def without(self, guard: str) -> Self:
        """The same without the guard of that name."""
        fewer = replace(self.guard_list, without=self.guard_list.without | {guard})
        return replace(self, guard_list=fewer, guards=fewer.named(self.rules))
