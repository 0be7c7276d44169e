"""The options that an agent has in common with a workflow, and what an agent makes of them."""

from collections.abc import Mapping, Sequence
from typing import TypedDict

from forge.tools.calculated_arguments import Calculations
from forge.tools.decorator import Grounds
from forge.workflow.nudge_texts import Nudges
from forge.workflow.stage_list import StageName
from stages import Stage
from stages.compaction import Compactor
from stages.confidence.measure import WhenUnsure
from stages.effect import Price
from stages.fold import FailedAttempts, Reasoning
from stages.objection import Guard
from stages.rescue import Family
from stages.rules import BatchPolicy, CompletionCheck, Escalation, InDoubtPolicy, OnViolation, RepairLimits, Use
from stages.view.notes import ContextWarning
from stages.view.summary import Summarize

MAX_ITERATIONS = 20
"""Maximum number of model calls for one message, unless the agent says otherwise."""


class AgentOptions(TypedDict, total=False):
    """Options of `forge.Workflow`, by the same names, for each turn of an agent."""

    terminal_tool: str | Sequence[str]
    required_steps: str | Sequence[str]
    optional_steps: str | Sequence[str]
    max_iterations: int
    max_tool_calls: int | None
    max_tokens: int | None
    max_seconds: float | None
    max_cost: float | None
    price: Price | None
    max_retries_per_step: int
    max_tool_errors: int
    max_repeats: int | None
    value_checks: bool
    iteration_warning: int
    progress_notes: bool
    rescue_enabled: bool
    repair_limits: RepairLimits | None
    families: Sequence[Family]
    nudges: Nudges | None
    escalation: Escalation | None
    stages: Sequence[StageName | Stage]
    guards: Sequence[Guard]
    grounded: Mapping[str, Grounds] | None
    calculated: Mapping[str, Calculations] | None
    order: Sequence[Use]
    completion_checks: Mapping[str, CompletionCheck] | None
    unsure: WhenUnsure | None
    batch: BatchPolicy
    on_violation: OnViolation
    max_parallel: int
    max_calls_per_reply: int
    in_doubt: InDoubtPolicy
    compactor: Compactor | None
    compact_at: float
    compact_to: float
    recall: bool
    summarize: bool | Summarize
    reasoning_replay: Reasoning
    failed_attempts: FailedAttempts
    context_thresholds: Sequence[float]
    on_context_threshold: ContextWarning | None


def with_defaults(options: AgentOptions) -> AgentOptions:
    """The options, bounded: 20 model calls a message, and a warning when a fifth of them is left."""
    most = options.get("max_iterations", MAX_ITERATIONS)
    warning = max(1, most // 5) if isinstance(most, int) else 0  # of anything else the workflow says what is wrong
    return {"max_iterations": MAX_ITERATIONS, "iteration_warning": warning, **options}
